"""Whether the cluster is one that Ration can work in."""

from collections.abc import Iterator

from driver import names
from driver.cli.doctor.checks import facts, findings
from driver.resources.dra import version_support

_GATES = {
    "DRAPartitionableDevices": "MIG and shares of a GPU",
    "DRAConsumableCapacity": "shares by amount",
    "DRADeviceTaints": "taints, which say who allocates and what is broken",
    "DRAResourceClaimDeviceStatus": "what a claim's status says of its devices",
}
"""What is lost without each."""
_EXTRA_GATES = {
    "DRADeviceTaintRules": "nodes are cordoned by their annotation",
    "DRADeviceBindingConditions": "a gang's pods may be bound one by one",
}
"""What is so without each, and is nothing to repair."""
_FEATURES = "DRAPartitionableDevices, DRAConsumableCapacity and DRADeviceTaints"


def version(seen: facts.Facts) -> Iterator[findings.Finding]:
    """At or above the floor (D17)."""
    if isinstance(seen.version, facts.Unseen):
        yield findings.unseen("kubernetes", seen.version)
        return
    old = version_support.check_version(seen.version)
    if old is None:
        yield findings.Finding("kubernetes", findings.State.FINE, f"Kubernetes {seen.version}")
        return
    fix = "upgrade; until then nodes publish whole GPUs and MIG devices made beforehand only"
    yield findings.Finding("kubernetes", findings.State.WRONG, old, fix)


def api(seen: facts.Facts) -> Iterator[findings.Finding]:
    """resource.k8s.io/v1 is served."""
    if not isinstance(seen.classes, facts.Unseen):
        yield findings.Finding("api", findings.State.FINE, "resource.k8s.io/v1 is served")
    elif seen.classes.missing:
        fix = "Kubernetes 1.34 or later, without --runtime-config switching resource.k8s.io/v1 off"
        yield findings.Finding("api", findings.State.WRONG, "resource.k8s.io/v1 is not served", fix)
    else:
        yield findings.unseen("api", seen.classes)


def classes(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Claims have a DeviceClass of this driver to name."""
    if isinstance(seen.classes, facts.Unseen):
        return  # `api` has told
    quoted = (f'"{seen.driver}"', f"'{seen.driver}'")
    ours = sorted(
        facts.name(one) for one in seen.classes if any(name in str(one["spec"]) for name in quoted)
    )
    if ours:
        yield findings.Finding("classes", findings.State.FINE, f"DeviceClasses {', '.join(ours)}")
        return
    fix = "helm upgrade with deviceClasses.gpu.enabled=true, and driverName as installed"
    text = f"no DeviceClass selects devices of {seen.driver}"
    yield findings.Finding("classes", findings.State.WRONG, text, fix)


def features(seen: facts.Facts) -> Iterator[findings.Finding]:
    """No field of the slices was dropped by a feature gate that is off (D17)."""
    if isinstance(seen.slices, facts.Unseen):
        yield findings.unseen("features", seen.slices)
        return
    given = [one for one in facts.devices(seen.slices) if facts.is_given(one)]
    ours = [one for one in given if facts.attribute(one, names.ATTR_ALLOCATOR)]
    untainted = [
        one
        for one in ours
        if facts.attribute(one, names.ATTR_ALLOCATOR) == "controller" and not facts.taints(one)
    ]
    fix = f"switch on the feature gates {_FEATURES} in the API server, scheduler and kubelet"
    if untainted:
        text = (
            "the API server drops the devices' taints: kube-scheduler takes what is the "
            "controller's"
        )
        yield findings.Finding("features", findings.State.WRONG, text, fix)
    elif ours and not any("consumesCounters" in one for one in ours):
        text = "sharing is off: devices are published without counters (event SharingOff)"
        yield findings.Finding("features", findings.State.WRONG, text, fix)
    elif ours:
        yield findings.Finding(
            "features", findings.State.FINE, "counters and taints of the slices are kept"
        )


def gates(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Feature gates that the API server says are off; where it does not tell, nothing is said."""
    off = [one for one, given in seen.gates.items() if not given]
    for one in off:
        if one in _GATES:
            text = f"feature gate {one} is off in the API server: no {_GATES[one]}"
            fix = f"--feature-gates={one}=true for kube-apiserver, kube-scheduler and kubelets"
            yield findings.Finding("feature gates", findings.State.WRONG, text, fix)
        elif one in _EXTRA_GATES:
            text = f"feature gate {one} is off in the API server: {_EXTRA_GATES[one]}"
            yield findings.Finding("feature gates", findings.State.NOTE, text)
    if seen.gates and not {*off} & {*_GATES}:
        text = "those that Ration needs are on in the API server"
        yield findings.Finding("feature gates", findings.State.FINE, text)
