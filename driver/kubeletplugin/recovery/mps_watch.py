"""Reports to an MPS daemon's claims: failures, recoveries, blocked control, waiting clients."""

import threading
from collections.abc import Callable, Sequence

import structlog

from driver import clock, errors, reasons
from driver.devices import mps_files
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.recovery import mps_holders

_log = structlog.get_logger(__name__)
_EVERY_S = 2.0
"""A dead daemon is reported within this plus its supervisor's delay, 1 s."""


class MpsWatch:
    """`run` is a thread's target. Each state of a daemon is reported once."""

    def __init__(
        self,
        records: Callable[[], tuple[checkpoint.Record, ...]],
        daemons: ports.Daemons,
        reporter: plugin_events.EventReporter,
        metrics: metrics.Metrics,
        holders: mps_holders.MpsHolders,
        time: clock.Clock,
    ) -> None:
        self._holders = holders
        self._metrics = metrics
        self._records = records
        self._daemons = daemons
        self._reporter = reporter
        self._clock = time
        self._failing: dict[str, str] = {}
        self._pids: dict[str, int] = {}
        self._waiting: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Check until stopped."""
        while not self._clock.wait(stop, _EVERY_S):
            try:
                self.check()
            except errors.NodeFault as e:
                _log.warning("MPS daemons not looked at", error=str(e))

    def check(self) -> None:
        """Report what has changed since the last check. Raises NodeFault."""
        clients: dict[str, dict[ports.ClaimRef, None]] = {}
        records = self._records()
        for record in records:
            for device in record.devices:
                if device.edits.daemon:
                    clients.setdefault(device.edits.daemon, {})[record.claim] = None
        self._failing = {key: problem for key, problem in self._failing.items() if key in clients}
        self._pids = {key: pid for key, pid in self._pids.items() if key in clients}
        self._waiting = {key: message for key, message in self._waiting.items() if key in clients}
        self._holders.start_round(records, clients)
        for key, refs in clients.items():
            status = self._daemons.status(key)
            if status is not None:
                self._report_state(key, status, tuple(refs))
                self._report_waiting(key, status.waiting, tuple(refs))
                self._holders.check(key, status, tuple(refs))
        self._metrics.failing_daemons.set(len(self._failing))

    def _report_waiting(self, key: str, waiting: str, refs: Sequence[ports.ClaimRef]) -> None:
        """Report a waiting client to every claim, once: its own claim is not known."""
        previous, self._waiting[key] = self._waiting.get(key, ""), waiting
        if waiting and waiting != previous:
            for ref in refs:
                text = f"MPS daemon of {key}: {waiting}"
                self._reporter.warn_claim(ref, reasons.Reason.MPS_CLIENT_BLOCKED, text)

    def _report_state(
        self, key: str, status: mps_files.Status, refs: Sequence[ports.ClaimRef]
    ) -> None:
        previous, problem = self._failing.get(key, ""), _problem(status)
        pid = self._pids.get(key) or self._daemons.last_pid(key)
        self._pids[key] = status.pid or pid or 0
        if not previous and not problem and pid and status.pid not in (None, pid):
            # It died and was replaced between two checks: its clients have lost their contexts.
            problem = f"it ended (pid {pid}), and another took its place"
        if problem and problem != previous:
            self._failing[key] = problem
            text = f"MPS daemon of {key}: {problem}"
            for ref in refs:
                self._reporter.warn_claim(ref, reasons.Reason.MPS_FAILED, text)
        elif previous and not problem:
            del self._failing[key]
            for ref in refs:
                text = f"MPS daemon of {key} serves again: start the containers anew"
                self._reporter.notify_claim(ref, reasons.Reason.MPS_RECOVERED, text)


def _problem(status: mps_files.Status) -> str:
    return status.problem if status.state is mps_files.State.FAILED else ""
