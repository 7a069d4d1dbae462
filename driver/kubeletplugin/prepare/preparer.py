"""Prepares and unprepares claims: the use case behind the kubelet's calls (D8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import errors, ids, names, reasons
from driver.api import decode, offerings
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import discovery, driver_root, locks
from driver.kubeletplugin.plan import config as plan_config
from driver.kubeletplugin.plan import mig, planner
from driver.kubeletplugin.prepare import device_resolver, executor
from driver.kubeletplugin.records import checkpoint, tombstones
from driver.resources.dra import claims
from driver.resources.sharing import allocation_config as sharing


@dataclass(frozen=True, slots=True)
class NodeScope:
    """Results of `driver` in `pool` (the node's name) are ours.

    `rules` make MIG static on some GPUs: no instance is created there.
    """

    pool: str
    driver: str = names.DRIVER
    rules: offerings.NodeOfferings = offerings.NodeOfferings()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class _ClaimRequest:
    """A claim's allocation on this node: results and their opaque documents."""

    results: tuple[claims.Result, ...]
    documents: tuple[decode.Document, ...]
    located: device_resolver.Located
    namespace: str
    pod_claim: str


class Preparer:
    """Implements `ports.Preparation`. A claim that must not be prepared is Refused; failures raise.

    Raises RationError: ApiError from the reader, NodeFault and DeviceFault from the node.
    """

    def __init__(
        self,
        scope: NodeScope,
        reader: ports.ClaimReader,
        gpus: discovery.Discovery,
        executor: executor.Executor,
        locks: locks.Locks,
        tombstones: tombstones.Tombstones,
    ) -> None:
        self._scope = scope
        self._reader = reader
        self._resolver = device_resolver.DeviceResolver(scope.pool, scope.rules, gpus)
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
            record = self._executor.records.read(ref.uid)
            if record is not None:
                with self._locks.gpus(record.gpus):
                    self._executor.undo(record)
            else:
                # Unknown, or its record was damaged: a spec without a record must not stay.
                self._executor.specs.remove(ref.uid)
                self._executor.records.remove(ref.uid)
                self._tombstones.add(ref.uid)
        return None

    def check(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Return whether the claim would be refused now, as far as known; changes nothing.

        The node is checked before the API server is asked. Locked GPUs are not waited for:
        NodeFault.
        """
        try:
            self._executor.specs.check_writable()
            request = self._read_claim(ref)
            if isinstance(request, ports.Refused):
                return request
            self._executor.specs.check_writable(request.located.values())
            with self._locks.gpus((gpu.uuid for gpu in request.located.values()), wait_s=0.0):
                plan = self._plan(ref, request)
        except driver_root.DriverNotReady as problem:
            return _refuse(reasons.Reason.DRIVER_NOT_READY, str(problem))
        return plan if isinstance(plan, ports.Refused) else None

    def _resume(self, ref: ports.ClaimRef) -> ports.Prepared | None:
        """Return the response of a completed record; undo a started one first."""
        record = self._executor.records.read(ref.uid)
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
        record = self._executor.records.read(ref.uid)
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
        request = self._read_claim(ref)
        if isinstance(request, ports.Refused):
            return request
        with self._locks.gpus(gpu.uuid for gpu in request.located.values()):
            if (done := self._resume_locked(ref)) is not None:
                return done
            plan = self._plan(ref, request)
            if isinstance(plan, ports.Refused):
                return plan
            return self._executor.carry_out(ref, plan, cancelled).response()

    def _plan(self, ref: ports.ClaimRef, request: _ClaimRequest) -> planner.Plan | ports.Refused:
        """Return the claim's plan, or its refusal; the caller holds its GPUs."""
        other_records = [
            record for record in self._executor.records.list_records() if record.uid != ref.uid
        ]
        multi_user = planner.multi_user_gpus(
            device for record in other_records for device in record.devices
        )
        configured = self._resolve_configs(request, multi_user)
        if isinstance(configured, ports.Refused):
            return configured
        on_for_us = frozenset(
            gpu for record in other_records for gpu in mig.enabled_gpus(record.steps)
        )
        plan = planner.make_plan(ref.uid, self._executor.specs.kind, configured, on_for_us)
        intent = replace(plan, pod_claim=request.pod_claim)
        # Records are read by now, and the damaged among them known to be.
        refused = _conflicts_with_damaged(ref, intent, self._unaccounted_gpus()) or _refuse_overlap(
            ref, intent, other_records
        )
        return intent if refused is None else refused

    def _unaccounted_gpus(self) -> dict[ids.ClaimUid, tuple[ids.GpuUuid, ...]]:
        """Return the GPUs of claims with a damaged record, by their CDI specs."""
        acting = self._executor
        return {uid: acting.specs.claim_gpus(uid) for uid in acting.unaccounted_uids()}

    def _resolve_configs(
        self, request: _ClaimRequest, multi_user: Mapping[ids.GpuUuid, bool]
    ) -> tuple[plan_config.ConfiguredGrant, ...] | ports.Refused:
        grants = self._resolver.grant(request.results, request.located)
        if isinstance(grants, ports.Refused):
            return grants
        return plan_config.resolve_configs(
            grants, request.results, request.documents, request.namespace, multi_user
        )

    def _read_claim(self, ref: ports.ClaimRef) -> _ClaimRequest | ports.Refused:
        claim = self._reader.read(ref)
        if claim.uid != ref.uid:
            return _refuse(
                reasons.Reason.CLAIM_REPLACED,
                f"claim {claim.key} has UID {claim.uid}, expected {ref.uid}",
            )
        if self._tombstones.is_marked(ref.uid) and all(
            consumer.is_hold for consumer in claim.consumers
        ):
            text = f"claim {claim.key} was unprepared on this node, and no pod has reserved it"
            return _refuse(reasons.Reason.CLAIM_ALREADY_UNPREPARED, text)
        if claim.allocation is None:
            return _refuse(
                reasons.Reason.CLAIM_NOT_ALLOCATED, f"claim {claim.key} has no allocation"
            )
        return self._read_allocation(claim, claim.allocation)

    def _read_allocation(
        self, claim: claims.Claim, allocation: claims.Allocation
    ) -> _ClaimRequest | ports.Refused:
        """Return the claim's devices on this node."""
        results = [result for result in allocation.results if self._is_ours(result)]
        if not results:
            return _refuse(
                reasons.Reason.CLAIM_NOT_ALLOCATED,
                f"claim {claim.key} has no device of {self._scope.driver} on {self._scope.pool}",
            )
        try:
            by_request = sharing.allocation_configs(allocation, self._scope.driver)
            documents = tuple(by_request)
        except errors.BadInput as problem:
            return ports.Refused(reasons.Reason.CONFIG_INVALID, str(problem), permanent=True)
        located = self._resolver.locate(result.device.device for result in results)
        if isinstance(located, ports.Refused):
            return located
        return _ClaimRequest(tuple(results), documents, located, claim.namespace, claim.pod_claim)

    def _is_ours(self, result: claims.Result) -> bool:
        device = result.device
        return (device.driver, device.pool) == (self._scope.driver, self._scope.pool)


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
