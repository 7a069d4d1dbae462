"""Preparing and unpreparing claims: the use case behind the kubelet's calls (architecture, §4)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from driver import errors, ids, names, reasons
from driver.api import decode, offerings, v1alpha1
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
from driver.kubeletplugin.sharing import mig, terms
from driver.resources import claims, fields


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
    gpus: "_Gpus"
    namespace: str

    @property
    def distinct(self) -> tuple[model.Gpu, ...]:
        """Its GPUs, each once."""
        return tuple({gpu.uuid: gpu for gpu in self.gpus.values()}.values())

    def of(self, gpu: model.Gpu) -> tuple[str, ...]:
        """The names of what is asked of one GPU."""
        return tuple(name for name, one in self.gpus.items() if one.uuid == gpu.uuid)


_Gpus = dict[str, model.Gpu]
"""The GPUs behind device names."""
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
        asked = self._asked(ref)
        if isinstance(asked, ports.Refused):
            return asked
        with self._locks.gpus(gpu.uuid for gpu in asked.distinct):
            if (done := self._settled(ref)) is not None:
                return done
            granted = self._granted(asked)
            if isinstance(granted, ports.Refused):
                return granted
            others = [one for one in self._executor.records.all() if one.uid != ref.uid]
            on_for_us = frozenset(gpu for one in others for gpu in mig.turned_on(one.steps))
            intent = plan.make_plan(ref.uid, self._executor.specs.kind, granted, on_for_us)
            if (refused := _overlapping(ref, intent, others)) is not None:
                return refused
            return self._executor.carry_out(ref, intent, cancelled).answer()

    def _asked(self, ref: ports.ClaimRef) -> _Asked | ports.Refused:
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
        gpus = self._located({result.device.device for result in results})
        if isinstance(gpus, ports.Refused):
            return gpus
        return _Asked(tuple(results), documents, gpus, claim.namespace)

    def _located(self, wanted: set[str]) -> _Gpus | ports.Refused:
        """The GPUs behind device names; they are read again when one is not known."""
        try:
            known = _by_name(self._gpus.trusted())
            if not all(faces.gpu_name(name) in known for name in wanted):
                known = _by_name(self._gpus.refresh())
        except errors.DeviceFault as fault:
            return _refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        found = {name: known.get(faces.gpu_name(name) or "") for name in sorted(wanted)}
        if missing := [name for name, gpu in found.items() if gpu is None]:
            return _unknown(missing, f"it has {', '.join(known) or 'no GPU that can be read'}")
        return {name: gpu for name, gpu in found.items() if gpu is not None}

    def _granted(self, asked: _Asked) -> _Granted | ports.Refused:
        """What the names stand for on the GPUs as they are now; the caller holds them."""
        try:
            gpus = [self._as_now(gpu, asked.of(gpu)) for gpu in asked.distinct]
        except errors.DeviceFault as fault:
            return _refused(reasons.Reason.DRIVER_NOT_READY, str(fault))
        known = {face.name: face for gpu in gpus for face in faces.every(gpu)}
        granted: list[tuple[steps.Grant, v1alpha1.Config]] = []
        for result in asked.results:
            face = known.get(ids.DeviceName(result.device.device))
            if face is None:
                text = f"of its GPU there is {', '.join(sorted(known))}"
                return _unknown([result.device.device], text)
            if (refused := self._unpreparable(face, result)) is not None:
                return refused
            one = _granted_as(result, face, asked)
            if isinstance(one, ports.Refused):
                return one
            granted.append(one)
        return tuple(granted)

    def _as_now(self, gpu: model.Gpu, names_: Iterable[str]) -> model.Gpu:
        """A GPU as it is now; read again for a part of it: what lies there decides what is done."""
        if any(faces.is_part(name) for name in names_):
            return self._gpus.again(gpu.uuid)
        return self._gpus.current().by_uuid(gpu.uuid) or gpu

    def _unpreparable(self, face: faces.Face, result: claims.Result) -> ports.Refused | None:
        """Monitors are for administrators."""
        match face:
            case faces.MonitorFace() if not result.admin_access:
                text = f"{face.name} is for requests with adminAccess: true"
                return ports.Refused(reasons.Reason.ADMIN_ONLY, text, permanent=True)
            case faces.MigFace(instance=None):
                return self._unmakeable(face, result)
            case _:
                return None

    def _unmakeable(self, face: faces.MigFace, result: claims.Result) -> ports.Refused | None:
        """An instance is made for who holds it, where MIG is not static."""
        if result.admin_access:
            text = "no instance lies there that could be looked at"
            return None if face.there else _unknown([face.name], text)
        if self._place.rules.of(self._place.pool, face.gpu).mig is faces.MigMode.STATIC:
            return _unknown([face.name], "its GPU has static MIG, where no instance is made")
        return None

    def _is_ours(self, result: claims.Result) -> bool:
        device = result.device
        return (device.driver, device.pool) == (self._place.driver, self._place.pool)

    def _documents(self, allocation: claims.Allocation) -> Iterator[decode.Document]:
        for index, entry in enumerate(allocation.configs):
            where = f"status.allocation.devices.config[{index}].opaque"
            if fields.text(entry.opaque, "driver", where) != self._place.driver:
                continue
            parameters = fields.mapping(entry.opaque, "parameters", where)
            at = f"{where}.parameters"
            found = decode.config(parameters, at, from_class=entry.from_class)
            yield decode.Document(found, at, entry.requests)


def _is_done(record: checkpoint.Record) -> bool:
    return record.state is checkpoint.State.COMPLETED


def _overlapping(
    ref: ports.ClaimRef, intent: plan.Plan, others: Iterable[checkpoint.Record]
) -> ports.Refused | None:
    held = {record.uid: record for record in others}
    found = plan.overlap(intent, ref.uid, ((uid, one.devices) for uid, one in held.items()))
    if found is None:
        return None
    record = held.get(ids.ClaimUid(found.holder))
    holder = record.claim if record is not None else ref
    by = record.claim if record else None
    if found.conflict is not None:
        text = f"{found} is shared with claim {_name(holder)}: {found.conflict.message}"
        return ports.Refused(found.conflict.reason, text, holder=by)
    message = f"{found} is held by claim {_name(holder)} on this node until it is unprepared"
    return ports.Refused(reasons.Reason.DEVICE_OVERLAP, message, holder=by)


def _granted_as(
    result: claims.Result, face: faces.Face, asked: _Asked
) -> tuple[steps.Grant, v1alpha1.Config] | ports.Refused:
    """A result with its configuration, and on which terms where it is a share."""
    kind: decode.Kind = "MigDeviceConfig" if isinstance(face, faces.MigFace) else "GpuConfig"
    try:
        config = decode.winner(asked.documents, result.request, kind)
    except errors.BadInput as problem:
        return ports.Refused(reasons.Reason.CONFIG_INVALID, str(problem), permanent=True)
    if not isinstance(face, faces.ShareFace):
        if config.sharing is not None:
            text = f"{face.name} is for one claim; sharing it by configuration is to come"
            return ports.Refused(reasons.Reason.FACE_NOT_PREPARED, text, permanent=True)
        return _grant(result, face), config
    given = terms.of_result(result, face.sharing, asked.namespace, config)
    if isinstance(given, terms.Conflict):
        return ports.Refused(given.reason, given.message, permanent=True)
    return _grant(result, face, given), config


def _grant(
    result: claims.Result, face: faces.Face, given: terms.Terms | None = None
) -> steps.Grant:
    return steps.Grant(
        terms=given,
        request=result.base_request,
        pool=result.device.pool,
        face=face,
        admin_access=result.admin_access,
        share_id=result.share_id,
    )


def _by_name(inventory: model.Inventory) -> _Gpus:
    """GPUs by the names of their whole faces."""
    return {faces.device_name(gpu.pci): gpu for gpu in inventory.gpus}


def _unknown(missing: list[str], text: str) -> ports.Refused:
    return _refused(
        reasons.Reason.DEVICE_UNKNOWN,
        f"{', '.join(missing)} is not, or no longer, on this node; {text}",
    )


def _name(ref: ports.ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name} ({ref.uid})"


def _refused(reason: reasons.Reason, message: str) -> ports.Refused:
    return ports.Refused(reason, message)
