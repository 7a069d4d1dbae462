"""The documents that settings name by path, read and judged."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from driver import errors
from driver.api import node_shapes, workloads
from driver.controller.allocation import configured
from driver.controller.allocation.policies import mix


def usual(path: Path | None) -> mix.Mix:
    """What is usually asked by the document at a path; without one, a guess. Raises BadInput."""
    if path is None:
        return mix.PRIOR
    return configured.of(workloads.read(_document(path, "UsualWorkloads"), path.name))


def shapes(path: Path) -> node_shapes.NodeShapes:
    """The kinds of node that an autoscaler can bring. Raises BadInput."""
    return node_shapes.read(_document(path, "NodeShapes"), path.name)


def _document(path: Path, kind: str) -> Mapping[str, object]:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as e:
        raise errors.BadInput(str(path), str(e), f"a {kind} document") from e
    if not isinstance(document, dict):
        raise errors.BadInput(str(path), f"is {type(document).__name__}", "a YAML mapping")
    return document
