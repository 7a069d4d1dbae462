"""Thread that collects records whose claim is gone, and repairs what was lost.

A claim that the API reports gone is unprepared at the second consecutive read, a minute apart: at
most 150 s after it went, plus the work. `staleness` decides. MPS daemons and CDI specs may be lost;
they are checked every ten seconds, as a container that restarts needs its spec.
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
"""Random part of the pause, so that the nodes of a cluster do not query at once."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GcTargets:
    """Operations of the collector.

    `records` raises NodeFault. `in_use` returns what still runs on a record's GPUs, "" if nothing;
    raises DeviceFault. `repair` makes MPS daemons, CDI specs and records agree, and returns what it
    could not.
    """

    records: Callable[[], tuple[checkpoint.Record, ...]]
    reader: ports.ClaimReader
    in_use: Callable[[checkpoint.Record], str]
    unprepare: Callable[[ports.ClaimRef], ports.Refused | None]
    repair: Callable[[], tuple[str, ...]]


class ClaimCollector:
    """`run` is a thread's target; `report` is called with a message per reclaimed claim."""

    def __init__(
        self, targets: GcTargets, report: Report, time: clock.Clock, jitter: backoff.Jitter
    ) -> None:
        self._targets = targets
        self._report = report
        self._clock = time
        self._jitter = jitter
        self._gone: dict[ids.ClaimUid, int] = {}
        self._unrepaired: tuple[str, ...] = ()

    def run(self, stop: threading.Event) -> None:
        """Check until stopped, first after one pause."""
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
        """Repair; unrepaired problems are logged once, until they change."""
        problems = self._targets.repair()
        if problems and problems != self._unrepaired:
            _log.warning("not mended", problems=problems)
        self._unrepaired = problems

    def check_records(self, stop: threading.Event) -> None:
        """Read every record's claim once. Raises NodeFault."""
        gone_counts: dict[ids.ClaimUid, int] = {}
        for record in self._targets.records():
            if stop.is_set():
                return
            result = self._read_claim(record.claim)
            verdict = staleness.decide(record, result, self._gone.get(record.uid, 0))
            if verdict.act is staleness.Act.RECLAIM and self._reclaim(record, verdict.reason):
                continue
            gone_counts[record.uid] = verdict.gone
            if isinstance(result, errors.Unreachable):
                break  # the server is away: the other reads would fail too, and say nothing
        self._gone = gone_counts

    def _read_claim(self, ref: ports.ClaimRef) -> staleness.ReadResult:
        try:
            return self._targets.reader.read(ref)
        except errors.RationError as e:
            return e

    def _reclaim(self, record: checkpoint.Record, reason: str) -> bool:
        """Unprepare; return whether nothing is left; if not, the next check retries."""
        name = f"{record.claim.namespace}/{record.claim.name} ({record.uid})"
        try:
            user = self._targets.in_use(record)
            if user:
                _log.warning(
                    "claim is gone, but not its processes", claim=name, why=reason, user=user
                )
                return False
            self._targets.unprepare(record.claim)
        except errors.RationError as e:
            _log.warning("claim not reclaimed", claim=name, why=reason, error=str(e))
            return False
        _log.warning("claim reclaimed", claim=name, why=reason, gpus=record.gpus)
        text = f"released {', '.join(record.gpus)} from claim {name}, which was left over: {reason}"
        self._report(text)
        return True
