import pytest

from driver import reasons
from driver.scheduling.device_ownership import messages, rule_plan

ALLOCATOR, HANDOVER = rule_plan.RuleTaint.ALLOCATOR, rule_plan.RuleTaint.HANDOVER
POOL = rule_plan.DeviceSelector("gpu.example.com", "node-a")
RULE = rule_plan.AllocatorRule(rule_plan.rule_name(POOL), POOL, HANDOVER)
CHANGING, CHANGED = reasons.Reason.ALLOCATOR_CHANGING, reasons.Reason.ALLOCATOR_CHANGED
DEVICES = "devices of driver gpu.example.com, pool node-a"


@pytest.mark.parametrize(
    ("write", "is_desired", "reason", "text"),
    [
        (
            rule_plan.Create(POOL, HANDOVER),
            True,
            CHANGING,
            f"{DEVICES} pass from kube-scheduler to the controller: nobody allocates them for 30 s",
        ),
        (
            rule_plan.SetTaint(RULE, HANDOVER),
            False,
            CHANGING,
            f"{DEVICES} pass from the controller to kube-scheduler: nobody allocates them for 30 s",
        ),
        (
            rule_plan.SetTaint(RULE, HANDOVER),
            True,
            CHANGING,
            f"{DEVICES} were marked otherwise by another client: nobody allocates them for 30 s",
        ),
        (
            rule_plan.SetTaint(RULE, ALLOCATOR),
            True,
            CHANGED,
            f"the controller allocates {DEVICES}",
        ),
        (rule_plan.Delete(RULE), False, CHANGED, f"kube-scheduler allocates {DEVICES}"),
    ],
)
def test_the_begin_and_the_end_of_a_handover_are_events(
    write: rule_plan.Write, reason: reasons.Reason, text: str, *, is_desired: bool
) -> None:
    selectors = frozenset({POOL}) if is_desired else frozenset()
    assert messages.event(write, selectors) == (reason, text)


def test_writes_without_a_handover_are_no_events() -> None:
    wide = frozenset({rule_plan.DeviceSelector("gpu.example.com")})
    for write in (rule_plan.Create(POOL, ALLOCATOR), rule_plan.Delete(RULE)):
        assert messages.event(write, wide) is None
