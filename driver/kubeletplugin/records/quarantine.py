"""Persistent record of GPUs that fail repeatedly; `devices.quarantine_policy` decides.

It is one file, by GPU UUID, and outlives restarts and reboots:

    {"version":1,"cleared":"all","gpus":{"GPU-...":{"failures":[...],"ill":false,"since":...}}}

`cleared` is the Node's annotation as last applied: the same value clears nothing again until it has
been removed or changed. State that cannot be written is kept in memory, and retried on the next
record.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pydantic
import structlog

from driver import clock, errors, ids
from driver.devices import health, quarantine_policy
from driver.resources.core import nodes
from driver.runtime.files import atomic, failpoints

_log = structlog.get_logger(__name__)
VERSION = 1
"""The file's schema; as of records, the next one is read too (ADR 16)."""
READABLE = VERSION + 1
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class _Document:
    """The file."""

    version: int = VERSION
    cleared: str = ""
    gpus: Mapping[ids.GpuUuid, quarantine_policy.FailureHistory] = field(default_factory=dict)


_FORMAT: pydantic.TypeAdapter[_Document] = pydantic.TypeAdapter(_Document)


class Quarantine:
    """Thread safe. An unreadable file counts as empty, and is overwritten.

    A file of a newer schema is not changed.
    """

    def __init__(
        self, file: Path, time: clock.Clock, observer: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self._file = file
        self._clock = time
        self._watch = observer
        self._lock = threading.Lock()
        self._document, self._writable = _load(file)
        self._unwritten = False

    def record(self, gpu: ids.GpuUuid, *, ill: bool) -> None:
        """Record the health of a GPU at a poll."""
        with self._lock:
            previous = self._document.gpus.get(gpu, quarantine_policy.NO_FAILURES)
            current = quarantine_policy.update(previous, self._now(), ill=ill)
            if current != previous:
                self._store(self._document.cleared, {**self._document.gpus, gpu: current})
            elif self._unwritten:
                self._write()

    def ailments(self, gpu: ids.GpuUuid) -> tuple[health.Ailment, ...]:
        """Return the quarantine of a GPU, as an ailment."""
        return quarantine_policy.ailments(
            self._document.gpus.get(gpu, quarantine_policy.NO_FAILURES)
        )

    def all_ailments(self) -> Mapping[ids.GpuUuid, tuple[health.Ailment, ...]]:
        """Return every GPU in quarantine."""
        quarantines = {
            gpu: quarantine_policy.ailments(history) for gpu, history in self._document.gpus.items()
        }
        return {gpu: ailments for gpu, ailments in quarantines.items() if ailments}

    def update(self, node: nodes.Node) -> None:
        """Clear what the Node's annotation requests, once."""
        annotation = node.clear_quarantine
        with self._lock:
            if annotation == self._document.cleared:
                return
            cleared_names = quarantine_policy.parse_names(annotation)
            gpus = {
                gpu: quarantine_policy.clear(history)
                if quarantine_policy.is_named(cleared_names, gpu)
                else history
                for gpu, history in self._document.gpus.items()
            }
            freed = sorted(gpu for gpu in self.all_ailments() if gpus[gpu].since is None)
            _log.info("clearing of quarantines asked for", annotation=annotation, cleared=freed)
            self._store(annotation, gpus)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _store(
        self, annotation: str, gpus: Mapping[ids.GpuUuid, quarantine_policy.FailureHistory]
    ) -> None:
        """Replace the document; GPUs without history are dropped."""
        retained = {
            gpu: history
            for gpu, history in gpus.items()
            if history != quarantine_policy.NO_FAILURES
        }
        self._document = _Document(cleared=annotation, gpus=retained)
        self._write()

    def _write(self) -> None:
        if not self._writable:
            return
        try:
            atomic.replace(self._file, _FORMAT.dump_json(self._document), _MODE, self._watch)
        except errors.NodeFault as e:
            if not self._unwritten:
                _log.warning("quarantines not written", error=str(e))
            self._unwritten = True
        else:
            self._unwritten = False


def _load(file: Path) -> tuple[_Document, bool]:
    """Return the file, and whether it may be written."""
    try:
        data = atomic.read(file)
        document = _FORMAT.validate_json(data) if data is not None else _Document()
    except (errors.NodeFault, ValueError) as e:
        _log.warning("quarantines not readable, none are remembered", error=str(e))
        return _Document(), True
    if document.version > READABLE:
        _log.warning("quarantines are a newer version's, none are kept", schema=document.version)
        return _Document(), False
    return document, True
