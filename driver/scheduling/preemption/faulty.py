"""Which workloads are on GPUs that failed, and which of them are to run elsewhere. Pure.

A GPU failed whose devices have a taint of a reset-, node- or hardware-class fault; what is only
told of it (effect None), a quarantine of what works again and a call that hangs are none. On a node
that is about to be taken away all of them fail at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from driver import ids, names, reasons
from driver.resources.dra import claims, slices
from driver.scheduling.explain import holders
from driver.scheduling.preemption import victims
from driver.scheduling.snapshot import snapshot

FAULTS = frozenset({names.TAINT_LOST, names.TAINT_XID, names.TAINT_RECOVERY, names.TAINT_ECC})
REPLACE, KEEP = "replace", "keep"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a device, in words; `interrupted`: its whole node goes."""

    device: claims.DeviceId
    message: str
    is_interrupted: bool = False

    @property
    def eviction_reason(self) -> reasons.Reason:
        """Why pods on it are evicted."""
        return reasons.Reason.NODE_INTERRUPTED if self.is_interrupted else reasons.Reason.PREEMPTED

    @property
    def kept_reason(self) -> reasons.Reason:
        """What those are told that stay."""
        return reasons.Reason.NODE_INTERRUPTED if self.is_interrupted else reasons.Reason.FAULT_KEPT


def faulty_devices(view: snapshot.Snapshot, node: ids.NodeName) -> Iterator[Fault]:
    """Devices of a node that somebody has and that failed, with what is wrong with them."""
    if node not in view.nodes:
        return
    leaving = view.nodes[node].leaving
    goes = f"{node} is about to be taken away (taint {leaving})"
    for share in view.reachable_pools(node):
        pool = share.pool
        if pool.driver != view.driver:
            continue
        for name in sorted(view.used_devices(pool)):
            device, found = claims.DeviceId(pool.driver, pool.name, name), pool.devices.get(name)
            why = _fault_description(found) if found is not None else ""
            if leaving:
                yield Fault(device, goes, is_interrupted=True)
            elif why:
                yield Fault(device, f"{name} on {node} failed ({why})")


def _fault_description(device: slices.Device) -> str:
    wrong = (
        f"{taint.key.rpartition('/')[2]} {taint.value}"
        for taint in device.taints
        if taint.key in FAULTS and taint.effect != "None" and not _may_pass(taint)
    )
    return ", ".join(wrong)


def _may_pass(taint: slices.Taint) -> bool:
    """Whether it may go by itself: a call hangs, which one that is grave tells by an Xid, too."""
    return taint.key == names.TAINT_LOST and taint.value in names.LOST_FOR_NOW


def should_replace(unit: victims.Victim) -> bool:
    """Whether a workload is to be placed elsewhere: a gang unless it says keep, a pod if it asks.

    What its pods say is the annotation `ration.dev/on-fault`.
    """
    said = {one.pod.on_fault for one in unit.pods}
    if KEEP in said:
        return False
    return REPLACE in said or any(one.pod.gang for one in unit.pods)


def irreplaceable_reason(unit: victims.Victim) -> str:
    """Why it cannot be: nobody would make a pod of it again elsewhere; "" where all would be."""
    lost = (
        one.pod.key
        for one in unit.pods
        if holders.returns_to_node(one.pod) or (one.pod.owner is None and not one.pod.preemptible)
    )
    pod = next(lost, None)
    return f"nobody would make pod {pod} again elsewhere" if pod is not None else ""
