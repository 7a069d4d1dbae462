"""Delays registration while another driver on this node has our name.

Of two plugins of one name the kubelet calls the newest, and it removes a driver's slices only while
no plugin of that name is registered. So registration waits until the other driver is gone, unless
claims are prepared here, which only we can release.
"""

import threading
from collections.abc import Callable

import structlog

from driver import clock, errors
from driver.kubeletplugin.publish import pool_builder

_log = structlog.get_logger(__name__)
_AGAIN_S = 5.0
_SYNC_S = 5.0
CheckName = Callable[[], pool_builder.Problem | None]
"""Returns the conflict if another driver has the name now. Raises RationError."""


class NameGate:
    """`run` is a thread's target; `name_free` is set, for good, once registration may begin.

    `synced` is set when the API server's slices are known, and is waited for briefly: without them
    only the node's sockets are checked. `holds` returns whether claims are prepared here; raises
    NodeFault. `report` is called with each check's problem; it may raise RationError.
    """

    def __init__(
        self,
        check_name: CheckName,
        holds: Callable[[], bool],
        report: Callable[[pool_builder.Problem], None],
        synced: threading.Event,
        time: clock.Clock,
    ) -> None:
        self._check_name = check_name
        self._holds = holds
        self._report = report
        self._synced = synced
        self._clock = time
        self._problem: str | None = None
        self.name_free = threading.Event()

    def problem(self) -> str | None:
        """Return why the kubelet is not told the name yet; None if it may be."""
        return self._problem

    def run(self, stop: threading.Event) -> None:
        """Check until the name is ours, then wait for `stop`."""
        self._clock.wait(self._synced, _SYNC_S)
        while not stop.is_set() and not self._check():
            self._clock.wait(stop, _AGAIN_S)
        if not stop.is_set():
            self._problem = None
            self.name_free.set()
        stop.wait()

    def _check(self) -> bool:
        try:
            conflict = self._check_name()
            free = conflict is None or self._holds()
        except errors.RationError as e:
            self._problem = f"not known whether the driver's name is ours: {e}"
            _log.warning("driver name not looked up", error=str(e), retry_s=_AGAIN_S)
            return False
        if conflict is not None:
            self._problem = str(conflict)
            self._report_conflict(conflict)
        return free

    def _report_conflict(self, conflict: pool_builder.Problem) -> None:
        """Report the conflict; on failure the next check reports it."""
        try:
            self._report(conflict)
        except errors.RationError as e:
            _log.warning("not told", reason=conflict.reason, text=conflict.message, error=str(e))
