import dataclasses

import pytest

from driver import names
from driver.resources.dra import slices, taint_rules
from driver.scheduling.device_ownership import rule_plan, rule_taints

RULE = taint_rules.TaintRule("rule", slices.Taint("example.com/hot", "", "NoSchedule"), True)  # noqa: FBT003


@pytest.mark.parametrize("taint", [rule_plan.RuleTaint.ALLOCATOR, rule_plan.RuleTaint.HANDOVER])
def test_a_rendered_taint_is_known_again(taint: rule_plan.RuleTaint) -> None:
    parsed = slices.parse_taint(rule_taints.render_taint(taint), "taint")
    later = dataclasses.replace(parsed, added="2026-11-21T09:00:00Z")
    assert rule_taints.shown_taint(dataclasses.replace(RULE, taint=later)) is taint


@pytest.mark.parametrize(
    "taint",
    [
        RULE.taint,
        slices.Taint(names.ALLOCATOR_TAINT, "", "NoSchedule"),
        slices.Taint(names.ALLOCATOR_TAINT, "controller", "NoExecute"),
        slices.Taint(names.HANDOVER_TAINT, "x", "NoSchedule"),
    ],
)
def test_any_other_taint_is_neither(taint: slices.Taint) -> None:
    rule = dataclasses.replace(RULE, taint=taint)
    assert rule_taints.shown_taint(rule) is rule_plan.RuleTaint.OTHER
