"""Checks of other drivers whose devices the controller allocates, by DeviceTaintRules (D2)."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from driver import reasons, remediation
from driver.cli.doctor.checks import facts, findings
from driver.resources import fields
from driver.resources.core import nodes as node_objects
from driver.resources.core import pods as pod_objects
from driver.resources.dra import slices, taint_rules
from driver.scheduling.device_ownership import desired, rule_plan, rule_taints

_CHECK = "managed drivers"
_GATE = "DRADeviceTaintRules"
_LATE = dt.timedelta(seconds=2 * rule_plan.HANDOVER_S)
_SHOWN = 5
_SERVE = (
    f"feature gate {_GATE} in kube-apiserver, kube-controller-manager and kube-scheduler; on "
    "Kubernetes 1.36 also --runtime-config=resource.k8s.io/v1beta2=true"
)
_Taint = rule_plan.RuleTaint
_Findings = Iterator[findings.Finding]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule of the controller; `age`: for how long it has shown its taint, by the server."""

    name: str
    selector: rule_plan.DeviceSelector
    taint: rule_plan.RuleTaint
    age: dt.timedelta


def served(seen: facts.Facts) -> _Findings:
    """The API server serves DeviceTaintRules and acts on them, where a driver is managed."""
    managed, drivers = seen.managed, facts.managed_drivers(seen)
    for listing in (managed.drivers, managed.slices, managed.pods):
        if isinstance(listing, facts.Unreadable):
            yield findings.unreadable_finding(_CHECK, listing)
    if isinstance(managed.rules, facts.Unreadable):
        if not managed.rules.missing:
            yield findings.unreadable_finding(_CHECK, managed.rules)
        elif drivers:
            yield _wrong("DeviceTaintRules are not served: kube-scheduler allocates", _SERVE)
    elif drivers and not seen.gates.get(_GATE, True):
        text = f"feature gate {_GATE} is off in the API server: kube-scheduler allocates"
        yield _wrong(text, _SERVE)


def rules(seen: facts.Facts) -> _Findings:
    """Each managed driver has its rules, and each of them shows the allocator taint."""
    if isinstance(seen.managed.rules, facts.Unreadable):
        return  # `served` has told
    present = [_parse_rule(rule, seen.now) for rule in seen.managed.rules]
    selectors = _desired(seen)
    for driver in facts.managed_drivers(seen):
        yield from _driver_findings(
            driver,
            [rule for rule in present if rule.selector.driver == driver.name],
            [selector for selector in selectors if selector.driver == driver.name],
            seen,
        )
    if not isinstance(seen.managed.drivers, facts.Unreadable):
        listed = {driver.name for driver in seen.managed.drivers}
        for rule in present:
            if rule.selector.driver not in listed:
                yield _unlisted(rule)


def classes(seen: facts.Facts) -> _Findings:
    """Claims have a DeviceClass of each managed driver to name."""
    if isinstance(seen.classes, facts.Unreadable):
        return  # `api` has told
    for driver in facts.managed_drivers(seen):
        if not any(facts.selects_driver(entry, driver.name) for entry in seen.classes):
            text = f"no DeviceClass selects devices of {driver.name}"
            yield findings.Finding(_CHECK, findings.State.NOTE, text, "it comes with that driver")


def mixed_claims(seen: facts.Facts) -> _Findings:
    """No pod waits with a claim that needs both allocators."""
    if isinstance(seen.managed.pods, facts.Unreadable):
        return  # `served` has told
    waiting = [
        (pod.key, pod.pending.message)
        for pod in map(pod_objects.parse, seen.managed.pods)
        if pod.pending is not None and pod.pending.reason == reasons.Reason.FOREIGN_DEVICES.value
    ]
    fix = remediation.remedy(reasons.Reason.FOREIGN_DEVICES)
    for key, message in sorted(waiting)[:_SHOWN]:
        yield _wrong(f"pod {key}: {message}", fix)
    if len(waiting) > _SHOWN:
        yield _wrong(f"{len(waiting) - _SHOWN} more pods wait for the same reason", fix)


