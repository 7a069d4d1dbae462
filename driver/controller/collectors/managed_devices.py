"""Rules that make the controller the allocator of other drivers' devices, by their state. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from driver.resources.dra import taint_rules
from driver.runtime.metrics.families import Family, Figures
from driver.scheduling.device_ownership import rule_plan, rule_taints

RULES: Final = Family(
    "dra_gpu_controller_managed_device_rules",
    "DeviceTaintRules that make the controller the allocator of another driver's devices, by the "
    "taint they show: allocator, handover, or other after an edit.",
    ("driver", "taint"),
)
FAMILIES: Final = (RULES,)


def figures(rules: Iterable[taint_rules.TaintRule]) -> Figures:
    """Return the number of rules of each driver that has one, by taint."""
    counts = Counter(
        (rule.driver or "", rule_taints.shown_taint(rule))
        for rule in rules
        if rule.is_allocator_rule
    )
    drivers = sorted({driver for driver, _ in counts})
    return {
        RULES.name: {
            (driver, taint.value): float(counts[driver, taint])
            for driver in drivers
            for taint in rule_plan.RuleTaint
        }
    }
