"""Reading slices: what is equal is kept once, and what is wrong is told with its place."""

import copy
from typing import Any

import pytest

from driver import errors
from driver.resources import quantities
from driver.resources.dra import slices
from tests.support.builders import objects

DEVICE: dict[str, Any] = {
    "name": "gpu-0-mig-1g10gb-0",
    "attributes": {
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "driverVersion": {"version": "580.105.8"},
    },
    "capacity": {"memory": {"value": "9984Mi"}},
    "consumesCounters": [{"counterSet": "gpu-0", "counters": {"decoders": {"value": "1"}}}],
    "taints": [{"key": "example.com/old", "value": "", "effect": "NoSchedule"}],
}


def slice_of(*devices: dict[str, Any]) -> dict[str, Any]:
    spec = {"driver": "gpu.ration.dev", "pool": {"name": "node-a"}, "devices": list(devices)}
    return {"metadata": {"name": "one"}, "spec": spec}


def read(device: dict[str, Any]) -> slices.Device:
    """Through another copy each time, as from another answer of the server."""
    return slices.parse(slice_of(copy.deepcopy(device))).devices[0]


def test_equal_parts_of_two_slices_are_one_object() -> None:
    item, other = read(DEVICE), read(DEVICE)
    assert item == other
    assert item.capacity is other.capacity
    assert item.taints is other.taints
    assert item.consumes[0].counters is other.consumes[0].counters
    assert item.attributes["driverVersion"] is other.attributes["driverVersion"]


def test_capacities_that_are_equal_but_written_otherwise_keep_their_texts() -> None:
    written = [{**DEVICE, "capacity": {"memory": {"value": text}}} for text in ("1Gi", "1024Mi")]
    assert [read(entry).capacity["memory"].value.text for entry in written] == ["1Gi", "1024Mi"]


def test_a_capacity_with_a_policy_is_not_taken_for_one_without() -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "8"}}
    shared = {**DEVICE, "capacity": {"memory": {"value": "9984Mi", "requestPolicy": policy}}}
    assert read(DEVICE).capacity["memory"].policy is None
    assert read(shared).capacity["memory"].policy is not None


@pytest.mark.parametrize(
    ("change", "location"),
    [
        ({"capacity": {"memory": {"value": "much"}}}, "spec.devices[1].capacity[memory].value"),
        ({"capacity": {"memory": {"value": True}}}, "spec.devices[1].capacity[memory].value"),
        ({"capacity": {"memory": 5}}, "spec.devices[1].capacity.memory"),
        (
            {"consumesCounters": [{"counterSet": "a", "counters": {"b": {"value": "much"}}}]},
            "spec.devices[1].consumesCounters[0].counters[b]",
        ),
        ({"taints": [{"key": "a", "effect": 5}]}, "spec.devices[1].taints[0].effect"),
        ({"taints": [{"key": "a", "effect": ["b"]}]}, "spec.devices[1].taints[0].effect"),
        ({"attributes": {"a": "b"}}, "spec.devices[1].a"),
    ],
)
def test_an_unreadable_value_is_reported_with_its_location(
    change: dict[str, Any], location: str
) -> None:
    with pytest.raises(errors.BadInput) as failed:
        slices.parse(slice_of(DEVICE, {**DEVICE, **change}))
    assert failed.value.location == location


def test_a_boolean_and_a_number_are_two_attributes() -> None:
    annotations = {"attributes": {"a": {"bool": True}, "b": {"int": 1}, "c": {"other": 1}}}
    result = read({**DEVICE, **annotations})
    assert result.attributes["a"] is True
    assert (result.attributes["b"], type(result.attributes["b"])) == (1, int)
    assert result.unsupported == ("attributes[c]",)


def device(**more: Any) -> slices.Device:
    return slices.parse_device(objects.a_device("gpu-0", **more), "device")


def test_a_device_says_how_it_may_be_shared_and_what_it_draws() -> None:
    uses = [{"counterSet": "gpu-0", "counters": {"slots": {"value": "2"}}}]
    result = device(allowMultipleAllocations=True, consumesCounters=uses)
    assert result.allow_multiple
    assert result.consumes == (slices.CounterUse("gpu-0", {"slots": quantities.parse("2")}),)


def test_a_device_says_what_binding_waits_for_and_whether_it_binds_to_its_node() -> None:
    result = device(
        bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"], nodeName="node-a"
    )
    assert (result.binds_to_node, result.binding, result.failing) == (True, ("a",), ("b",))
    assert result.reach.node == "node-a"


@pytest.mark.parametrize(
    ("more", "beyond"),
    [
        ({"nodeAllocatable": {"cpu": "1"}}, ("nodeAllocatable",)),
        ({"attributes": {"odd": {"float": 1.5}}}, ("attributes[odd]",)),
        ({"nodeAllocatable": {}}, ()),
    ],
)
def test_unsupported_device_fields_are_named(more: Any, beyond: tuple[str, ...]) -> None:
    assert device(**more).unsupported == beyond


def test_unsupported_slice_fields_are_named() -> None:
    raw = objects.a_slice()
    raw["spec"]["mixins"] = [{}]
    assert slices.parse(raw).unsupported == ("mixins",)


def test_taints_that_block_are_told_from_those_that_only_inform() -> None:
    effects = ("NoSchedule", "NoExecute", "None")
    assert [slices.Taint("k", "", effect).blocks for effect in effects] == [True, True, False]


def test_a_device_is_handed_to_the_allocator_that_its_taint_names() -> None:
    assert device().is_tainted_for("controller")
    assert not device().is_tainted_for("scheduler")
    assert not device(taints=[]).is_tainted_for("controller")
