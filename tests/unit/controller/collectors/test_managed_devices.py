from driver import names
from driver.controller.collectors import managed_devices
from driver.resources.dra import taint_rules
from tests.support.builders import objects


def a_rule(name: str, driver: str, key: str, label: str = "true") -> taint_rules.TaintRule:
    value = "controller" if key == names.ALLOCATOR_TAINT else ""
    taint = {"key": key, "value": value, "effect": "NoSchedule"}
    meta = objects.meta(name, None, labels={names.ALLOCATOR_RULE: label})
    spec = {"deviceSelector": {"driver": driver}, "taint": taint}
    return taint_rules.parse({"metadata": meta, "spec": spec})


def test_rules_are_counted_by_driver_and_taint() -> None:
    rules = [
        a_rule("a", "gpu.example.com", names.ALLOCATOR_TAINT),
        a_rule("b", "gpu.example.com", names.ALLOCATOR_TAINT),
        a_rule("c", "gpu.example.com", names.HANDOVER_TAINT),
        a_rule("d", "nic.example.com", "example.com/hot"),
        a_rule("e", "fpga.example.com", names.ALLOCATOR_TAINT, label="false"),
    ]
    values = managed_devices.figures(rules)[managed_devices.RULES.name]
    assert {labels: value for labels, value in values.items() if value} == {
        ("gpu.example.com", "allocator"): 2,
        ("gpu.example.com", "handover"): 1,
        ("nic.example.com", "other"): 1,
    }
    assert len(values) == 6


def test_without_rules_there_is_no_series() -> None:
    assert managed_devices.figures([]) == {managed_devices.RULES.name: {}}
