"""Thread that resets GPUs which ask for it, if enabled; `reset_policy` decides.

The GPU is locked meanwhile: a Prepare on it waits. So do all NVML calls, and no GPU's events are
watched for the few seconds of a reset.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from driver import clock, errors, ids
from driver.devices import health
from driver.kubeletplugin import metrics
from driver.kubeletplugin.health import reset_policy
from driver.kubeletplugin.host import locks

_log = structlog.get_logger(__name__)
EVERY_S: Final = 60.0
"""Interval of checks: the end of the last claim triggers none."""
AGAIN_S: Final = 600.0
"""Interval of attempts per GPU; a fault that a reset did not clear is unlikely to clear in the
next.
"""

ReadAilments = Callable[[], Mapping[ids.GpuUuid, Sequence[health.Ailment]]]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Operations on GPUs.

    `read_use` returns a GPU's use, `reset` resets a locked GPU; both raise NodeFault and
    DeviceFault.
    """

    read_use: Callable[[ids.GpuUuid], reset_policy.GpuUse]
    reset: Callable[[ids.GpuUuid], None]
    locks: locks.Locks


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies of the watch; `report_done` and `report_failed` take an attempt's message."""

    report_done: Report
    report_failed: Report
    metrics: metrics.Metrics
    clock: clock.Clock


class ResetWatch:
    """`run` is a thread's target; `wake` may be called from any thread."""

    def __init__(self, target: ResetTarget, read_ailments: ReadAilments, deps: Deps) -> None:
        self._target = target
        self._read_ailments = read_ailments
        self._deps = deps
        self._wake = threading.Event()
        self._tried_at: dict[ids.GpuUuid, float] = {}
        self._waiting: dict[ids.GpuUuid, str] = {}

    def wake(self) -> None:
        """Check at once, after a change of ailments."""
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Check until stopped; the caller of stop wakes us by `wake`."""
        while not stop.is_set():
            self.check_gpus(stop)
            self._deps.clock.wait(self._wake, EVERY_S)
            self._wake.clear()

    def check_gpus(self, stop: threading.Event) -> None:
        """Reset the GPUs that ask for it and are not in use."""
        asking = [
            gpu
            for gpu, ailments in self._read_ailments().items()
            if reset_policy.asks_for_reset(ailments)
        ]
        self._waiting = {gpu: reason for gpu, reason in self._waiting.items() if gpu in asking}
        for gpu in sorted(asking):
            if stop.is_set():
                return
            if self._is_due(gpu):
                self._try_reset(gpu)

    def _is_due(self, gpu: ids.GpuUuid) -> bool:
        tried_at = self._tried_at.get(gpu)
        return tried_at is None or self._deps.clock.monotonic() - tried_at >= AGAIN_S

    def _try_reset(self, gpu: ids.GpuUuid) -> None:
        """Check without the GPU's lock first, so that no caller waits for a refused reset."""
        try:
            if self._may_reset(gpu, self._target.read_use(gpu)):
                self._reset_locked(gpu)
        except errors.RationError as e:
            self._note_wait(gpu, str(e))

    def _reset_locked(self, gpu: ids.GpuUuid) -> None:
        with self._target.locks.gpus([gpu]):
            use = self._target.read_use(gpu)
            if self._may_reset(gpu, use):
                self._reset(gpu, use)

    def _may_reset(self, gpu: ids.GpuUuid, use: reset_policy.GpuUse) -> bool:
        reason = reset_policy.blocking_reason(use)
        if reason:
            self._note_wait(gpu, reason)
        return not reason

    def _note_wait(self, gpu: ids.GpuUuid, reason: str) -> None:
        """Log the reason once, and not every minute."""
        if self._waiting.get(gpu) != reason:
            self._waiting[gpu] = reason
            _log.info("reset waits", gpu=gpu, why=reason)

    def _reset(self, gpu: ids.GpuUuid, use: reset_policy.GpuUse) -> None:
        started_at = self._tried_at[gpu] = self._deps.clock.monotonic()
        action = health.RecoveryAction(use.poll.recovery_action).name
        _log.warning("resetting", gpu=gpu, action=action)
        try:
            self._target.reset(gpu)
        except errors.RationError as e:
            self._deps.metrics.resets["failed"].inc()
            _log.warning("reset failed", gpu=gpu, error=str(e))
            minutes = round(AGAIN_S / 60)
            text = f"{gpu} asks for {action} and could not be reset: {e}; again in {minutes} min"
            self._deps.report_failed(text)
            return
        self._deps.metrics.resets["done"].inc()
        duration_s = self._deps.clock.monotonic() - started_at
        _log.warning("reset done", gpu=gpu, action=action, duration_s=round(duration_s, 1))
        self._deps.report_done(f"{gpu} asked for {action} and was reset in {duration_s:.1f} s")
