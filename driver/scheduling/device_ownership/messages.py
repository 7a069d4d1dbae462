"""Events of handovers between kube-scheduler and the controller. Pure."""

from collections.abc import Set as AbstractSet

from driver import reasons
from driver.scheduling.device_ownership import rule_plan

Event = tuple[reasons.Reason, str]
_PAUSE = f"nobody allocates them for {rule_plan.HANDOVER_S:.0f} s"


def event(write: rule_plan.Write, desired: AbstractSet[rule_plan.DeviceSelector]) -> Event | None:
    """Return the event of a write that begins or ends a handover; None for any other."""
    taint = rule_plan.RuleTaint
    match write:
        case rule_plan.Create(selector, taint.HANDOVER):
            return _changing(selector, "pass from kube-scheduler to the controller")
        case rule_plan.SetTaint(rule, taint.HANDOVER) if rule.selector in desired:
            return _changing(rule.selector, "were marked otherwise by another client")
        case rule_plan.SetTaint(rule, taint.HANDOVER):
            return _changing(rule.selector, "pass from the controller to kube-scheduler")
        case rule_plan.SetTaint(rule, taint.ALLOCATOR):
            return _changed(rule.selector, "the controller")
        case rule_plan.Delete(rule) if not _is_covered(rule, desired):
            return _changed(rule.selector, "kube-scheduler")
        case _:
            return None


def _changing(selector: rule_plan.DeviceSelector | None, text: str) -> Event:
    return reasons.Reason.ALLOCATOR_CHANGING, f"devices of {_shown(selector)} {text}: {_PAUSE}"


def _changed(selector: rule_plan.DeviceSelector | None, allocator: str) -> Event:
    return reasons.Reason.ALLOCATOR_CHANGED, f"{allocator} allocates devices of {_shown(selector)}"


def _shown(selector: rule_plan.DeviceSelector | None) -> str:
    return "no driver" if selector is None else str(selector)


def _is_covered(
    rule: rule_plan.AllocatorRule, desired: AbstractSet[rule_plan.DeviceSelector]
) -> bool:
    selector = rule.selector
    return selector is not None and any(entry.covers(selector) for entry in desired)
