"""Checks that a controller allocates, and that the chart's pods are ready."""

import datetime as dt
from collections.abc import Iterator

from driver import names
from driver.cli.doctor.checks import facts, findings
from driver.resources import fields

LEASE = "ration-controller"
_COMPONENTS = ("controller", "kubeletplugin", "mps", "admission")
_APART = dt.timedelta(seconds=30)
"""By which the caller's clock may differ from the cluster's."""


def lease(seen: facts.Facts) -> Iterator[findings.Finding]:
    """A controller leads, and has said so lately."""
    if isinstance(seen.leases, facts.Unreadable):
        yield findings.unreadable_finding("controller", seen.leases)
        return
    result = next((item for item in seen.leases if facts.name(item) == LEASE), None)
    path = f"in namespace {seen.namespace}"
    spec = fields.mapping(result, "spec") if result is not None else {}
    holder = fields.text(spec, "holderIdentity")
    if not holder:
        yield _nobody(seen, f"no controller leads {path}")
        return
    age = seen.now - facts.parse_time(fields.text(spec, "renewTime"))
    lasts = dt.timedelta(seconds=fields.integer(spec, "leaseDurationSeconds", default=15))
    if age > lasts + _APART:
        text = f"{holder}, which led {path}, was last heard of {_ago(age)} ago"
        yield findings.Finding(
            "controller", findings.State.WRONG, text, facts.logs_command(seen, "controller")
        )
    else:
        yield findings.Finding("controller", findings.State.FINE, f"{holder} leads")


def _nobody(seen: facts.Facts, text: str) -> findings.Finding:
    """Return the finding for a missing leader; a failure where devices wait for a controller."""
    slices = () if isinstance(seen.slices, facts.Unreadable) else seen.slices
    own = any(
        facts.attribute(device, names.ATTR_ALLOCATOR) == "controller"
        for device in facts.devices(slices)
    )
    rules = () if isinstance(seen.managed.rules, facts.Unreadable) else seen.managed.rules
    if not own and not rules:
        return findings.Finding(
            "controller", findings.State.NOTE, f"{text}; kube-scheduler allocates"
        )
    without = [f"kubectl label node --all {names.ALLOCATOR_LABEL}=scheduler"] if own else []
    without += [f"kubectl delete devicetaintrules -l {names.ALLOCATOR_RULE}=true"] if rules else []
    logs = facts.logs_command(seen, "controller")
    fix = f"{logs}; installed elsewhere: --namespace; to do without: {'; '.join(without)}"
    return findings.Finding(
        "controller", findings.State.WRONG, f"{text}, and nothing new can start", fix
    )


def pods(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Every pod of the chart is ready."""
    if isinstance(seen.pods, facts.Unreadable):
        yield findings.unreadable_finding("pods", seen.pods)
        return
    ours = [pod for pod in seen.pods if facts.labels(pod).get(facts.COMPONENT) in _COMPONENTS]
    if not ours:
        text = f"no pod of the chart in namespace {seen.namespace}"
        fix = "installed elsewhere: --namespace"
        yield findings.Finding("pods", findings.State.NOTE, text, fix)
    for component in _COMPONENTS:
        owner = [pod for pod in ours if facts.labels(pod)[facts.COMPONENT] == component]
        late = sorted(facts.name(pod) for pod in owner if not _is_ready(pod))
        if late:
            text = f"{component}: {len(late)} of {len(owner)} not ready: {', '.join(late[:5])}"
            yield findings.Finding(
                "pods", findings.State.WRONG, text, facts.logs_command(seen, component)
            )
        elif owner:
            yield findings.Finding("pods", findings.State.FINE, f"{component}: {len(owner)} ready")


def _is_ready(pod: fields.Raw) -> bool:
    status = fields.mapping(pod, "status")
    return fields.text(status, "phase") == "Succeeded" or any(
        item.get("type") == "Ready" and item.get("status") == "True"
        for _, item in fields.objects(status, "conditions")
    )


def _ago(age: dt.timedelta) -> str:
    return f"{age.total_seconds():.0f} s" if age < dt.timedelta(days=365) else "ages"
