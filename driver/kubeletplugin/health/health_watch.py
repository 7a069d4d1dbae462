"""Watches the GPUs' health: waits for events, polls, and tells whoever subscribed of a change.

A wait in NVML ends with the event, so a fault is known at once; polls find what has no event and
what is over. When NVML is gone, what was known stays, and it is tried again.
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
"""Between tries while NVML fails as a whole, or ends every wait at once."""

_SOON_S = 1.0
_UNANSWERED_S = 0.25
"""Longest wait for an event while a poll is not answered."""
_GPU_IS_LOST = 15
"""NVML_ERROR_GPU_IS_LOST (nvml.h)."""


def _no_jitter() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How Xids are judged, and how often GPUs are polled: the first time after a part of it.

    `wait_s` is the longest wait for an event: a stop, and another's need to start NVML anew, wait
    that long.
    """

    policy: health.Policy = field(default_factory=health.Policy)
    poll_s: float = 5.0
    wait_s: float = 1.0
    jitter: backoff.Jitter = _no_jitter


@dataclass(frozen=True, slots=True)
class Deps:
    """What the watch works with."""

    events: events.HealthEvents
    metrics: metrics.Metrics
    clock: clock.Clock
    quarantine: quarantine.Quarantine


class HealthWatch:
    """`run` is a thread's target; the rest may be called from any thread."""

    def __init__(self, watcher: ports.Watcher, settings: Settings, tools: Deps) -> None:
        self._watcher = watcher
        self._settings = settings
        self._deps = tools
        self._failing = backoff.Backoff(FAILING, settings.jitter)
        self._failed = False
        self._due_at = -math.inf
        self._round_at = tools.clock.monotonic()
        self._spread = settings.jitter()
        self._unanswered: set[ids.GpuUuid] = set()
        self._health: health.NodeHealth = {}
        self._ailments = MappingProxyType(dict(tools.quarantine.all_ailments()))
        self._listeners: list[Callable[[], None]] = []
        self._gpu_listeners: list[Callable[[], None]] = []
        self._problem: str | None = "the GPUs have not been polled yet"

    def ailments(self) -> Mapping[ids.GpuUuid, tuple[health.Ailment, ...]]:
        """What ails each GPU that was ever seen; a snapshot."""
        return self._ailments

    def problem(self) -> str | None:
        """Why what is known may be old; None when it is not."""
        return self._problem

    def unhealthy_summary(self) -> str | None:
        """What is wrong with GPUs, by GPU; None when they all are well."""
        ill = {gpu: a for gpu, a in self._ailments.items() if health.is_healthy(a) is False}
        lines = (f"{gpu}: {', '.join(one.message for one in ill[gpu])}" for gpu in sorted(ill))
        return "; ".join(lines) or None

    def idle_s(self) -> float:
        """Seconds since the loop last came round: a sick GPU may hold up a call of NVML."""
        return self._deps.clock.monotonic() - self._round_at

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Have `listener` called after every change, by our thread: it must not wait.

        To be asked for before `run`.
        """
        self._listeners.append(listener)

    def on_gpus_changed(self, looker: Callable[[], None]) -> None:
        """Have `looker` called when the GPUs may be others than they were.

        MIG was made by hand, say, or NVML is gone or back. By our thread: it must not wait.
        """
        self._gpu_listeners.append(looker)

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
        """Poll if it is time, then wait for one event."""
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
        """Watch every GPU there is, then poll these and those that were there."""
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
        """Ask one GPU; one that is slow to answer holds up no other."""
        signs = self._watcher.poll(gpu)
        if signs is None:
            self._unanswered.add(gpu)
            return
        self._unanswered.discard(gpu)
        self._observe(health.Polled(gpu, signs))

    def _handle_event(self, event: health.XidEvent | ports.GpuChanged | None) -> None:
        match event:
            case None:
                return
            case ports.GpuChanged(gpu=gpu):
                if gpu is None:
                    self._due_at = -math.inf
                else:
                    self._poll(gpu)
                self._notify_gpus_changed()
            case health.XidEvent():
                self._handle_xid(event)

    def _handle_xid(self, event: health.XidEvent) -> None:
        """A program may cause thousands: one that comes again is no reason to poll at once."""
        policy = self._settings.policy
        row = xids.lookup(policy.table, event.code)
        self._deps.metrics.count_xid(row)
        news = self._deps.events.report_xid(event, row, ails=policy.effect(row.xid_class) != "None")
        self._observe(event)
        if row.xid_class is xids.XidClass.APPLICATION:
            return
        if news:
            self._poll(event.gpu)
        else:
            self._due_at = min(self._due_at, self._deps.clock.monotonic() + _SOON_S)

    def _observe(self, observed: health.Observation) -> None:
        """Fold it in, and tell of what that changed."""
        policy, gpu = self._settings.policy, observed.gpu
        self._health = health.fold(self._health, observed, policy)
        before = self._ailments.get(gpu)
        after = self._current_ailments(observed)
        if before == after:
            return
        self._ailments = MappingProxyType({**self._ailments, gpu: after})
        ill = sum(health.is_healthy(found) is False for found in self._ailments.values())
        self._deps.metrics.unhealthy_gpus.set(ill)
        self._deps.metrics.quarantined_gpus.set(len(self._deps.quarantine.all_ailments()))
        _log.info("health changed", gpu=gpu, ailments=[f"{one.key}={one.value}" for one in after])
        for listener in self._listeners:
            listener()
        self._deps.events.report_change(gpu, before or (), after)

    def _current_ailments(self, observed: health.Observation) -> tuple[health.Ailment, ...]:
        """What ails its GPU, and the quarantine that it is in.

        That a GPU is watched says nothing of its health: after a start nobody has looked yet.
        """
        found = health.ailments(self._health[observed.gpu], self._settings.policy)
        kept = self._deps.quarantine
        if not isinstance(observed, health.Watched):
            kept.record(observed.gpu, ill=health.is_healthy(found) is False)
        return (*found, *kept.ailments(observed.gpu))

    def _set_problem(self, problem: str | None) -> None:
        """Whether NVML answers; the GPUs are looked at when that is another than it was."""
        turned, self._problem = (self._problem is None) is not (problem is None), problem
        if turned:
            self._notify_gpus_changed()

    def _notify_gpus_changed(self) -> None:
        for looker in self._gpu_listeners:
            looker()

    def _handle_fault(self, fault: errors.DeviceFault, stop: threading.Event) -> None:
        """After a failure look again at once; after the next ones, more and more slowly.

        The poll finds a lost GPU, and watches the others without a gap.
        """
        again, self._failed = self._failed, True
        self._due_at = -math.inf
        if again or fault.code != _GPU_IS_LOST:
            self._watcher.close()
        if not again:
            return
        wait_s = self._failing.after_failure()
        self._set_problem(f"the GPUs' health cannot be read: {fault}")
        _log.warning("health not readable", error=str(fault), retry_s=round(wait_s, 1))
        self._deps.clock.wait(stop, wait_s)
