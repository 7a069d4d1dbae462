"""Workloads on failed GPUs, and those to run elsewhere. Pure.

A GPU has failed if its devices have a taint that its driver puts on failed ones, but not if that is
informational (effect None), a quarantine of a working GPU, or a call that hangs. On a node that is
about to be removed all of them fail at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from driver import ids, names, reasons
from driver.resources.dra import claims, slices
from driver.scheduling.allocator.capacity import vocabulary
from driver.scheduling.explain import holders
from driver.scheduling.preemption import victims
from driver.scheduling.snapshot import snapshot

REPLACE, KEEP = "replace", "keep"


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault of a device, in words; `is_interrupted`: its whole node is removed."""

    device: claims.DeviceId
    message: str
    is_interrupted: bool = False

    @property
    def eviction_reason(self) -> reasons.Reason:
        """Reason for the eviction of its pods."""
        return reasons.Reason.NODE_INTERRUPTED if self.is_interrupted else reasons.Reason.PREEMPTED

    @property
    def kept_reason(self) -> reasons.Reason:
        """Reason reported on pods that are not evicted."""
        return (
            reasons.Reason.NODE_INTERRUPTED
            if self.is_interrupted
            else reasons.Reason.FAULT_EVICTION_NOT_ALLOWED
        )


def faulty_devices(view: snapshot.Snapshot, node: ids.NodeName) -> Iterator[Fault]:
    """Yield the allocated devices of a node that failed, with their faults."""
    if node not in view.nodes:
        return
    leaving = view.nodes[node].leaving
    goes = f"{node} is about to be removed (taint {leaving})"
    for share in view.reachable_pools(node):
        pool = share.pool
        if pool.driver not in view.managed_drivers:
            continue
        fault_taints = vocabulary.vocabulary(pool).fault_taints
        for name in sorted(view.used_devices(pool)):
            device, published = (
                claims.DeviceId(pool.driver, pool.name, name),
                pool.devices.get(name),
            )
            description = _fault_description(published, fault_taints) if published else ""
            if leaving:
                yield Fault(device, goes, is_interrupted=True)
            elif description:
                yield Fault(device, f"{name} on {node} failed ({description})")


def _fault_description(device: slices.Device, fault_taints: tuple[str, ...]) -> str:
    wrong = (
        f"{taint.key.rpartition('/')[2]} {taint.value}"
        for taint in device.taints
        if taint.key.startswith(fault_taints) and taint.effect != "None" and not _may_pass(taint)
    )
    return ", ".join(wrong)


def _may_pass(taint: slices.Taint) -> bool:
    """Return whether the fault may pass: a hanging call; if grave, an Xid reports it too."""
    return taint.key == names.TAINT_LOST and taint.value in names.LOST_FOR_NOW


def should_replace(victim: victims.Victim) -> bool:
    """Return whether a workload is to be placed elsewhere: gangs unless opted out, pods on opt-in.

    Its pods say so by the annotation `ration.dev/on-fault`.
    """
    annotations = {holder.pod.on_fault for holder in victim.pods}
    if KEEP in annotations:
        return False
    return REPLACE in annotations or victim.is_gang


def irreplaceable_reason(victim: victims.Victim) -> str:
    """Return why it cannot be: no controller would recreate a pod of it elsewhere; "" if it can."""
    lost = (
        holder.pod.key
        for holder in victim.pods
        if holders.returns_to_node(holder.pod)
        or (holder.pod.owner is None and not holder.pod.preemptible)
    )
    pod = next(lost, None)
    if pod is None:
        return ""
    return f"pod {pod} has no controller that would recreate it elsewhere"
