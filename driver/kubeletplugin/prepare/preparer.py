"""Prepares and unprepares claims: the use case behind the kubelet's calls (D8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from driver import ids, reasons
from driver.kubeletplugin import ports
from driver.kubeletplugin.cdi import spec_writer
from driver.kubeletplugin.host import driver_root, locks
from driver.kubeletplugin.plan import mig, planner
from driver.kubeletplugin.prepare import claim_request, executor
from driver.kubeletplugin.records import checkpoint, tombstones


class Preparer:
    """Implements `ports.Preparation`. A claim that must not be prepared is Refused; failures raise.

    Raises RationError: ApiError from the reader, NodeFault and DeviceFault from the node.
    """

    def __init__(
        self,
        requests: claim_request.ClaimRequests,
        records: checkpoint.Checkpoint,
        specs: spec_writer.CdiSpecWriter,
        executor: executor.Executor,
        locks: locks.Locks,
        tombstones: tombstones.Tombstones,
    ) -> None:
        self._requests = requests
        self._records = records
        self._specs = specs
        self._executor = executor
        self._locks = locks
        self._tombstones = tombstones

    def prepare(
        self, ref: ports.ClaimRef, cancelled: ports.Cancelled
    ) -> ports.Prepared | ports.Refused:
        """Make the claim's devices ready; idempotent, with the same response every time."""
        checkpoint.require_uid(ref.uid)
        try:
            with self._locks.claim(ref.uid):
                done = self._resume(ref)
                return done if done is not None else self._prepare_new(ref, cancelled)
        except executor.Abandoned as gone:
            return _refuse(reasons.Reason.PREPARE_FAILED, str(gone))
        except driver_root.DriverNotReady as problem:
            return _refuse(reasons.Reason.DRIVER_NOT_READY, str(problem))

    def unprepare(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Unprepare from the record alone; returns None once nothing of the claim is left."""
        checkpoint.require_uid(ref.uid)
        with self._locks.claim(ref.uid):
            record = self._records.read(ref.uid)
            if record is not None:
                with self._locks.gpus(record.gpus):
                    self._executor.undo(record)
            else:
                # Unknown, or its record was damaged: a spec without a record must not stay.
                self._specs.remove(ref.uid)
                self._records.remove(ref.uid)
                self._tombstones.add(ref.uid)
        return None

    def check(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Return whether the claim would be refused now, as far as known; changes nothing.

        The node is checked before the API server is asked. Locked GPUs are not waited for:
        NodeFault.
        """
        try:
            self._specs.check_writable()
            request = self._requests.read(ref)
            if isinstance(request, ports.Refused):
                return request
            self._specs.check_writable(request.located.values())
            with self._locks.gpus((gpu.uuid for gpu in request.located.values()), wait_s=0.0):
                plan = self._plan(ref, request)
        except driver_root.DriverNotReady as problem:
            return _refuse(reasons.Reason.DRIVER_NOT_READY, str(problem))
        return plan if isinstance(plan, ports.Refused) else None

    def _resume(self, ref: ports.ClaimRef) -> ports.Prepared | None:
        """Return the response of a completed record; undo a started one first."""
        record = self._records.read(ref.uid)
        if record is None:
            return None
        if _is_completed(record) and self._executor.is_in_place(record):
            return record.response()
        with self._locks.gpus(record.gpus):
            return self._resume_locked(ref)

    def _resume_locked(self, ref: ports.ClaimRef) -> ports.Prepared | None:
        """Same as `_resume`, with the GPUs locked.

        The record is re-read: another plugin may have changed it until now (rolling update).
        """
        record = self._records.read(ref.uid)
        if record is None:
            return None
        if _is_completed(record):
            return self._executor.restore(record).response()
        self._executor.undo(record)
        return None

    def _prepare_new(
        self, ref: ports.ClaimRef, cancelled: ports.Cancelled
    ) -> ports.Prepared | ports.Refused:
        self._tombstones.wait_settled(ref.uid, cancelled)
        request = self._requests.read(ref)
        if isinstance(request, ports.Refused):
            return request
        with self._locks.gpus(gpu.uuid for gpu in request.located.values()):
            if (done := self._resume_locked(ref)) is not None:
                return done
            plan = self._plan(ref, request)
            if isinstance(plan, ports.Refused):
                return plan
            return self._executor.carry_out(ref, plan, cancelled).response()

    def _plan(
        self, ref: ports.ClaimRef, request: claim_request.ClaimRequest
    ) -> planner.Plan | ports.Refused:
        """Return the claim's plan, or its refusal; the caller holds its GPUs."""
        gpus = {gpu.uuid for gpu in request.located.values()}
        records = self._records.gpu_records(*gpus)
        other_records = [record for record in records if record.uid != ref.uid]
        multi_user = planner.multi_user_gpus(
            device for record in other_records for device in record.devices
        )
        configured = self._requests.resolve_configs(request, multi_user)
        if isinstance(configured, ports.Refused):
            return configured
        on_for_us = frozenset(
            gpu for record in other_records for gpu in mig.enabled_gpus(record.steps)
        )
        plan = planner.make_plan(ref.uid, self._specs.kind, configured, on_for_us)
        intent = replace(plan, pod_claim=request.pod_claim)
        # Records are read by now, and the damaged among them known to be.
        refused = _conflicts_with_damaged(
            ref, intent, self._executor.unaccounted_gpus()
        ) or _refuse_overlap(ref, intent, other_records)
        return intent if refused is None else refused


def _is_completed(record: checkpoint.Record) -> bool:
    return record.state is checkpoint.State.COMPLETED


def _refuse_overlap(
    ref: ports.ClaimRef, plan: planner.Plan, other_records: Iterable[checkpoint.Record]
) -> ports.Refused | None:
    held = {record.uid: record for record in other_records}
    overlap = planner.find_overlap(
        plan, ref.uid, ((uid, record.devices) for uid, record in held.items())
    )
    if overlap is None:
        return None
    records = (held.get(ids.ClaimUid(uid)) for uid in overlap.holders)
    holders = tuple(record.claim for record in records if record is not None)
    names = ", ".join(_claim_text(holder) for holder in holders or (ref,))
    if overlap.conflict is not None:
        text = f"{overlap} is shared with claim {names}: {overlap.conflict.message}"
        return ports.Refused(overlap.conflict.reason, text, holders=holders)
    text = f"{overlap} is held by claim {names} on this node until it is unprepared"
    if overlap.excess:
        text = (
            f"of {overlap} {overlap.excess} would be given out, with the shares of claims {names}"
        )
    return ports.Refused(reasons.Reason.DEVICE_OVERLAP, text, holders=holders)


def _conflicts_with_damaged(
    ref: ports.ClaimRef, plan: planner.Plan, unaccounted: Mapping[ids.ClaimUid, Sequence[str]]
) -> ports.Refused | None:
    """Refuse a device of a GPU that a claim with a damaged record may use, all or part."""
    gpus_needed = {device.gpu for device in plan.devices if not device.admin_access}
    for uid, gpus in unaccounted.items():
        if uid != ref.uid and (shared := sorted(gpus_needed & set(gpus))):
            text = (
                f"{', '.join(shared)} is in the CDI spec of claim {uid}, whose record is damaged, "
                f"until that claim is prepared again or unprepared"
            )
            return _refuse(reasons.Reason.DEVICE_OVERLAP, text)
    return None


def _claim_text(ref: ports.ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name} ({ref.uid})"


def _refuse(reason: reasons.Reason, message: str) -> ports.Refused:
    return ports.Refused(reason, message)
