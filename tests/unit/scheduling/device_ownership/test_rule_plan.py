import re

import pytest

from driver.scheduling.device_ownership import rule_plan

DRIVER = "gpu.example.com"
EVERYWHERE = rule_plan.DeviceSelector(DRIVER)
POOL = rule_plan.DeviceSelector(DRIVER, "node-a")
OTHER_POOL = rule_plan.DeviceSelector(DRIVER, "node-b")
ALLOCATOR, HANDOVER = rule_plan.RuleTaint.ALLOCATOR, rule_plan.RuleTaint.HANDOVER
OTHER = rule_plan.RuleTaint.OTHER


def a_rule(
    selector: rule_plan.DeviceSelector,
    taint: rule_plan.RuleTaint,
    seen_s: float = 0.0,
    name: str = "",
) -> rule_plan.AllocatorRule:
    return rule_plan.AllocatorRule(name or rule_plan.rule_name(selector), selector, taint, seen_s)


def plan(
    *rules: rule_plan.AllocatorRule, desired: tuple[rule_plan.DeviceSelector, ...] = ()
) -> tuple[rule_plan.Write, ...]:
    return rule_plan.plan_writes(frozenset(desired), rules)


def test_a_new_selector_begins_with_a_handover() -> None:
    assert plan(desired=(POOL,)) == (rule_plan.Create(POOL, HANDOVER),)


@pytest.mark.parametrize(("seen_s", "is_over"), [(0.0, False), (29.9, False), (30.0, True)])
def test_a_handover_to_the_controller_takes_thirty_seconds(seen_s: float, *, is_over: bool) -> None:
    rule = a_rule(POOL, HANDOVER, seen_s)
    expected = (rule_plan.SetTaint(rule, ALLOCATOR),) if is_over else ()
    assert plan(rule, desired=(POOL,)) == expected


def test_a_handover_does_not_end_before_kubernetes_acknowledges_the_rule() -> None:
    name = rule_plan.rule_name(POOL)
    rule = rule_plan.AllocatorRule(name, POOL, HANDOVER, 90.0, acknowledged=False)
    assert plan(rule, desired=(POOL,)) == ()
    assert plan(rule) == (rule_plan.Delete(rule),)


def test_a_rule_that_is_no_longer_desired_begins_a_handover() -> None:
    rule = a_rule(POOL, ALLOCATOR, 3600.0)
    assert plan(rule) == (rule_plan.SetTaint(rule, HANDOVER),)


@pytest.mark.parametrize(("seen_s", "is_over"), [(29.9, False), (30.0, True)])
def test_a_rule_goes_thirty_seconds_after_its_handover_began(
    seen_s: float, *, is_over: bool
) -> None:
    rule = a_rule(POOL, HANDOVER, seen_s)
    assert plan(rule) == ((rule_plan.Delete(rule),) if is_over else ())


def test_a_pool_under_an_allocator_rule_needs_no_handover_of_its_own() -> None:
    rule = a_rule(EVERYWHERE, ALLOCATOR)
    creation, change = plan(rule, desired=(POOL,))
    assert creation == rule_plan.Create(POOL, ALLOCATOR)
    assert change == rule_plan.SetTaint(rule, HANDOVER)


def test_a_pool_under_a_rule_in_handover_begins_its_own() -> None:
    rule = a_rule(EVERYWHERE, HANDOVER)
    assert plan(rule, desired=(POOL,)) == (rule_plan.Create(POOL, HANDOVER),)


def test_a_covered_rule_goes_at_once() -> None:
    wide = a_rule(EVERYWHERE, ALLOCATOR)
    for taint in rule_plan.RuleTaint:
        rule = a_rule(POOL, taint)
        assert plan(wide, rule, desired=(EVERYWHERE,)) == (rule_plan.Delete(rule),)


def test_a_rule_waits_for_the_handover_of_the_rule_that_will_cover_it() -> None:
    rule = a_rule(POOL, ALLOCATOR)
    assert plan(rule, desired=(EVERYWHERE,)) == (rule_plan.Create(EVERYWHERE, HANDOVER),)
    wide = a_rule(EVERYWHERE, HANDOVER, 10.0)
    assert plan(wide, rule, desired=(EVERYWHERE,)) == ()


def test_an_edited_taint_is_replaced_by_a_handover() -> None:
    rule = a_rule(POOL, OTHER, 3600.0)
    for desired in ((POOL,), ()):
        assert plan(rule, desired=desired) == (rule_plan.SetTaint(rule, HANDOVER),)


def test_a_rule_with_an_edited_selector_passes_back_before_its_name_is_used() -> None:
    name = rule_plan.rule_name(POOL)
    rule = a_rule(OTHER_POOL, ALLOCATOR, name=name)
    assert plan(rule, desired=(POOL,)) == (rule_plan.SetTaint(rule, HANDOVER),)
    narrower = a_rule(rule_plan.DeviceSelector(DRIVER, "node-a", "gpu-0"), ALLOCATOR, name=name)
    assert plan(narrower, desired=(POOL,)) == (rule_plan.SetTaint(narrower, HANDOVER),)


def test_a_rule_that_selects_no_device_passes_back_too() -> None:
    rule = rule_plan.AllocatorRule("ration-driver-x", None, ALLOCATOR)
    assert plan(rule, desired=(POOL,))[1:] == (rule_plan.SetTaint(rule, HANDOVER),)


def test_names_are_dns_subdomains_and_differ() -> None:
    long = rule_plan.DeviceSelector("a" * 63, f"{'p' * 200}/{'q' * 52}")
    selectors = (EVERYWHERE, POOL, OTHER_POOL, long)
    results = [rule_plan.rule_name(selector) for selector in selectors]
    assert len({*results}) == len(results)
    for result in results:
        assert len(result) <= 253
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", result)
