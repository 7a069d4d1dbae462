"""Refusals of GPUs as AMD's and Intel's drivers published them (tests/data/slices/README.md)."""

import json
from typing import Any

import pytest

from driver.scheduling.allocator import dra_allocator
from driver.scheduling.explain import explainer
from tests.support import allocation, snapshots
from tests.support.builders import managed_gpus, objects

RECORDED = [("amd", managed_gpus.AMD), ("intel", managed_gpus.INTEL)]


def decide(name: str, driver: str, count: int, *selectors: str) -> Any:
    """Decide on the recorded node, all of whose devices are the controller's."""
    taint = managed_gpus.rule(driver)["spec"]["taint"]
    recorded = managed_gpus.recorded(name)
    for raw in recorded:
        for device in raw["spec"]["devices"]:
            device["taints"] = [taint]
    view = snapshots.view(
        *recorded,
        found_classes=[objects.device_class("gpu", f'device.driver == "{driver}"')],
    )
    request = objects.a_request("gpu", count, *selectors, deviceClassName="gpu")
    work = allocation.workload(objects.claim("c", request))
    return dra_allocator.allocate(view, work, snapshots.DECIDING)


@pytest.mark.parametrize(("name", "driver"), RECORDED)
def test_a_placement_names_its_gpu_and_what_is_left(name: str, driver: str) -> None:
    placement = allocation.placed(decide(name, driver, 1))
    document = explainer.placement_document(placement)
    assert [entry["node"] for entry in document["considered"]] == ["node-a"]
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(("name", "driver"), RECORDED)
def test_too_many_devices_are_refused_with_the_count_that_fits(name: str, driver: str) -> None:
    count = sum(len(raw["spec"]["devices"]) for raw in managed_gpus.recorded(name))
    allocation.placed(decide(name, driver, count))
    answer = decide(name, driver, count + 1)
    [refusal] = explainer.unschedulable_document(allocation.refused(answer))["refusals"]
    assert (refusal["fits"], refusal["wanted"]) == (count, count + 1)


@pytest.mark.parametrize(("name", "driver"), RECORDED)
def test_more_memory_than_any_gpu_has_is_refused_by_the_selector(name: str, driver: str) -> None:
    selector = f'device.capacity["{driver}"].memory.isGreaterThan(quantity("1Ti"))'
    answer = allocation.refused(decide(name, driver, 1, selector))
    [refusal] = explainer.unschedulable_document(answer)["refusals"]
    assert refusal["fits"] == 0
    assert "SelectorMismatch" in json.dumps(refusal)
