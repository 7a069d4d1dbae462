"""Before the kubelet is told our name: whether another driver has it on this node.

Of two plugins of one name the kubelet calls the newest, and it clears away a driver's slices only
while no plugin of that name is registered. So we wait with that until the other one has gone -
unless claims are prepared here, which nobody else can release.
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
"""Whether another has the name now. Raises RationError."""


class NameGate:
    """`run` is a thread's target; `free` is set, for good, once the name may be told.

    `synced` is set when the API server's slices are known, which is waited for a little: without
    them only the node's sockets are looked at. `holds` says whether claims are prepared here;
    raises NodeFault. `tell` is called with each look's problem; it may raise RationError.
    """

    def __init__(
        self,
        look: CheckName,
        holds: Callable[[], bool],
        tell: Callable[[pool_builder.Problem], None],
        synced: threading.Event,
        time: clock.Clock,
    ) -> None:
        self._check_name = look
        self._holds = holds
        self._report = tell
        self._synced = synced
        self._clock = time
        self._problem: str | None = None
        self.name_free = threading.Event()

    def problem(self) -> str | None:
        """Why the kubelet is not told yet; None when it may be."""
        return self._problem

    def run(self, stop: threading.Event) -> None:
        """Look until the name is ours, then wait for `stop`."""
        self._clock.wait(self._synced, _SYNC_S)
        while not stop.is_set() and not self._check():
            self._clock.wait(stop, _AGAIN_S)
        if not stop.is_set():
            self._problem = None
            self.name_free.set()
        stop.wait()

    def _check(self) -> bool:
        try:
            found = self._check_name()
            free = found is None or self._holds()
        except errors.RationError as e:
            self._problem = f"not known whether the driver's name is ours: {e}"
            _log.warning("driver name not looked up", error=str(e), retry_s=_AGAIN_S)
            return False
        if found is not None:
            self._problem = str(found)
            self._report_conflict(found)
        return free

    def _report_conflict(self, found: pool_builder.Problem) -> None:
        """Where it cannot be told now, it is told by the next look."""
        try:
            self._report(found)
        except errors.RationError as e:
            _log.warning("not told", reason=found.reason, text=found.message, error=str(e))
