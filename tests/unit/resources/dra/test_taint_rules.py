from typing import Any

import pytest

from driver import errors, names
from driver.resources.dra import taint_rules
from tests.support.builders import objects


def a_rule(name: str = "rule", selector: Any = None, **taint: Any) -> taint_rules.TaintRule:
    spec: dict[str, Any] = {"taint": {"key": "example.com/hot", "effect": "NoSchedule", **taint}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return taint_rules.parse({"metadata": objects.meta(name, None), "spec": spec})


def tainted(*rules: taint_rules.TaintRule) -> list[str]:
    (apply_rule,) = taint_rules.apply_rules([objects.a_parsed_slice("node-a", 2)], rules)
    return [
        device.name
        for device in apply_rule.devices
        if any(taint.key == "example.com/hot" for taint in device.taints)
    ]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, ["gpu-0", "gpu-1"]),
        ({"driver": "gpu.ration.dev"}, ["gpu-0", "gpu-1"]),
        ({"driver": "gpu.nvidia.com"}, []),
        ({"pool": "node-a", "device": "gpu-1"}, ["gpu-1"]),
        ({"pool": "node-b", "device": "gpu-1"}, []),
    ],
)
def test_a_rule_taints_what_every_name_of_it_fits(selector: Any, expected: list[str]) -> None:
    assert tainted(a_rule(selector=selector)) == expected


def test_a_rule_without_a_selector_is_for_no_device() -> None:
    assert tainted(a_rule()) == []


def test_a_rules_taint_stands_beside_the_devices_own() -> None:
    (apply_rule,) = taint_rules.apply_rules(
        [objects.a_parsed_slice("node-a", 1)], [a_rule(selector={})]
    )
    assert [taint.key for taint in apply_rule.devices[0].taints] == [
        "ration.dev/allocator",
        "example.com/hot",
    ]


def test_a_rule_without_a_key_says_what_is_missing() -> None:
    with pytest.raises(errors.BadInput, match=r"spec\.taint\.key: is missing"):
        a_rule(selector={}, key="")


def test_a_rule_of_the_controller_is_known_by_its_label() -> None:
    meta = objects.meta(
        "rule",
        None,
        generation=2,
        labels={names.ALLOCATOR_RULE: "true"},
        annotations={names.FENCE: "ration-controller/a/1"},
    )
    spec = {"deviceSelector": {}, "taint": {"key": "a", "effect": "NoSchedule"}}
    status = {"conditions": [{"type": "EvictionInProgress", "status": "False"}]}
    rule = taint_rules.parse({"metadata": meta, "spec": spec, "status": status})
    assert (rule.is_allocator_rule, rule.observed, rule.generation) == (True, True, 2)
    assert (rule.fence, rule.uid, rule.version) == ("ration-controller/a/1", meta["uid"], "1")
    other = a_rule(selector={})
    assert (other.is_allocator_rule, other.observed, other.fence) == (False, False, "")


def test_a_new_version_without_another_spec_is_the_same_rule() -> None:
    """Caches of devices are not emptied for a condition or an annotation."""
    spec = {"taint": {"key": "a", "effect": "NoSchedule"}}
    first = taint_rules.parse({"metadata": objects.meta("rule", None), "spec": spec})
    meta = {**objects.meta("rule", None), "resourceVersion": "2", "annotations": {names.FENCE: "x"}}
    assert taint_rules.parse({"metadata": meta, "spec": spec}) == first
