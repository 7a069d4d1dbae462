"""The documents that settings name by path, read and judged."""

from pathlib import Path

from driver.api import node_shapes, workloads
from driver.controller.allocation import configured
from driver.controller.allocation.policies import mix
from driver.files import documents


def usual(path: Path | None) -> mix.Mix:
    """What is usually asked by the document at a path; without one, a guess. Raises BadInput."""
    if path is None:
        return mix.PRIOR
    return configured.of(workloads.read(documents.read(path, "UsualWorkloads"), path.name))


def shapes(path: Path) -> node_shapes.NodeShapes:
    """The kinds of node that an autoscaler can bring. Raises BadInput."""
    return node_shapes.read(documents.read(path, "NodeShapes"), path.name)
