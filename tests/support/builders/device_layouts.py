"""Nodes for tests of the allocator: GPUs that differ, and GPUs that are cut up."""

from typing import Any

from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

NUMA, ROW, LINKS = (f"{snapshots.DRIVER}/{name}" for name in ("numa", "row", "links"))
SLICES = 8


def looking(*looks: dict[str, Any], taken: tuple[str, ...] = ()) -> cluster_state.ClusterState:
    """A node of GPUs with these attributes, some in use."""
    values = [
        objects.with_values(objects.a_device(f"gpu-{index}"), **look)
        for index, look in enumerate(looks)
    ]
    held = [snapshots.holding(f"x-{name}", "node-a", name) for name in taken]
    return snapshots.view(objects.a_slice("node-a", values), taken=held)


def two_numa_nodes(*taken: str) -> cluster_state.ClusterState:
    """Eight GPUs, four on each NUMA node."""
    return looking(*({"numa": index // 4} for index in range(8)), taken=taken)


def cut(gpus: int, *taken: str) -> cluster_state.ClusterState:
    """GPUs of eight memory slices with MIG's placements: 1g on any of seven, 3g on a half, 7g."""
    sets = {f"gpu-{gpu}": {f"slice-{index}": "1" for index in range(SLICES)} for gpu in range(gpus)}
    places = [("1g", index, 1) for index in range(SLICES - 1)]
    places += [("3g", 0, 4), ("3g", 4, 4), ("7g", 0, SLICES)]
    values = [
        objects.with_values(
            objects.drawing(
                f"gpu-{gpu}-{profile}-{first}",
                f"gpu-{gpu}",
                **{f"slice-{index}": "1" for index in range(first, first + size)},
            ),
            profile=profile,
        )
        for gpu in range(gpus)
        for profile, first, size in places
    ]
    held = [snapshots.holding(f"x-{name}", "node-a", name) for name in taken]
    return snapshots.view(*objects.counting(sets, values), taken=held)


def of_profile(name: str, count: int, profile: str) -> objects.Raw:
    """A request for MIG devices of a profile."""
    text = f'device.attributes["{snapshots.DRIVER}"].profile == "{profile}"'
    return objects.a_request(name, count, text, deviceClassName=snapshots.ANY)
