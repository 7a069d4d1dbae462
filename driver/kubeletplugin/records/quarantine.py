"""The node's memory of GPUs that fail again and again; `devices.quarantine` decides.

It is one file, by the GPUs' UUIDs, and outlives restarts and reboots:

    {"version":1,"cleared":"all","gpus":{"GPU-...":{"failures":[...],"ill":false,"since":...}}}

`cleared` is the Node's annotation as it was acted on: the same one clears nothing again, until it
has been taken away or written otherwise. What cannot be written is kept in memory, and tried again
at the next look.
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
    """Thread safe. A file that cannot be read counts as none, and is written anew.

    One of a version too new is not touched.
    """

    def __init__(
        self, file: Path, time: clock.Clock, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self._file = file
        self._clock = time
        self._watch = watch
        self._lock = threading.Lock()
        self._document, self._writable = _load(file)
        self._unwritten = False

    def record(self, gpu: ids.GpuUuid, *, ill: bool) -> None:
        """A look at a GPU found it so."""
        with self._lock:
            before = self._document.gpus.get(gpu, quarantine_policy.NO_FAILURES)
            after = quarantine_policy.update(before, self._now(), ill=ill)
            if after != before:
                self._store(self._document.cleared, {**self._document.gpus, gpu: after})
            elif self._unwritten:
                self._write()

    def ailments(self, gpu: ids.GpuUuid) -> tuple[health.Ailment, ...]:
        """The quarantine that a GPU is in."""
        return quarantine_policy.ailments(
            self._document.gpus.get(gpu, quarantine_policy.NO_FAILURES)
        )

    def all_ailments(self) -> Mapping[ids.GpuUuid, tuple[health.Ailment, ...]]:
        """Every GPU that is in quarantine."""
        found = {gpu: quarantine_policy.ailments(past) for gpu, past in self._document.gpus.items()}
        return {gpu: ailments for gpu, ailments in found.items() if ailments}

    def update(self, node: nodes.Node) -> None:
        """Clear what the Node's annotation asks for, once."""
        asked = node.clear_quarantine
        with self._lock:
            if asked == self._document.cleared:
                return
            wanted = quarantine_policy.parse_names(asked)
            gpus = {
                gpu: quarantine_policy.clear(past)
                if quarantine_policy.is_named(wanted, gpu)
                else past
                for gpu, past in self._document.gpus.items()
            }
            freed = sorted(gpu for gpu in self.all_ailments() if gpus[gpu].since is None)
            _log.info("clearing of quarantines asked for", annotation=asked, cleared=freed)
            self._store(asked, gpus)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _store(
        self, asked: str, gpus: Mapping[ids.GpuUuid, quarantine_policy.FailureHistory]
    ) -> None:
        """GPUs of which there is nothing to remember are forgotten."""
        kept = {gpu: past for gpu, past in gpus.items() if past != quarantine_policy.NO_FAILURES}
        self._document = _Document(cleared=asked, gpus=kept)
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
    """The file, and whether it is ours to write."""
    try:
        data = atomic.read(file)
        found = _FORMAT.validate_json(data) if data is not None else _Document()
    except (errors.NodeFault, ValueError) as e:
        _log.warning("quarantines not readable, none are remembered", error=str(e))
        return _Document(), True
    if found.version > READABLE:
        _log.warning("quarantines are a newer version's, none are kept", schema=found.version)
        return _Document(), False
    return found, True
