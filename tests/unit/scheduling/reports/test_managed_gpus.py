"""GPUs of a managed driver in the reports, by slices that NVIDIA's driver published."""

import dataclasses

import pytest

from driver import ids
from driver.scheduling.reports import catalog, model, read_model
from tests.support.builders import managed_gpus
from tests.support.builders.managed_gpus import NODE, RULE, holding, published
from tests.support.scenarios import fleets

Raw = managed_gpus.Raw
NODE_NAME = ids.NodeName("node-a")


def reading(name: str, *more: Raw) -> catalog.Reports:
    return fleets.a_reading([NODE, *published(name), *more])


def node(reports: catalog.Reports) -> model.Node:
    document = reports.node("node-a")
    assert document is not None
    return document


def test_whole_gpus_of_a_managed_driver_count_with_their_claims() -> None:
    reports = reading("whole", RULE, holding("train", "gpu-3"))
    fleet = reports.fleet()
    assert (fleet.gpus, fleet.nodes, fleet.claims) == (8, 1, 1)
    assert fleet.modes == {"free": 7, "whole": 1}
    gpus = {gpu.name: gpu for gpu in node(reports).gpus}
    assert gpus["gpu-3"].memory_allocated == gpus["gpu-3"].memory == 81559 << 20
    assert gpus["gpu-3"].parts[0].claim == "team/train"
    assert {gpu.product for gpu in gpus.values()} == {"NVIDIA H100 80GB HBM3"}
    assert {gpu.allocator for gpu in gpus.values()} == {"controller"}
    pci = [gpu.pci for gpu in node(reports).gpus]
    assert pci == sorted(pci)


@pytest.mark.parametrize("name", ["dynamic-mig", "static-mig"])
def test_parts_lie_at_their_memory_slices(name: str) -> None:
    device = {"dynamic-mig": "gpu-0-mig-3g40gb-9-4", "static-mig": "gpu-0-mig-3g20gb-9-4"}[name]
    reports = reading(name, RULE, holding("half", device))
    (gpu,) = (gpu for gpu in node(reports).gpus if gpu.mode == "mig")
    (part,) = gpu.parts
    assert (gpu.name, gpu.memory_slices) == ("gpu-0", 8)
    assert (part.start, part.width, part.mode) == (500, 500, "mig")
    assert part.profile in {"3g.40gb", "3g.20gb"}


def test_a_claim_shows_its_gpu_of_a_managed_driver() -> None:
    reports = reading("whole", RULE, holding("train", "gpu-3"))
    claim = reports.claim("team/train")
    assert claim is not None
    (held,) = claim.devices
    assert (held.node, held.gpu) == ("node-a", "gpu-3")
    assert held.part is not None


def test_a_failed_gpu_of_a_managed_driver_is_unhealthy() -> None:
    (raw,) = published("whole")
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    raw["spec"]["devices"][0]["taints"] = [taint]
    assert fleets.a_reading([NODE, raw, RULE]).fleet().unhealthy == 1


def test_gpus_of_a_driver_that_is_not_managed_do_not_count() -> None:
    reports = reading("whole", holding("train", "gpu-3"))
    assert reports.fleet().gpus == 0
    assert reports.node("node-a") is None


def test_an_unchanged_node_of_a_managed_driver_is_taken_over() -> None:
    existing = fleets.objects_of([NODE, *published("dynamic-mig"), RULE])
    previous = read_model.ClusterModel(existing)
    assert previous.pools[NODE_NAME].gpus
    later = read_model.ClusterModel(dataclasses.replace(existing, claims={}), previous)
    assert later.pools[NODE_NAME] is previous.pools[NODE_NAME]
    unruled = read_model.ClusterModel(dataclasses.replace(existing, rules={}), previous)
    assert unruled.pools == {}


def other(name: str, driver: str, *claims: Raw) -> catalog.Reports:
    slices = managed_gpus.recorded(name)
    return fleets.a_reading([NODE, *slices, managed_gpus.rule(driver), *claims])


def test_gpus_of_amd_show_product_address_and_partitions() -> None:
    claim = holding("part", "gpu-10-140", managed_gpus.AMD)
    reports = other("amd", managed_gpus.AMD, claim)
    assert (reports.fleet().gpus, reports.fleet().claims) == (3, 1)
    by_pci = {gpu.pci: gpu for gpu in node(reports).gpus}
    assert list(by_pci) == ["0000:0c:00.0", "0000:22:00.0", "0000:9f:00.0"]
    cut = by_pci["0000:9f:00.0"]
    assert (cut.name, cut.product) == ("gpu-3-130", "AMD_Instinct_MI300X_OAM")
    assert (cut.mode, cut.memory, cut.memory_slices) == ("mig", 8 * (24560 << 20), 8)
    (part,) = cut.parts
    assert (part.width, part.profile, part.claim) == (125, "cpx_nps4", "team/part")
    assert by_pci["0000:0c:00.0"].memory == 196592 << 20


def test_gpus_of_intel_show_product_address_and_functions() -> None:
    claim = holding("function", "0000-ca-00-2-0x56c0", managed_gpus.INTEL)
    reports = other("intel", managed_gpus.INTEL, claim)
    assert reports.fleet().gpus == 4
    gpus = {gpu.pci: gpu for gpu in node(reports).gpus}
    assert gpus["0000:29:00.0"].product == "Max 1550"
    flex = gpus["0000:ca:00.0"]
    assert (flex.name, flex.product) == ("0000-ca-00-0-0x56c0", "Flex 170")
    assert (flex.memory, flex.mode) == (16 << 30, "mig")
    assert [part.claim for part in flex.parts] == ["team/function"]


def test_a_failed_gpu_of_intel_is_unhealthy() -> None:
    (raw,) = managed_gpus.recorded("intel")
    taint = {"key": "HealthIssues-memorytemperature", "effect": "NoExecute"}
    raw["spec"]["devices"][0]["taints"] = [taint]
    objects = [NODE, raw, managed_gpus.rule(managed_gpus.INTEL)]
    assert fleets.a_reading(objects).fleet().unhealthy == 1
