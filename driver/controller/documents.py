"""Reads the documents that settings name by path."""

from pathlib import Path

from driver.api import managed_drivers, node_shapes, workload_mix
from driver.runtime.files import yaml_files
from driver.scheduling.allocator.policies import configured_mix
from driver.scheduling.allocator.policies import workload_mix as policy_mix
from driver.scheduling.device_ownership import desired


def read_workload_mix(path: Path | None) -> policy_mix.WorkloadMix:
    """Read a WorkloadMix document; the default mix without a path. Raises BadInput."""
    if path is None:
        return policy_mix.DEFAULT_MIX
    return configured_mix.build_mix(
        workload_mix.read(yaml_files.read_document(path, "WorkloadMix"), path.name)
    )


def read_node_shapes(path: Path) -> node_shapes.NodeShapes:
    """Read a NodeShapes document. Raises BadInput."""
    return node_shapes.read(yaml_files.read_document(path, "NodeShapes"), path.name)


def read_managed_drivers(path: Path | None, own_driver: str) -> tuple[desired.ManagedDriver, ...]:
    """Read a ManagedDrivers document; no driver without a path. Raises BadInput."""
    if path is None:
        return ()
    document = managed_drivers.read(yaml_files.read_document(path, "ManagedDrivers"), path.name)
    return desired.parse_drivers(document, own_driver, path.name)
