"""Checkpoint: one file per claim, by UID, written before and after acting (D8).

    <directory>/<uid>.json   {"record":{...},"sha256":"<hex digits>"}

The checksum covers the record's bytes as they are in the file, so another version's JSON formatting
does not break it. Unknown fields are kept. An unreadable file is moved aside to
`<uid>.json.damaged-<n>` and reported, and counts as absent. A file of a schema that is too new is
neither read nor changed (ADR 16).
"""

import hashlib
import itertools
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pydantic
import structlog

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import mig, planner, steps
from driver.runtime.files import atomic, failpoints, file_cache

log = structlog.get_logger(__name__)

VERSION = 1
"""The records' schema: raised if the previous version would act wrongly on a record without its
change. A version writes what the previous one reads: it removes no field and changes no meaning
until two versions later. Optional fields that may be ignored do not raise it.
"""
READABLE = VERSION + 1
"""The newest schema that is read: a later one may change the meaning of a field."""
_MODE = 0o600
_SUFFIX = ".json"
_DAMAGED = f"{_SUFFIX}.damaged-"
_HEAD, _MIDDLE, _TAIL = b'{"record":', b',"sha256":"', b'"}\n'
_UID = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?")


class State(StrEnum):
    """`started`: intended, perhaps half done. `completed`: done and answered."""

    STARTED = "started"
    COMPLETED = "completed"


Facts = Mapping[str, str]
"""Facts revealed by a step: a MIG UUID, a directory."""


@dataclass(frozen=True, slots=True)
class Record:
    """A claim on this node: the intended plan, and the facts its execution revealed.

    `facts` holds one entry per step, in order. `boot_id` is the boot in which it was executed.
    `pod_claim` is as in the plan.
    """

    claim: ports.ClaimRef
    state: State
    boot_id: str
    devices: tuple[steps.PlannedDevice, ...]
    steps: tuple[steps.Step, ...]
    facts: tuple[Facts, ...] = ()
    version: int = VERSION
    pod_claim: str = ""

    @property
    def uid(self) -> ids.ClaimUid:
        """The claim's UID."""
        return self.claim.uid

    @property
    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the GPUs it uses, each once, sorted."""
        return planner.device_gpus(self.devices)

    def response(self) -> ports.Prepared:
        """Return the response to the kubelet, the same every time."""
        return ports.Prepared(
            tuple(
                ports.PreparedDevice(
                    request=device.request,
                    pool=device.pool,
                    device=device.device,
                    cdi_ids=(device.cdi_id,),
                    share_id=device.share_id,
                )
                for device in self.devices
            )
        )


@dataclass(frozen=True, slots=True)
class _Entry:
    """A record with its GPUs, which are worked out once."""

    record: Record
    gpus: tuple[ids.GpuUuid, ...]


_FORMAT: pydantic.TypeAdapter[Record] = pydantic.TypeAdapter(Record)


def is_uid(text: str) -> bool:
    """Return whether a text can be a claim's UID."""
    return _UID.fullmatch(text) is not None


def require_uid(uid: str) -> ids.ClaimUid:
    """Return a UID that is safe in a path or a CDI name. Raises BadInput."""
    if not is_uid(uid):
        raise errors.BadInput("claim UID", f"is {uid!r}", "letters, digits and '-', at most 63")
    return ids.ClaimUid(uid)


class NewerSchema(errors.NodeFault):
    """A record of a schema that this version cannot read; it is left unchanged."""

    def __init__(self, path: Path, version: int) -> None:
        text = (
            f"it has schema {version}, of a newer version of Ration, and this one reads "
            f"{READABLE} at most: go back one version at a time, or install the newer one again"
        )
        super().__init__("read", str(path), text)


