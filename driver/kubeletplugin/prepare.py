"""Preparing and unpreparing claims: the use case behind the kubelet's calls (D8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import errors, ids, names, reasons
from driver.api import decode, offerings
from driver.kubeletplugin import (
    checkpoint,
    configuring,
    discovery,
    driver_root,
    executor,
    granting,
    locks,
    plan,
    ports,
    tombstones,
)
from driver.kubeletplugin.sharing import mig
from driver.resources import claims
from driver.sharing import documents as sharing


@dataclass(frozen=True, slots=True)
class Place:
    """Whose devices these are: results of `driver` in `pool` (the node's name) are ours.

    By `rules` MIG is static on some GPUs: there no instance is made.
    """

    pool: str
    driver: str = names.DRIVER
    rules: offerings.NodeOfferings = offerings.NodeOfferings()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the API gave a claim of this node: results and the documents for them."""

    results: tuple[claims.Result, ...]
    documents: tuple[decode.Document, ...]
    located: granting.Located
    namespace: str
    pod_claim: str


class Preparer:
    """Implements `ports.Preparation`. What a claim must not have is Refused; failures are raised.

    Raises RationError: ApiError from the reader, NodeFault and DeviceFault from the node.
    """

    def __init__(
        self,
        place: Place,
        reader: ports.ClaimReader,
        gpus: discovery.Discovery,
        acting: executor.Executor,
        holding: locks.Locks,
        let_go: tombstones.Tombstones,
    ) -> None:
        self._place = place
        self._reader = reader
        self._granting = granting.Granting(place.pool, place.rules, gpus)
        self._executor = acting
        self._locks = holding
        self._let_go = let_go

    def prepare(
        self, ref: ports.ClaimRef, cancelled: ports.Cancelled
    ) -> ports.Prepared | ports.Refused:
        """Make the claim's devices ready; the same answer for the same claim every time."""
        checkpoint.checked(ref.uid)
        try:
            with self._locks.claim(ref.uid):
                done = self._from_record(ref)
                return done if done is not None else self._afresh(ref, cancelled)
        except executor.Abandoned as gone:
            return _refused(reasons.Reason.PREPARE_FAILED, str(gone))
        except driver_root.DriverNotReady as problem:
            return _refused(reasons.Reason.DRIVER_NOT_READY, str(problem))

    def unprepare(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Undo it, from the record alone; None: nothing of the claim is left."""
        checkpoint.checked(ref.uid)
        with self._locks.claim(ref.uid):
            record = self._executor.records.read(ref.uid)
            if record is not None:
                with self._locks.gpus(record.gpus):
                    self._executor.undo(record)
            else:
                # Unknown, or its record was damaged: a spec without a record must not stay.
                self._executor.specs.remove(ref.uid)
                self._executor.records.remove(ref.uid)
                self._let_go.put(ref.uid)
        return None

    def check(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Whether the claim would be refused now, as far as looking tells; nothing is changed.

        The node is looked at before the API server is asked, and GPUs that somebody works on are
        not waited for: NodeFault.
        """
        try:
            self._executor.specs.ready()
            asked = self._asked(ref)
            if isinstance(asked, ports.Refused):
                return asked
            self._executor.specs.ready(asked.located.values())
            with self._locks.gpus((gpu.uuid for gpu in asked.located.values()), wait_s=0.0):
                intent = self._intended(ref, asked)
        except driver_root.DriverNotReady as problem:
            return _refused(reasons.Reason.DRIVER_NOT_READY, str(problem))
        return intent if isinstance(intent, ports.Refused) else None

    def _from_record(self, ref: ports.ClaimRef) -> ports.Prepared | None:
        """The answer of a completed record; a started one is taken back first."""
        record = self._executor.records.read(ref.uid)
        if record is None:
            return None
        if _is_done(record) and self._executor.is_in_place(record):
            return record.answer()
        with self._locks.gpus(record.gpus):
            return self._settled(ref)

    def _settled(self, ref: ports.ClaimRef) -> ports.Prepared | None:
        """As `_from_record`, with the GPUs in hand.

        The record is read again: another plugin may have been at it until now (rolling update).
        """
        record = self._executor.records.read(ref.uid)
        if record is None:
            return None
        if _is_done(record):
            return self._executor.restore(record).answer()
        self._executor.undo(record)
        return None

    def _afresh(
        self, ref: ports.ClaimRef, cancelled: ports.Cancelled
    ) -> ports.Prepared | ports.Refused:
        self._let_go.settle(ref.uid, cancelled)
        asked = self._asked(ref)
        if isinstance(asked, ports.Refused):
            return asked
        with self._locks.gpus(gpu.uuid for gpu in asked.located.values()):
            if (done := self._settled(ref)) is not None:
                return done
            intent = self._intended(ref, asked)
            if isinstance(intent, ports.Refused):
                return intent
            return self._executor.carry_out(ref, intent, cancelled).answer()

    def _intended(self, ref: ports.ClaimRef, asked: _Asked) -> plan.Plan | ports.Refused:
        """What is to be done for the claim, or why nothing may be; the caller holds its GPUs."""
        others = [one for one in self._executor.records.all() if one.uid != ref.uid]
        served = plan.multi_user(device for one in others for device in one.devices)
        configured = self._configured(asked, served)
        if isinstance(configured, ports.Refused):
            return configured
        on_for_us = frozenset(gpu for one in others for gpu in mig.turned_on(one.steps))
        made = plan.make_plan(ref.uid, self._executor.specs.kind, configured, on_for_us)
        intent = replace(made, pod_claim=asked.pod_claim)
        # Records are read by now, and the damaged among them known to be.
        refused = _met(ref, intent, self._unaccounted()) or _overlapping(ref, intent, others)
        return intent if refused is None else refused

    def _unaccounted(self) -> dict[ids.ClaimUid, tuple[ids.GpuUuid, ...]]:
        """The GPUs that claims with a damaged record have, by their CDI specs."""
        acting = self._executor
        return {uid: acting.specs.gpus(uid) for uid in acting.unaccounted()}

    def _configured(
        self, asked: _Asked, served: Mapping[ids.GpuUuid, bool]
    ) -> tuple[configuring.Configured, ...] | ports.Refused:
        granted = self._granting.granted(asked.results, asked.located)
        if isinstance(granted, ports.Refused):
            return granted
        return configuring.configured(
            granted, asked.results, asked.documents, asked.namespace, served
        )

    def _asked(self, ref: ports.ClaimRef) -> _Asked | ports.Refused:
        claim = self._reader.read(ref)
        if claim.uid != ref.uid:
            return _refused(
                reasons.Reason.CLAIM_REPLACED,
                f"claim {claim.key} has UID {claim.uid}, expected {ref.uid}",
            )
        if self._let_go.marked(ref.uid) and all(one.is_hold for one in claim.consumers):
            text = f"claim {claim.key} was unprepared on this node, and no pod has reserved it"
            return _refused(reasons.Reason.CLAIM_LET_GO, text)
        if claim.allocation is None:
            return _refused(
                reasons.Reason.CLAIM_NOT_ALLOCATED, f"claim {claim.key} has no allocation"
            )
        return self._granted_in(claim, claim.allocation)

    def _granted_in(
        self, claim: claims.Claim, allocation: claims.Allocation
    ) -> _Asked | ports.Refused:
        """What an allocation gives the claim here."""
        results = [one for one in allocation.results if self._is_ours(one)]
        if not results:
            return _refused(
                reasons.Reason.CLAIM_NOT_ALLOCATED,
                f"claim {claim.key} has no device of {self._place.driver} on {self._place.pool}",
            )
        try:
            found = sharing.of_allocation(allocation, self._place.driver)
            brought = tuple(found)
        except errors.BadInput as problem:
            return ports.Refused(reasons.Reason.CONFIG_INVALID, str(problem), permanent=True)
        located = self._granting.located(result.device.device for result in results)
        if isinstance(located, ports.Refused):
            return located
        return _Asked(tuple(results), brought, located, claim.namespace, claim.pod_claim)

    def _is_ours(self, result: claims.Result) -> bool:
        device = result.device
        return (device.driver, device.pool) == (self._place.driver, self._place.pool)


def _is_done(record: checkpoint.Record) -> bool:
    return record.state is checkpoint.State.COMPLETED


def _overlapping(
    ref: ports.ClaimRef, intent: plan.Plan, others: Iterable[checkpoint.Record]
) -> ports.Refused | None:
    held = {record.uid: record for record in others}
    found = plan.overlap(intent, ref.uid, ((uid, one.devices) for uid, one in held.items()))
    if found is None:
        return None
    known = (held.get(ids.ClaimUid(uid)) for uid in found.holders)
    holders = tuple(record.claim for record in known if record is not None)
    names = ", ".join(_name(one) for one in holders or (ref,))
    if found.conflict is not None:
        text = f"{found} is shared with claim {names}: {found.conflict.message}"
        return ports.Refused(found.conflict.reason, text, holders=holders)
    text = f"{found} is held by claim {names} on this node until it is unprepared"
    if found.crowd:
        text = f"of {found} {found.crowd} would be given out, with the shares of claims {names}"
    return ports.Refused(reasons.Reason.DEVICE_OVERLAP, text, holders=holders)


def _met(
    ref: ports.ClaimRef, intent: plan.Plan, unaccounted: Mapping[ids.ClaimUid, Sequence[str]]
) -> ports.Refused | None:
    """Whether a device is of a GPU that a claim with a damaged record may have, all or part."""
    wanted = {one.gpu for one in intent.devices if not one.admin_access}
    for uid, gpus in unaccounted.items():
        if uid != ref.uid and (met := sorted(wanted & set(gpus))):
            text = (
                f"{', '.join(met)} is in the CDI spec of claim {uid}, whose record is damaged, "
                f"until that claim is prepared again or unprepared"
            )
            return _refused(reasons.Reason.DEVICE_OVERLAP, text)
    return None


def _name(ref: ports.ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name} ({ref.uid})"


def _refused(reason: reasons.Reason, message: str) -> ports.Refused:
    return ports.Refused(reason, message)
