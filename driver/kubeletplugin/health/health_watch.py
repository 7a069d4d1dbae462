"""Watches GPU health: waits for events, polls, and notifies subscribers of changes.

A wait in NVML ends with the event, so a fault is known at once; polls find faults without events,
and recoveries. While NVML is gone, the known state stays, and it is retried.
"""

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import structlog

from driver import clock, errors, ids
from driver.devices import health, xids
from driver.kube import backoff
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.health import events
from driver.kubeletplugin.records import quarantine

_log = structlog.get_logger(__name__)
FAILING = backoff.Pace(base_s=0.5, max_s=5.0)
"""Back-off while NVML fails as a whole, or ends every wait at once."""

_SOON_S = 1.0
_UNANSWERED_S = 0.25
"""Longest wait for an event while a poll is not answered."""
_GPU_IS_LOST = 15
"""NVML_ERROR_GPU_IS_LOST (nvml.h)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Xid policy and poll interval; the first poll comes after a part of the interval.

    `wait_s` is the longest wait for an event: it delays a stop, and another caller's restart of
    NVML.
    """

    policy: health.Policy = field(default_factory=health.Policy)
    poll_s: float = 5.0
    wait_s: float = 1.0
    jitter: backoff.Jitter = backoff.no_jitter


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies of the watch."""

    events: events.HealthEvents
    metrics: metrics.Metrics
    clock: clock.Clock
    quarantine: quarantine.Quarantine


class HealthWatch:
    """`run` is a thread's target; the rest may be called from any thread."""

    def __init__(self, watcher: ports.Watcher, settings: Settings, deps: Deps) -> None:
        self._watcher = watcher
        self._settings = settings
        self._deps = deps
        self._failing = backoff.Backoff(FAILING, settings.jitter)
        self._failed = False
        self._due_at = -math.inf
        self._round_at = deps.clock.monotonic()
        self._spread = settings.jitter()
        self._unanswered: set[ids.GpuUuid] = set()
        self._health: health.NodeHealth = {}
        self._ailments = MappingProxyType(dict(deps.quarantine.all_ailments()))
        self._listeners: list[Callable[[ids.GpuUuid], None]] = []
        self._gpus_changed_listeners: list[Callable[[], None]] = []
        self._gpu_changed_listeners: list[Callable[[ids.GpuUuid], None]] = []
        self._problem: str | None = "the GPUs have not been polled yet"

    def ailments(self) -> Mapping[ids.GpuUuid, tuple[health.Ailment, ...]]:
        """Return the ailments of each GPU ever seen; a snapshot."""
        return self._ailments

    def problem(self) -> str | None:
        """Return why the known state may be stale; None if it is not."""
        return self._problem

    def unhealthy_summary(self) -> str | None:
        """Return the ailments of unhealthy GPUs, by GPU; None if there are none."""
        unhealthy = {
            gpu: ailments
            for gpu, ailments in self._ailments.items()
            if health.is_healthy(ailments) is False
        }
        lines = (
            f"{gpu}: {', '.join(ailment.message for ailment in unhealthy[gpu])}"
            for gpu in sorted(unhealthy)
        )
        return "; ".join(lines) or None

    def idle_s(self) -> float:
        """Return the seconds since the last round: a faulty GPU may delay an NVML call."""
        return self._deps.clock.monotonic() - self._round_at

    def subscribe(self, listener: Callable[[ids.GpuUuid], None]) -> None:
        """Call `listener` with the GPU after every change, from our thread: it must not wait.

        Subscribe before `run`.
        """
        self._listeners.append(listener)

    def on_gpus_changed(self, listener: Callable[[], None]) -> None:
        """Call `listener` when any of the GPUs may have changed.

        For example NVML is gone or back. From our thread: it must not wait.
        """
        self._gpus_changed_listeners.append(listener)

    def on_gpu_changed(self, listener: Callable[[ids.GpuUuid], None]) -> None:
        """Call `listener` with a GPU that may have changed. From our thread, as above.

        For example its MIG, by us or by another hand.
        """
        self._gpu_changed_listeners.append(listener)

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set."""
        while not stop.is_set():
            self._round_at = self._deps.clock.monotonic()
            try:
                self._round(stop)
            except errors.DeviceFault as fault:
                self._handle_fault(fault, stop)
        self._watcher.close()

    def _round(self, stop: threading.Event) -> None:
        """Poll if due, then wait for one event."""
        now = self._deps.clock.monotonic()
        if now >= self._due_at or not self._watcher.watching:
            self._poll_all()
        for gpu in sorted(self._unanswered):
            self._poll(gpu)
        now = self._deps.clock.monotonic()
        longest_s = _UNANSWERED_S if self._unanswered else self._settings.wait_s
        wait_s = max(0.0, min(longest_s, self._due_at - now))
        if not self._watcher.watching:
            self._deps.clock.wait(stop, wait_s)
            return
        event = self._watcher.wait(wait_s)
        self._failed = False
        self._failing.reset()
        self._handle_event(event)

    def _poll_all(self) -> None:
        """Watch every GPU, then poll these and the GPUs seen before."""
        present = self._watcher.readable_gpus()
        for watched in self._watcher.watch(present):
            self._observe(watched)
        for gpu in sorted({*present, *self._health, *self._watcher.known_gpus()}):
            self._poll(gpu)
        every_s = self._settings.poll_s
        self._due_at = self._deps.clock.monotonic() + every_s * (self._spread or 1.0)
        self._spread = 0.0
        self._set_problem(None)

    def _poll(self, gpu: ids.GpuUuid) -> None:
        """Poll one GPU; a slow answer delays no other."""
        result = self._watcher.poll(gpu)
        if result is None:
            self._unanswered.add(gpu)
            return
        self._unanswered.discard(gpu)
        self._observe(health.Polled(gpu, result))

    def _handle_event(
        self, event: health.XidEvent | ports.GpuChanged | ports.MigChanged | None
    ) -> None:
        match event:
            case None:
                return
            case ports.GpuChanged(gpu=gpu):
                if gpu is None:
                    self._due_at = -math.inf
                    self._notify_gpus_changed()
                else:
                    self._poll(gpu)
                    self._notify_gpu_changed(gpu)
            case ports.MigChanged(gpu=gpu):
                self._notify_gpu_changed(gpu)
            case health.XidEvent():
                self._handle_xid(event)

    def _handle_xid(self, event: health.XidEvent) -> None:
        """Handle an Xid. A program may cause thousands: a repeated one is not polled at once."""
        policy = self._settings.policy
        row = xids.lookup(policy.table, event.code)
        self._deps.metrics.count_xid(row)
        is_new = self._deps.events.report_xid(
            event, row, ails=policy.effect(row.xid_class) != "None"
        )
        self._observe(event)
        if row.xid_class is xids.XidClass.APPLICATION:
            return
        if is_new:
            self._poll(event.gpu)
        else:
            self._due_at = min(self._due_at, self._deps.clock.monotonic() + _SOON_S)

    def _observe(self, observed: health.Observation) -> None:
        """Fold the observation, and report what changed."""
        policy, gpu = self._settings.policy, observed.gpu
        self._health = health.fold(self._health, observed, policy)
        previous = self._ailments.get(gpu)
        current = self._current_ailments(observed)
        if previous == current:
            return
        self._ailments = MappingProxyType({**self._ailments, gpu: current})
        unhealthy = sum(
            health.is_healthy(ailments) is False for ailments in self._ailments.values()
        )
        self._deps.metrics.unhealthy_gpus.set(unhealthy)
        self._deps.metrics.quarantined_gpus.set(len(self._deps.quarantine.all_ailments()))
        _log.info(
            "health changed",
            gpu=gpu,
            ailments=[f"{ailment.key}={ailment.value}" for ailment in current],
        )
        for listener in self._listeners:
            listener(gpu)
        self._deps.events.report_change(gpu, previous or (), current)

    def _current_ailments(self, observed: health.Observation) -> tuple[health.Ailment, ...]:
        """Return the GPU's ailments, and its quarantine.

        That a GPU is watched says nothing about its health: after a start it has not been polled
        yet.
        """
        ailments = health.ailments(self._health[observed.gpu], self._settings.policy)
        quarantine = self._deps.quarantine
        if not isinstance(observed, health.Watched):
            quarantine.record(observed.gpu, ill=health.is_healthy(ailments) is False)
        return (*ailments, *quarantine.ailments(observed.gpu))

    def _set_problem(self, problem: str | None) -> None:
        """Record whether NVML answers; notify GPU listeners if that changed."""
        changed, self._problem = (self._problem is None) is not (problem is None), problem
        if changed:
            self._notify_gpus_changed()

    def _notify_gpu_changed(self, gpu: ids.GpuUuid) -> None:
        for listener in self._gpu_changed_listeners:
            listener(gpu)

    def _notify_gpus_changed(self) -> None:
        for listener in self._gpus_changed_listeners:
            listener()

    def _handle_fault(self, fault: errors.DeviceFault, stop: threading.Event) -> None:
        """Retry at once after the first failure; after the next ones with back-off.

        The poll finds a lost GPU, and watches the others without a gap.
        """
        repeated, self._failed = self._failed, True
        self._due_at = -math.inf
        if repeated or fault.code != _GPU_IS_LOST:
            self._watcher.close()
        if not repeated:
            return
        wait_s = self._failing.after_failure()
        self._set_problem(f"the GPUs' health cannot be read: {fault}")
        _log.warning("health not readable", error=str(fault), retry_s=round(wait_s, 1))
        self._deps.clock.wait(stop, wait_s)
