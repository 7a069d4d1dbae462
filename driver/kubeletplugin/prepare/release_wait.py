"""Waits for a GPU whose last claim is being released (D8).

The API server frees the devices of a force-deleted pod at once, the node some moments later. A
refusal would cost the next pod a minute, until the kubelet retries; so the wait is here.
"""

import threading

import structlog

from driver import clock, errors
from driver.kubeletplugin import ports

_log = structlog.get_logger(__name__)

WAIT_S = 30.0
"""With the work itself, within the 40 s in which a call is answered."""
_POLL_S = 0.2


class ReleaseWaiter:
    """A `ports.Preparation` that waits, holding nothing, while another claim is released."""

    def __init__(
        self,
        inner: ports.Preparation,
        reader: ports.ClaimReader,
        clock: clock.Clock,
        wait_s: float = WAIT_S,
    ) -> None:
        self._inner = inner
        self._reader = reader
        self._clock = clock
        self._wait_s = wait_s

    def prepare(
        self, ref: ports.ClaimRef, cancelled: ports.Cancelled
    ) -> ports.Prepared | ports.Refused:
        """Prepare; waits for a device held by a claim that is being released."""
        deadline = self._clock.monotonic() + self._wait_s
        answer = self._inner.prepare(ref, cancelled)
        previous: ports.ClaimRef | None = None
        while isinstance(answer, ports.Refused):
            previous = next(filter(self._is_releasing, _last_first(answer.holders, previous)), None)
            if previous is None or cancelled() or self._clock.monotonic() >= deadline:
                break
            self._clock.wait(threading.Event(), _POLL_S)
            answer = self._inner.prepare(ref, cancelled)
        return answer

    def unprepare(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Unprepare without waiting."""
        return self._inner.unprepare(ref)

    def check(self, ref: ports.ClaimRef) -> ports.Refused | None:
        """Return whether it would be refused now, without waiting."""
        return self._inner.check(ref)

    def _is_releasing(self, holder: ports.ClaimRef) -> bool:
        """Return whether the API server no longer gives the device to the holder."""
        try:
            claim = self._reader.read(holder)
        except errors.NotFound:
            return True
        except errors.ApiError as error:
            _log.info("holder not readable", holder=holder.name, error=str(error))
            return False
        return claim.uid != holder.uid or claim.allocation is None


def _last_first(
    holders: tuple[ports.ClaimRef, ...], previous: ports.ClaimRef | None
) -> list[ports.ClaimRef]:
    """Put the previous holder first: it usually still holds, and no other is read."""
    return [
        *(holder for holder in holders if holder == previous),
        *(holder for holder in holders if holder != previous),
    ]
