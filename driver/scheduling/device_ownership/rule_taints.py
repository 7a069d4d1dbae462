"""Taints of the controller's DeviceTaintRules, both ways. Pure."""

from driver import names
from driver.resources.dra import taint_rules
from driver.scheduling.device_ownership import rule_plan

_TAINTS = {
    rule_plan.RuleTaint.ALLOCATOR: (names.ALLOCATOR_TAINT, "controller"),
    rule_plan.RuleTaint.HANDOVER: (names.HANDOVER_TAINT, ""),
}
_EFFECT = "NoSchedule"


def shown_taint(rule: taint_rules.TaintRule) -> rule_plan.RuleTaint:
    """Return the taint that a rule shows."""
    shown = rule.taint.key, rule.taint.value, rule.taint.effect
    for taint, (key, value) in _TAINTS.items():
        if shown == (key, value, _EFFECT):
            return taint
    return rule_plan.RuleTaint.OTHER


def render_taint(taint: rule_plan.RuleTaint) -> dict[str, str]:
    """Return a taint as the API writes it; raise KeyError for OTHER."""
    key, value = _TAINTS[taint]
    return {"key": key, "effect": _EFFECT} | ({"value": value} if value else {})
