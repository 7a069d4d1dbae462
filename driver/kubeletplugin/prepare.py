"""Preparing and unpreparing claims: the use case behind the kubelet's calls (architecture, §4)."""

from collections.abc import Iterator
from dataclasses import dataclass

from driver import errors, ids, names, reasons
from driver.api import decode, v1alpha1
from driver.devices import faces, model
from driver.kubeletplugin import (
    checkpoint,
    discovery,
    driver_root,
    executor,
    locks,
    plan,
    ports,
    steps,
)
from driver.resources import claims, fields


@dataclass(frozen=True, slots=True)
class Place:
    """Whose devices these are: results of `driver` in `pool` (the node's name) are ours."""

    pool: str
    driver: str = names.DRIVER


_Documents = tuple[tuple[tuple[str, ...], v1alpha1.Config], ...]
"""Each configuration with the requests it names."""
_Granted = tuple[tuple[steps.Grant, v1alpha1.Config], ...]
"""What a claim gets of this node: each grant with its configuration."""


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
    ) -> None:
        self._place = place
        self._reader = reader
        self._gpus = gpus
        self._executor = acting
        self._locks = holding

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
        return None

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
        granted = self._asked(ref)
        if isinstance(granted, ports.Refused):
            return granted
        intent = plan.make_plan(ref.uid, self._executor.specs.kind, granted)
        with self._locks.gpus(intent.gpus):
            if (done := self._settled(ref)) is not None:
                return done
            if (refused := self._overlapping(ref, intent)) is not None:
                return refused
            return self._executor.carry_out(ref, intent, cancelled).answer()

    def _asked(self, ref: ports.ClaimRef) -> _Granted | ports.Refused:
        claim = self._reader.read(ref)
        if claim.uid != ref.uid:
            return _refused(
                reasons.Reason.CLAIM_REPLACED,
                f"claim {claim.key} has UID {claim.uid}, expected {ref.uid}",
            )
        if claim.allocation is None:
            return _refused(
                reasons.Reason.CLAIM_NOT_ALLOCATED, f"claim {claim.key} has no allocation"
            )
        results = [one for one in claim.allocation.results if self._is_ours(one)]
        if not results:
            return _refused(
                reasons.Reason.CLAIM_NOT_ALLOCATED,
                f"claim {claim.key} has no device of {self._place.driver} on {self._place.pool}",
            )
        try:
            documents = tuple(self._documents(claim.allocation))
        except errors.BadInput as problem:
            return ports.Refused(reasons.Reason.CONFIG_INVALID, str(problem), permanent=True)
        return self._granted(results, documents)

    def _granted(
        self, results: list[claims.Result], documents: _Documents
    ) -> _Granted | ports.Refused:
        for result in results:
            if (refused := _unpreparable(result)) is not None:
                return refused
        known = self._known({result.device.device for result in results})
        if isinstance(known, ports.Refused):
            return known
        return tuple(
            (_grant(result, known[result.device.device]), decode.winner(documents, result.request))
            for result in results
        )

    def _known(self, wanted: set[str]) -> dict[str, model.Gpu] | ports.Refused:
        """The GPUs behind device names; they are read again when one is not known."""
        try:
            known = _by_name(self._gpus.trusted())
            if not wanted <= known.keys():
                known = _by_name(self._gpus.refresh())
        except errors.DeviceFault as fault:
            return _refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        if missing := sorted(wanted - known.keys()):
            return _refused(
                reasons.Reason.DEVICE_UNKNOWN,
                f"{', '.join(missing)} is not, or no longer, on this node; it has "
                f"{', '.join(_whole(known)) or 'no GPU that can be read'}",
            )
        return known

    def _overlapping(self, ref: ports.ClaimRef, intent: plan.Plan) -> ports.Refused | None:
        held = {record.uid: record for record in self._executor.records.all()}
        held.pop(ref.uid, None)
        others = ((uid, record.devices) for uid, record in held.items())
        found = plan.overlap(intent, ref.uid, others)
        if found is None:
            return None
        record = held.get(ids.ClaimUid(found.holder))
        holder = record.claim if record is not None else ref
        message = (
            f"{found.gpu} is held by claim {_name(holder)} on this node until it is unprepared"
        )
        reason = reasons.Reason.DEVICE_OVERLAP
        return ports.Refused(reason, message, holder=record.claim if record else None)

    def _is_ours(self, result: claims.Result) -> bool:
        device = result.device
        return (device.driver, device.pool) == (self._place.driver, self._place.pool)

    def _documents(
        self, allocation: claims.Allocation
    ) -> Iterator[tuple[tuple[str, ...], v1alpha1.Config]]:
        for index, entry in enumerate(allocation.configs):
            where = f"status.allocation.devices.config[{index}].opaque"
            if fields.text(entry.opaque, "driver", where) != self._place.driver:
                continue
            parameters = fields.mapping(entry.opaque, "parameters", where)
            yield entry.requests, decode.config(parameters, f"{where}.parameters")


def _is_done(record: checkpoint.Record) -> bool:
    return record.state is checkpoint.State.COMPLETED


def _grant(result: claims.Result, gpu: model.Gpu) -> steps.Grant:
    return steps.Grant(
        request=result.base_request,
        pool=result.device.pool,
        device=ids.DeviceName(result.device.device),
        gpu=gpu.uuid,
        admin_access=result.admin_access,
        share_id=result.share_id,
    )


def _unpreparable(result: claims.Result) -> ports.Refused | None:
    """Whole GPUs can be prepared, and their monitors for administrators; no other face yet."""
    name = result.device.device
    whole = faces.gpu_name(name)
    if whole is None or name == whole:
        return None
    if name != faces.monitor_name(whole):
        text = f"{name} is shared or part of a GPU, which this node cannot set up yet"
        return ports.Refused(reasons.Reason.FACE_NOT_PREPARED, text, permanent=True)
    if result.admin_access:
        return None
    text = f"{name} is for requests with adminAccess: true"
    return ports.Refused(reasons.Reason.ADMIN_ONLY, text, permanent=True)


def _by_name(inventory: model.Inventory) -> dict[str, model.Gpu]:
    """GPUs by the names of their whole faces and their monitors."""
    found: dict[str, model.Gpu] = {}
    for gpu in inventory.gpus:
        whole = faces.device_name(gpu.pci)
        found |= {whole: gpu, faces.monitor_name(whole): gpu}
    return found


def _whole(known: dict[str, model.Gpu]) -> list[str]:
    return sorted(name for name in known if faces.gpu_name(name) == name)


def _name(ref: ports.ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name} ({ref.uid})"


def _refused(reason: reasons.Reason, message: str) -> ports.Refused:
    return ports.Refused(reason, message)