def _driver_findings(
    driver: desired.ManagedDriver,
    present: list[_Rule],
    selectors: list[rule_plan.DeviceSelector],
    seen: facts.Facts,
) -> _Findings:
    if _publishes_nothing(driver, seen):
        text = f"{driver.name} publishes no device"
        fix = f"kubectl get resourceslices --field-selector spec.driver={driver.name}"
        yield findings.Finding(_CHECK, findings.State.NOTE, text, fix)
    missing = [
        selector
        for selector in selectors
        if not any(rule.selector.covers(selector) for rule in present)
    ]
    if missing:
        shown = ", ".join(sorted(map(str, missing))[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        text = f"no DeviceTaintRule for {shown}{more}: kube-scheduler allocates"
        yield _wrong(text, f"wait a few seconds, then {facts.logs_command(seen, 'controller')}")
    elif not selectors and not present:
        text = f"no node of {driver.name} matches its nodeSelector: kube-scheduler allocates"
        yield findings.Finding(_CHECK, findings.State.NOTE, text)
    changing = [finding for rule in present for finding in _rule_findings(rule, seen)]
    yield from changing
    if present and not changing and not missing:
        count = f"{len(present)} rule{'' if len(present) == 1 else 's'}"
        text = f"the controller allocates devices of {driver.name}, by {count}"
        yield findings.Finding(_CHECK, findings.State.FINE, text)


def _rule_findings(rule: _Rule, seen: facts.Facts) -> _Findings:
    """Yield what keeps a rule from making the controller the allocator."""
    logs = facts.logs_command(seen, "controller")
    if rule.taint is _Taint.OTHER:
        text = f"rule {rule.name} was edited, and shows another taint"
        yield _wrong(text, f"wait for 30 s: the controller puts it right; then {logs}")
    elif rule.taint is _Taint.HANDOVER:
        seconds = f"{rule.age.total_seconds():.0f} s"
        text = f"rule {rule.name} shows the handover for {seconds}: nobody allocates its devices"
        if rule.age <= _LATE:
            yield findings.Finding(_CHECK, findings.State.NOTE, text, "wait for 30 s")
        else:
            fix = f"kubectl describe devicetaintrule {rule.name}: its events say why; {logs}"
            yield _wrong(text, fix)


def _unlisted(rule: _Rule) -> findings.Finding:
    driver = rule.selector.driver or "any driver"
    if rule.taint is _Taint.HANDOVER and rule.age <= _LATE:
        text = f"rule {rule.name} is being removed: {driver} is not listed any more"
        return findings.Finding(_CHECK, findings.State.NOTE, text, "wait for 30 s")
    text = (
        f"rule {rule.name} keeps devices of {driver} from kube-scheduler, and "
        "controller.managedDrivers does not list it"
    )
    fix = (
        f"list it, or kubectl delete devicetaintrule {rule.name}; installed elsewhere: --namespace"
    )
    return _wrong(text, fix)


def _publishes_nothing(driver: desired.ManagedDriver, seen: facts.Facts) -> bool:
    published = seen.managed.slices
    return not isinstance(published, facts.Unreadable) and not any(
        fields.mapping(item, "spec").get("driver") == driver.name for item in published
    )


def _desired(seen: facts.Facts) -> frozenset[rule_plan.DeviceSelector]:
    """Return the selectors that rules are due for, as far as nodes and pools could be read."""
    drivers = facts.managed_drivers(seen)
    raw_nodes, raw_slices = seen.nodes, seen.managed.slices
    live = [] if isinstance(raw_nodes, facts.Unreadable) else map(node_objects.parse, raw_nodes)
    published = [] if isinstance(raw_slices, facts.Unreadable) else map(slices.parse, raw_slices)
    pools = desired.pool_nodes(published, drivers)
    return desired.desired_selectors(drivers, pools, {node.name: node for node in live})


def _parse_rule(raw: fields.Raw, now: dt.datetime) -> _Rule:
    rule = taint_rules.parse(raw)
    taint = fields.mapping(fields.mapping(raw, "spec"), "taint")
    added = fields.text(taint, "timeAdded")
    age = now - facts.parse_time(added) if added else dt.timedelta(0)
    selector = rule_plan.DeviceSelector(rule.driver, rule.pool, rule.device)
    return _Rule(rule.name, selector, rule_taints.shown_taint(rule), age)


def _wrong(text: str, fix: str) -> findings.Finding:
    return findings.Finding(_CHECK, findings.State.WRONG, text, fix)
