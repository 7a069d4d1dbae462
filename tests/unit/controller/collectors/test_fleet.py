import dataclasses
from typing import Any

from driver import names
from driver.cli.sources import local
from driver.controller.collectors import fleet
from driver.resources.dra import claims, slices
from driver.runtime.metrics.families import Figures
from driver.scheduling.reports import read_model
from driver.scheduling.reports.documents import fleet as reports
from tests.support import snapshots
from tests.support.builders import objects

GIB = 1 << 30


def of_fleet(*results: slices.Slice, held: tuple[claims.Claim, ...] = ()) -> Any:
    cached_objects = snapshots.caches(found_slices=results, found_claims=held)
    objects_of = local.build_objects(names.DRIVER, cached_objects, (), ())
    return fleet.figures(reports.node_documents(read_model.ClusterModel(objects_of)))


def modes(figures: Figures) -> dict[str, float]:
    return {mode: n for (_, mode), n in figures[fleet.GPUS.name].items() if n}


def a_node_of_gpus(**more: Any) -> slices.Slice:
    """Four GPUs of 80 GiB with their shared faces."""
    devices = []
    for number in range(4):
        name = f"gpu-0000-0{number}-00-0"
        retained = {"taints": [], **more}
        devices.append(objects.a_device(name, **retained))
        devices.append(objects.a_share_device(f"{name}-mps", names.SHARING_MPS, **retained))
        devices.append(objects.a_share_device(f"{name}-ts", **retained))
    return objects.a_parsed_slice("node-a", devices)


def a_share(gpu: int, gib: int, name: str) -> claims.Claim:
    share = objects.a_share(f"gpu-0000-0{gpu}-00-0-mps", memory=f"{gib}Gi")
    return snapshots.holding(name, "node-a", share)


def test_fragmented_is_the_free_memory_of_gpus_that_cannot_be_given_whole() -> None:
    whole = snapshots.holding("whole", "node-a", "gpu-0000-03-00-0")
    held = (a_share(0, 20, "one"), a_share(0, 20, "two"), a_share(1, 40, "three"), whole)
    result = of_fleet(a_node_of_gpus(), held=held)
    assert modes(result) == {"free": 1, "mps": 2, "whole": 1}
    (free,) = result[fleet.MEMORY_FREE.name].values()
    assert free == (40 + 40 + 80) * GIB
    assert [*result[fleet.FRAGMENTATION.name].values()] == [0.5]
    assert [*result[fleet.MEMORY.name].values()] == [320 * GIB]


def test_a_fleet_without_free_memory_is_not_fragmented() -> None:
    held = tuple(
        snapshots.holding(f"c{number}", "node-a", f"gpu-0000-0{number}-00-0") for number in range(4)
    )
    assert [*of_fleet(a_node_of_gpus(), held=held)[fleet.FRAGMENTATION.name].values()] == [0]


def test_free_amounts_are_never_negative_with_overcommitted_devices() -> None:
    held = tuple(a_share(0, 60, f"c{number}") for number in range(2))
    result = of_fleet(a_node_of_gpus(), held=held)
    assert [*result[fleet.MEMORY_FREE.name].values()] == [240 * GIB]


def test_a_tainted_gpu_that_nobody_has_is_neither_free_nor_its_memory() -> None:
    ill = {"key": names.TAINT_XID, "value": "79", "effect": "NoExecute"}
    result = of_fleet(a_node_of_gpus(taints=[ill]))
    assert modes(result) == {"tainted": 4}
    assert [*result[fleet.MEMORY_FREE.name].values()] == [0]


def test_a_cordoned_gpu_is_told_apart_from_an_ill_one() -> None:
    cordoned = {"key": names.CORDONED_TAINT, "value": "", "effect": "NoSchedule"}
    ill = {"key": names.TAINT_XID, "value": "79", "effect": "NoExecute"}
    result = of_fleet(a_node_of_gpus(taints=[cordoned]))
    assert modes(result) == {"cordoned": 4}
    assert [*result[fleet.MEMORY_FREE.name].values()] == [0]
    assert modes(of_fleet(a_node_of_gpus(taints=[cordoned, ill]))) == {"tainted": 4}


def test_a_taint_that_says_who_allocates_taints_no_gpu() -> None:
    ours = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
    assert modes(of_fleet(a_node_of_gpus(taints=[ours]))) == {"free": 4}


def test_the_newest_generation_of_a_pool_counts() -> None:
    new = a_node_of_gpus()
    old = dataclasses.replace(new, name="old", generation=new.generation - 1)
    assert modes(of_fleet(old, new)) == {"free": 4}


def test_a_gpu_in_parts_has_the_memory_of_all_its_slices() -> None:
    gpu = "gpu-0000-00-00-0"
    parts = [
        objects.with_values(
            objects.drawing(f"{gpu}-mig-1g10gb-{index}", gpu, **{f"memory-slice-{index}": "1"}),
            type=names.TYPE_MIG,
        )
        | {"capacity": {"memory": {"value": "10Gi"}}}
        for index in range(8)
    ]
    sets = {gpu: {f"memory-slice-{index}": "1" for index in range(8)}}
    published = [slices.parse(entry) for entry in objects.counting(sets, parts)]
    held = snapshots.holding("part", "node-a", f"{gpu}-mig-1g10gb-3")
    result = of_fleet(*published, held=(held,))
    assert modes(result) == {"mig": 1}
    assert [*result[fleet.MEMORY.name].values()] == [80 * GIB]
    assert [*result[fleet.MEMORY_FREE.name].values()] == [70 * GIB]