class Checkpoint:
    """The records under `directory`, which is created on the first write.

    Thread safe with one writer thread per claim at a time. Raises NodeFault, and NewerSchema for a
    record that is not read.
    """

    def __init__(
        self, directory: Path, boot_id: str, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self._directory = directory
        self._boot_id = boot_id
        self._watch = watch
        self._moving = threading.Lock()
        self._cache = file_cache.FileCache(str(directory), _is_record_name, self._parse)

    def read(self, uid: ids.ClaimUid) -> Record | None:
        """Return the claim's record; None if there is none, or none that can be read."""
        entry = self._cache.read(f"{require_uid(uid)}{_SUFFIX}")
        return None if entry is None else entry.record

    def list_records(self) -> tuple[Record, ...]:
        """Return every record that can be read, by UID."""
        return tuple(entry.record for entry in self._cache.read_all())

    def gpu_records(self, *gpus: ids.GpuUuid) -> tuple[Record, ...]:
        """Return the records that use any of these GPUs, by UID."""
        chosen = frozenset(gpus)
        entries = self._cache.read_all()
        return tuple(entry.record for entry in entries if not chosen.isdisjoint(entry.gpus))

    def _parse(self, name: str, data: bytes) -> _Entry | None:
        """Return the record in a file's bytes; None for a damaged file, which is moved aside."""
        path = self._directory / name
        try:
            record = _FORMAT.validate_python(_unseal_readable(data, path))
            if record.uid != name.removesuffix(_SUFFIX):
                raise ValueError(f"it is the record of {record.uid}")  # noqa: TRY301 - one way out
        except ValueError as e:
            self._move_aside(path, data, str(e))
            return None
        return _Entry(record, record.gpus)

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims with a file, a temporary one included."""
        names = {atomic.target_name(name) for name in atomic.list_names(self._directory)}
        stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return tuple(sorted(ids.ClaimUid(stem) for stem in stems if is_uid(stem)))

    def write_time(self, uid: ids.ClaimUid) -> float | None:
        """Return when the record was last written, in seconds since 1970; None without one."""
        try:
            return self._path(uid).stat().st_mtime
        except OSError:
            return None

    def damaged_uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims whose damaged record was moved aside and not cleared since."""
        marks = (name.partition(_DAMAGED) for name in self._cache.list_names() if _DAMAGED in name)
        return tuple(sorted({ids.ClaimUid(stem) for stem, mark, _ in marks if mark}))

    def is_current_boot(self, record: Record) -> bool:
        """Return whether the record was executed since the machine started."""
        return record.boot_id == self._boot_id

    def write_started(self, claim: ports.ClaimRef, plan: planner.Plan) -> Record:
        """Record the intent before anything is done."""
        return self._write_new(claim, plan, State.STARTED)

    def write_stepless(self, claim: ports.ClaimRef, plan: planner.Plan) -> Record:
        """Record the intent of a plan without steps, which is its completion too."""
        return self._write_new(claim, plan, State.COMPLETED)

    def _write_new(self, claim: ports.ClaimRef, plan: planner.Plan, state: State) -> Record:
        record = Record(
            claim,
            state,
            self._boot_id,
            plan.devices,
            plan.steps,
            pod_claim=plan.pod_claim,
        )
        self._write(record, _FORMAT.dump_python(record, mode="json"))
        return record

    def write_completed(self, record: Record, facts: Sequence[Facts]) -> Record:
        """Record completion in this boot; other fields of the file are kept."""
        completed = replace(
            record, state=State.COMPLETED, boot_id=self._boot_id, facts=tuple(facts)
        )
        return self._update(completed)

    def write_begun(self, record: Record) -> Record:
        """Record that no more than the record's steps was begun, in this boot."""
        return self._update(replace(record, state=State.STARTED, boot_id=self._boot_id))

    def rewrite(self, record: Record) -> Record:
        """Record again how far a record had come."""
        return self._update(record)

    def _update(self, record: Record) -> Record:
        data = atomic.read(self._path(record.uid))
        if data is None:
            raise errors.NodeFault("read", str(self._path(record.uid)), "the record is gone")
        try:
            previous = _unseal_readable(data, self._path(record.uid))
            raw = {
                **previous,
                "state": record.state.value,
                "boot_id": record.boot_id,
                "steps": previous["steps"][: len(record.steps)],
                "facts": [dict(fact) for fact in record.facts],
            }
            updated = _FORMAT.validate_python(raw)
        except ValueError as e:
            raise errors.NodeFault("read", str(self._path(record.uid)), str(e)) from e
        self._write(updated, raw)
        return updated

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's record; succeeds if there is none."""
        atomic.remove(self._path(uid), self._watch)

    def _path(self, uid: ids.ClaimUid) -> Path:
        return self._directory / f"{require_uid(uid)}{_SUFFIX}"

    def _write(self, record: Record, raw: Mapping[str, object]) -> None:
        """Write a record; the disk is waited for only if a step outlives the machine's boot.

        Of any other claim nothing is left then, and the kubelet has it prepared again (ADR 4).
        """
        synced = mig.outlives_boot(record.steps)
        path = self._path(record.uid)
        atomic.replace(path, seal(raw), _MODE, self._watch, synced=synced)
        self._cache.add(path.name, _Entry(record, record.gpus))

    def _move_aside(self, path: Path, data: bytes, problem: str) -> None:
        """Move the file, unless another thread did and a new record may be in its place."""
        with self._moving:
            if atomic.read(path) != data:
                return
            for number in itertools.count(1):
                aside = path.with_name(f"{path.stem}{_DAMAGED}{number}")
                if not aside.exists():
                    break
            try:
                path.replace(aside)
            except FileNotFoundError:  # by another plugin (rolling update)
                return
            except OSError as e:
                raise errors.NodeFault("move aside", str(path), str(e)) from e
        log.error("a damaged record was moved aside", path=str(aside), problem=problem)


def _is_record_name(name: str) -> bool:
    return name.endswith(_SUFFIX) and is_uid(name.removesuffix(_SUFFIX))


def seal(raw: Mapping[str, object]) -> bytes:
    """Return the bytes of a file that holds this record."""
    record = json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()
    return b"".join((_HEAD, record, _MIDDLE, _digest(record), _TAIL))


def _unseal(data: bytes) -> Mapping[str, Any]:
    """Return the record in a file's bytes. Raises ValueError if they are not as written."""
    record, middle, tail = data.removeprefix(_HEAD).rpartition(_MIDDLE)
    if not (data.startswith(_HEAD) and middle and tail == _digest(record) + _TAIL):
        raise ValueError("its checksum does not fit its bytes")
    try:
        raw = json.loads(record)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(raw, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - the file is wrong, not the code
    return raw


def _unseal_readable(data: bytes, path: Path) -> Mapping[str, Any]:
    """Same as `_unseal`, for a schema that we read. Raises ValueError, NewerSchema."""
    raw = _unseal(data)
    version = raw.get("version", VERSION)
    if isinstance(version, int) and version > READABLE:
        raise NewerSchema(path, version)
    return raw


def _digest(record: bytes) -> bytes:
    return hashlib.sha256(record).hexdigest().encode()
