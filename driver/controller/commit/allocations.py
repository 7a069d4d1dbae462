"""Allocation writer: the only code that mutates claims after a decision (D3).

Adds the finalizer first, then patches the status once per claim. Patches only, never whole
objects; every status patch is fenced by the writer (D22).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import structlog

from driver import errors, ids, names, reasons
from driver.controller import ports
from driver.controller.commit import pod_status
from driver.kube import client, gvr
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_status
from driver.scheduling.snapshot import allocation_hold

_log = structlog.get_logger(__name__)


def is_in_doubt(failure: Exception) -> bool:
    """Return whether a failed write may have happened, or may still happen.

    True without an answer, and for server errors: etcd, or a proxy on the way, may have timed out.
    """
    return isinstance(failure, errors.Unreachable | errors.ServerError)


def render_clear(claim: claims.Claim) -> dict[str, object]:
    """The merge patch of a status that takes an allocation back, of the claim as it was read."""
    return {
        "metadata": {"uid": claim.uid, "resourceVersion": claim.version},
        "status": {"allocation": None, "reservedFor": None, "devices": None},
    }


def render_drop_holds(claim: claims.Claim, holds: Iterable[claims.Consumer]) -> dict[str, object]:
    """The strategic patch of a status that removes holds, whatever else changed on the claim."""
    return {
        "metadata": {"uid": claim.uid},
        "status": {
            "reservedFor": [{"$patch": "delete", "uid": consumer.uid} for consumer in holds]
        },
    }


def render_unreserve(claim: claims.Claim, pod: pods.Pod) -> dict[str, object]:
    """The strategic patch of a status that removes an unbound pod, of the claim as it was read.

    Of that version alone: kube-scheduler may have bound the pod since.
    """
    return {
        "metadata": {"uid": claim.uid, "resourceVersion": claim.version},
        "status": {"reservedFor": [{"$patch": "delete", "uid": pod.uid}]},
    }


def _is_written(now: claims.Claim, pod: pods.Pod, allocation: claims.Allocation) -> bool:
    if now.allocation is None or not (
        allocation_hold.has_hold(now, pod) or allocation_hold.is_reserved_by(now, pod)
    ):
        return False
    meant, actual = (tuple(r.device for r in side.results) for side in (allocation, now.allocation))
    return meant == actual


def _gang_status(claim: claims.Claim, failed: str, now: str) -> device_status.DeviceStatus:
    results = claim.allocation.results if claim.allocation else ()
    first = next(result for result in results if names.GANG_READY in result.binding)
    kind = names.GANG_FAILED if failed else names.GANG_READY
    reason = reasons.Reason.GANG_RELEASED if failed else reasons.Reason.ALLOCATED
    words = (failed or "every pod of the gang has its devices")[: device_status.LONGEST_MESSAGE]
    condition = device_status.Condition(kind, "True", reason.value, words, now)
    device = device_status.Device(*first.device, first.share_id)
    return device_status.DeviceStatus(device, (condition,))


class AllocationWriter:
    """Writes allocations, clears them, and drops holds.

    Passes each claim that the server returns to `observe`, and each pod without our gate to
    `observe_pod`, so that the caches see these writes.
    """

    def __init__(
        self, writer: ports.Writer, observe: ports.Observe, observe_pod: ports.Observe
    ) -> None:
        self._writer = writer
        self._observe = observe
        self._observe_pod = observe_pod

    def allocate(
        self,
        pod: pods.Pod,
        open_claims: tuple[claims.Claim, ...],
        allocations: Mapping[ids.Key, claims.Allocation],
    ) -> None:
        """Write all claims of a pod, or none: what was written before a failure is taken back.

        A failure `in_doubt` takes nothing back: the same call, made again, finds out.

        Raises:
            ApiError: a write was refused; nothing of the pod's stays allocated, as far as the
                server could still be reached. Or, in doubt, nothing is known.
        """
        for index, claim in enumerate(open_claims):
            try:
                self._write(pod, claim, allocations[claim.key])
            except errors.ApiError as failure:
                if not is_in_doubt(failure):
                    self.withdraw(pod, (*open_claims[:index], *open_claims[index + 1 :]))
                raise

    def _write(self, pod: pods.Pod, claim: claims.Claim, allocation: claims.Allocation) -> None:
        """Write one claim; one that changed since it was seen is looked at again first.

        It may have been written by an earlier call whose answer was lost.
        """
        try:
            self._write_over(pod, claim, allocation)
        except errors.Conflict:
            now = self._read(claim)
            if now.allocation is None and not now.deleting:
                self._write_over(pod, now, allocation)
            elif not _is_written(now, pod, allocation):
                raise

    def _write_over(
        self, pod: pods.Pod, claim: claims.Claim, allocation: claims.Allocation
    ) -> None:
        version = self._add_finalizer(claim)
        body = {
            "metadata": {"uid": claim.uid, "resourceVersion": version},
            "status": {
                "allocation": claims.render_allocation(allocation),
                "reservedFor": [
                    claims.render_consumer(entry)
                    for entry in allocation_hold.reserved_for_entries(pod)
                ],
            },
        }
        self._patch_status(claim, body, client.PatchType.STRATEGIC)

    def _add_finalizer(self, claim: claims.Claim) -> str:
        """Add the finalizer that makes kube-controller-manager deallocate; the new version."""
        if names.CLAIM_FINALIZER in claim.finalizers:
            return claim.version
        body = {
            "metadata": {
                "uid": claim.uid,
                "resourceVersion": claim.version,
                "finalizers": [names.CLAIM_FINALIZER],
            }
        }
        try:
            answer = self._writer.patch(
                gvr.RESOURCE_CLAIMS,
                claim.name,
                body,
                namespace=claim.namespace,
                kind=client.PatchType.STRATEGIC,
            )
        except errors.Invalid:
            # Its parameters are written in a way that a patch would change (ADR 14).
            answer = self._writer.add_finalizer(
                gvr.RESOURCE_CLAIMS,
                claim.name,
                names.CLAIM_FINALIZER,
                namespace=claim.namespace,
                version=claim.version,
            )
        self._observe(answer)
        return str(gvr.object_version(answer))

    def clear(self, claim: claims.Claim) -> None:
        """Take an unbound allocation back: allocation and reservedFor in one patch.

        Raises:
            Conflict: a pod has reserved it, or it changed since it was read: kube-scheduler may be
                binding by it.
        """
        if allocation_hold.is_reserved(claim):
            raise errors.Conflict(409, "Conflict", f"claim {claim.key} is reserved for a pod")
        self._release(claim)

    def clear_bound(self, claim: claims.Claim) -> None:
        """Take back the allocation of a pod that is bound to another node than the devices'.

        The caller has seen that nobody else uses it. Raises Conflict where the claim changed.
        """
        self._release(claim)

    def _release(self, claim: claims.Claim) -> None:
        """Mark the claim, so that a new leader knows of the release, and clear it."""
        version = claim.version if claim.released else self._mark_released(claim)
        body = render_clear(replace(claim, version=version))
        self._patch_status(claim, body, client.PatchType.MERGE)

    def _mark_released(self, claim: claims.Claim) -> str:
        """Return the version with the mark."""
        meta = {"uid": claim.uid, "resourceVersion": claim.version}
        body = {"metadata": {**meta, "annotations": {names.RELEASED: "true"}}}
        try:
            answer = self._writer.patch(
                gvr.RESOURCE_CLAIMS, claim.name, body, namespace=claim.namespace
            )
        except errors.Invalid:
            # No patch can be made of it (ADR 14): a new leader may allocate it too early.
            return claim.version
        self._observe(answer)
        return str(gvr.object_version(answer))

    def clear_unbound(self, claim: claims.Claim, pod: pods.Pod) -> None:
        """Take the allocation of a waiting pod back. Raises Conflict where it is bound by now."""
        self._refuse_bound(pod)
        self.clear(claim)

    def unreserve_pod(self, claim: claims.Claim, pod: pods.Pod) -> None:
        """Take an unbound pod out of reservedFor: its next binding has to write there again.

        Raises Conflict where the pod is bound by now.
        """
        self._refuse_bound(pod)
        self._patch_status(claim, render_unreserve(claim, pod), client.PatchType.STRATEGIC)

    def _refuse_bound(self, pod: pods.Pod) -> None:
        """Ask the API server: the watch of pods may be behind that of claims."""
        try:
            current = pods.parse(self._writer.get(gvr.PODS, pod.name, pod.namespace))
        except errors.NotFound:
            return
        if current.uid == pod.uid and current.node is not None:
            raise errors.Conflict(409, "Conflict", f"pod {pod.key} is bound to {current.node}")

    def withdraw(self, pod: pods.Pod, pod_claims: tuple[claims.Claim, ...]) -> None:
        """Clear whichever of the claims was written for the pod, answered or not.

        Raises ApiError where a claim cannot be read.
        """
        for claim in pod_claims:
            try:
                now = self._read(claim)
            except errors.NotFound:
                continue
            if (
                now.allocation is not None
                and allocation_hold.has_hold(now, pod)
                and not allocation_hold.is_reserved(now)
            ):
                self._try_clear(now)

    def _try_clear(self, claim: claims.Claim) -> None:
        try:
            self.clear(claim)
        except errors.ApiError as error:
            # The hold stays with the claim; the pod's next turn decides around it.
            _log.warning("half a decision stays", claim=claim.key, error=str(error))

    def _read(self, claim: claims.Claim) -> claims.Claim:
        """The claim as the server holds it, for the caches too. Raises NotFound for another."""
        answer = self._writer.get(gvr.RESOURCE_CLAIMS, claim.name, claim.namespace)
        self._observe(answer)
        now = claims.parse(answer)
        if now.uid != claim.uid:
            raise errors.NotFound(404, "NotFound", f"claim {claim.key} is another one by now")
        return now

    def drop_holds(self, claim: claims.Claim, holds: tuple[claims.Consumer, ...]) -> None:
        """Remove hold entries by their key, whatever else changed on the claim."""
        self._patch_status(claim, render_drop_holds(claim, holds), client.PatchType.STRATEGIC)

    def set_gang_condition(self, claim: claims.Claim, failed: str, now: str) -> None:
        """Set the condition for which the binding of a gang's member waits, or that which ends it.

        It is applied to the entry of the device that names it; everything else stays (KEP-5007).
        """
        statuses = (_gang_status(claim, failed, now),)
        answer = self._writer.patch(
            gvr.RESOURCE_CLAIMS,
            claim.name,
            claims.render_device_status(claim, statuses),
            namespace=claim.namespace,
            subresource="status",
            kind=client.PatchType.APPLY,
            force=True,
        )
        self._observe(answer)

    def patch_node_condition(self, node: nodes.Node, body: Mapping[str, object]) -> None:
        """Patch a condition of a Node, unless it is another Node of that name by now."""
        self._writer.patch(
            gvr.NODES,
            node.name,
            {**body, "metadata": {"uid": node.uid}},
            subresource="status",
            kind=client.PatchType.STRATEGIC,
        )

    def retry_prepare(self, pod: pods.Pod, stamp: str) -> None:
        """Change the annotation that makes the kubelet sync the pod again."""
        body = {"metadata": {"uid": pod.uid, "annotations": {names.PREPARE_AGAIN: stamp}}}
        self._writer.patch(gvr.PODS, pod.name, body, namespace=pod.namespace)

    def nominate(self, pod: pods.Pod, node: ids.NodeName | None) -> None:
        """Set the node that kube-scheduler tries first, and writes itself before a binding.

        None takes the nomination back.

        For pods behind our scheduling gate alone: after a refusal a nomination means preemption.
        """
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        pod_status.patch_status(self._writer, pod, body)

    def ungate(self, pod: pods.Pod) -> None:
        """Remove our scheduling gate and no other; one that is gone already is no error."""
        ours = {"$patch": "delete", "name": names.ALLOCATION_GATE}
        body = {"metadata": {"uid": pod.uid}, "spec": {"schedulingGates": [ours]}}
        answer = self._writer.patch(
            gvr.PODS,
            pod.name,
            body,
            namespace=pod.namespace,
            kind=client.PatchType.STRATEGIC,
        )
        self._observe_pod(answer)

    def evict(self, pod: pods.Pod) -> None:
        """Request the pod's eviction by the Eviction API. Raises ApiError."""
        self._writer.create_eviction(pod.name, pod.namespace, uid=pod.uid)

    def _patch_status(
        self, claim: claims.Claim, body: dict[str, object], kind: client.PatchType
    ) -> None:
        answer = self._writer.patch(
            gvr.RESOURCE_CLAIMS,
            claim.name,
            body,
            namespace=claim.namespace,
            subresource="status",
            kind=kind,
        )
        self._observe(answer)
