from typing import Any

import pytest

from driver.resources import quantity, slices
from tests import objects


def device(**more: Any) -> slices.Device:
    return slices.parse_device(objects.a_device("gpu-0", **more), "device")


def test_a_device_says_how_it_may_be_shared_and_what_it_draws() -> None:
    uses = [{"counterSet": "gpu-0", "counters": {"slots": {"value": "2"}}}]
    found = device(allowMultipleAllocations=True, consumesCounters=uses)
    assert found.allow_multiple
    assert found.consumes == (slices.CounterUse("gpu-0", {"slots": quantity.parse("2")}),)


def test_a_device_says_what_binding_waits_for_and_whether_it_binds_to_its_node() -> None:
    found = device(
        bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"], nodeName="node-a"
    )
    assert (found.binds_to_node, found.binding, found.failing) == (True, ("a",), ("b",))
    assert found.reach.node == "node-a"


@pytest.mark.parametrize(
    ("more", "beyond"),
    [
        ({"nodeAllocatable": {"cpu": "1"}}, ("nodeAllocatable",)),
        ({"attributes": {"odd": {"float": 1.5}}}, ("attributes[odd]",)),
        (
            {
                "consumesCounters": [
                    {"counterSet": "x", "counters": {}, "compatibilityGroups": ["g"]}
                ]
            },
            ("compatibilityGroups",),
        ),
        ({"nodeAllocatable": {}}, ()),
    ],
)
def test_what_is_not_weighed_of_a_device_is_named(more: Any, beyond: tuple[str, ...]) -> None:
    assert device(**more).beyond == beyond


def test_what_is_not_weighed_of_a_slice_is_named() -> None:
    raw = objects.a_slice()
    raw["spec"]["mixins"] = [{}]
    assert slices.parse(raw).beyond == ("mixins",)


def test_taints_that_block_are_told_from_those_that_only_inform() -> None:
    effects = ("NoSchedule", "NoExecute", "None")
    assert [slices.Taint("k", "", one).blocks for one in effects] == [True, True, False]


def test_a_device_is_handed_to_the_allocator_that_its_taint_names() -> None:
    assert device().tainted_for("controller")
    assert not device().tainted_for("scheduler")
    assert not device(taints=[]).tainted_for("controller")
