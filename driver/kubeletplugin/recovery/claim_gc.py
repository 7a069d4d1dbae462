"""The thread that looks for what outlived its claim, and for what was lost.

A claim that the API says is gone is unprepared at the second look in a row, a minute apart: 150 s
after it went at the latest, and a moment for the work. `stale` decides. Lost may be MPS daemons and
CDI specs; they are looked for every ten seconds, as a container that starts again needs its spec.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from driver import clock, errors, ids
from driver.kube import backoff
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint, staleness

_log = structlog.get_logger(__name__)
EVERY_S: Final = 60.0
REPAIR_S: Final = 10.0
_SPREAD: Final = 0.25
"""Of the pause, more at random, so that the nodes of a cluster do not ask at once."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GcTargets:
    """What is looked at and acted on.

    `records` raises NodeFault. `in_use` says what still runs on a record's GPUs, "" when nothing
    does; raises DeviceFault. `mend` makes MPS daemons, CDI specs and records agree, and names what
    it could not.
    """

    records: Callable[[], tuple[checkpoint.Record, ...]]
    reader: ports.ClaimReader
    in_use: Callable[[checkpoint.Record], str]
    unprepare: Callable[[ports.ClaimRef], ports.Refused | None]
    repair: Callable[[], tuple[str, ...]]


class ClaimCollector:
    """`run` is a thread's target; `tell` is told in words what was reclaimed."""

    def __init__(
        self, node: GcTargets, tell: Report, time: clock.Clock, jitter: backoff.Jitter
    ) -> None:
        self._targets = node
        self._report = tell
        self._clock = time
        self._jitter = jitter
        self._gone: dict[ids.ClaimUid, int] = {}
        self._unrepaired: tuple[str, ...] = ()

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop, the first time after one pause."""
        due_s = self._pause_s()
        while not self._clock.wait(stop, min(REPAIR_S, due_s)):
            due_s -= REPAIR_S
            try:
                self._repair()
                if due_s <= 0:
                    due_s = self._pause_s()
                    self.check_records(stop)
            except errors.RationError as e:
                _log.warning("records not compared", error=str(e))

    def _pause_s(self) -> float:
        return EVERY_S * (1 + _SPREAD * self._jitter())

    def _repair(self) -> None:
        """What could not be mended is told once, until it is something else."""
        left = self._targets.repair()
        if left and left != self._unrepaired:
            _log.warning("not mended", problems=left)
        self._unrepaired = left

    def check_records(self, stop: threading.Event) -> None:
        """Ask for every record's claim once. Raises NodeFault."""
        found: dict[ids.ClaimUid, int] = {}
        for record in self._targets.records():
            if stop.is_set():
                return
            answer = self._read_claim(record.claim)
            verdict = staleness.decide(record, answer, self._gone.get(record.uid, 0))
            if verdict.act is staleness.Act.RECLAIM and self._reclaim(record, verdict.reason):
                continue
            found[record.uid] = verdict.gone
            if isinstance(answer, errors.Unreachable):
                break  # nobody answers: the others would wait in vain, and are not gone either
        self._gone = found

    def _read_claim(self, ref: ports.ClaimRef) -> staleness.ReadResult:
        try:
            return self._targets.reader.read(ref)
        except errors.RationError as e:
            return e

    def _reclaim(self, record: checkpoint.Record, why: str) -> bool:
        """Whether nothing of it is left; if not, the next look tries again."""
        name = f"{record.claim.namespace}/{record.claim.name} ({record.uid})"
        try:
            user = self._targets.in_use(record)
            if user:
                _log.warning("claim is gone, but not its processes", claim=name, why=why, user=user)
                return False
            self._targets.unprepare(record.claim)
        except errors.RationError as e:
            _log.warning("claim not reclaimed", claim=name, why=why, error=str(e))
            return False
        _log.warning("claim reclaimed", claim=name, why=why, gpus=record.gpus)
        text = f"released {', '.join(record.gpus)} from claim {name}, which was left over: {why}"
        self._report(text)
        return True
