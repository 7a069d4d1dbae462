"""Checks that Ration can work in the cluster."""

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
    if isinstance(seen.version, facts.Unreadable):
        yield findings.unreadable_finding("kubernetes", seen.version)
        return
    old = version_support.check_version(seen.version)
    if old is None or not facts.has_plugin(seen):
        yield findings.Finding("kubernetes", findings.State.FINE, f"Kubernetes {seen.version}")
        return
    fix = "upgrade; until then nodes publish whole GPUs and MIG devices made beforehand only"
    yield findings.Finding("kubernetes", findings.State.WRONG, old, fix)


def api(seen: facts.Facts) -> Iterator[findings.Finding]:
    """resource.k8s.io/v1 is served."""
    if not isinstance(seen.classes, facts.Unreadable):
        yield findings.Finding("api", findings.State.FINE, "resource.k8s.io/v1 is served")
    elif seen.classes.missing:
        fix = "Kubernetes 1.34 or later, without --runtime-config switching resource.k8s.io/v1 off"
        yield findings.Finding("api", findings.State.WRONG, "resource.k8s.io/v1 is not served", fix)
    else:
        yield findings.unreadable_finding("api", seen.classes)


def classes(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Claims have a DeviceClass of this driver to name."""
    if isinstance(seen.classes, facts.Unreadable):
        return  # `api` has told
    if not facts.has_plugin(seen):
        return  # classes come with the managed drivers
    ours = sorted(
        facts.name(class_) for class_ in seen.classes if facts.selects_driver(class_, seen.driver)
    )
    if ours:
        yield findings.Finding("classes", findings.State.FINE, f"DeviceClasses {', '.join(ours)}")
        return
    fix = "helm upgrade with deviceClasses.gpu.enabled=true, and driverName as installed"
    text = f"no DeviceClass selects devices of {seen.driver}"
    yield findings.Finding("classes", findings.State.WRONG, text, fix)


def features(seen: facts.Facts) -> Iterator[findings.Finding]:
    """No field of the slices was dropped by a feature gate that is off (D17)."""
    if isinstance(seen.slices, facts.Unreadable):
        yield findings.unreadable_finding("features", seen.slices)
        return
    gates_on = [device for device in facts.devices(seen.slices) if facts.is_allocatable(device)]
    ours = [device for device in gates_on if facts.attribute(device, names.ATTR_ALLOCATOR)]
    untainted = [
        device
        for device in ours
        if facts.attribute(device, names.ATTR_ALLOCATOR) == "controller"
        and not facts.taints(device)
    ]
    fix = f"switch on the feature gates {_FEATURES} in the API server, scheduler and kubelet"
    if untainted:
        text = (
            "the API server drops the devices' taints: kube-scheduler takes what is the "
            "controller's"
        )
        yield findings.Finding("features", findings.State.WRONG, text, fix)
    elif ours and not any("consumesCounters" in device for device in ours):
        text = "sharing is off: devices are published without counters (event SharingDisabled)"
        yield findings.Finding("features", findings.State.WRONG, text, fix)
    elif ours:
        yield findings.Finding(
            "features", findings.State.FINE, "counters and taints of the slices are kept"
        )


def gates(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Feature gates that the API server says are off; where it does not tell, nothing is said."""
    off = [item for item, gates_on in seen.gates.items() if not gates_on]
    for item in off:
        if item in _GATES:
            text = f"feature gate {item} is off in the API server: no {_GATES[item]}"
            fix = f"--feature-gates={item}=true for kube-apiserver, kube-scheduler and kubelets"
            yield findings.Finding("feature gates", findings.State.WRONG, text, fix)
        elif item in _EXTRA_GATES:
            text = f"feature gate {item} is off in the API server: {_EXTRA_GATES[item]}"
            yield findings.Finding("feature gates", findings.State.NOTE, text)
    if seen.gates and not {*off} & {*_GATES}:
        text = "those that Ration needs are on in the API server"
        yield findings.Finding("feature gates", findings.State.FINE, text)
