"""The thread that resets GPUs which ask for it, where that is switched on; `resetting` decides.

The GPU is in hand meanwhile: a Prepare on it waits. So do all calls of NVML, and no GPU's events
are watched for the few seconds that a reset takes.
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
"""Between looks: that the last claim has left wakes nobody."""
AGAIN_S: Final = 600.0
"""From one try of a GPU to the next; what a reset did not cure, the next one hardly does."""

Ailing = Callable[[], Mapping[ids.GpuUuid, Sequence[health.Ailment]]]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Node:
    """What is looked at and acted on.

    `use` says what is on a GPU, `reset` resets one that is in hand; both raise NodeFault and
    DeviceFault.
    """

    use: Callable[[ids.GpuUuid], reset_policy.Use]
    reset: Callable[[ids.GpuUuid], None]
    holding: locks.Locks


@dataclass(frozen=True, slots=True)
class Tools:
    """What the watch works with; `done` and `failed` are told in words what came of a try."""

    done: Tell
    failed: Tell
    metrics: metrics.Metrics
    clock: clock.Clock


class ResetWatch:
    """`run` is a thread's target; `hurry` may be called from any thread."""

    def __init__(self, node: Node, ailing: Ailing, tools: Tools) -> None:
        self._node = node
        self._ailing = ailing
        self._tools = tools
        self._wake = threading.Event()
        self._tried_at: dict[ids.GpuUuid, float] = {}
        self._waiting: dict[ids.GpuUuid, str] = {}

    def hurry(self) -> None:
        """What ails a GPU has changed: look at once."""
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop; who tells so wakes us by `hurry`."""
        while not stop.is_set():
            self.look(stop)
            self._tools.clock.wait(self._wake, EVERY_S)
            self._wake.clear()

    def look(self, stop: threading.Event) -> None:
        """Reset what asks for it and has nothing on it."""
        asking = [gpu for gpu, found in self._ailing().items() if reset_policy.asked(found)]
        self._waiting = {gpu: why for gpu, why in self._waiting.items() if gpu in asking}
        for gpu in sorted(asking):
            if stop.is_set():
                return
            if self._is_due(gpu):
                self._try(gpu)

    def _is_due(self, gpu: ids.GpuUuid) -> bool:
        tried_at = self._tried_at.get(gpu)
        return tried_at is None or self._tools.clock.monotonic() - tried_at >= AGAIN_S

    def _try(self, gpu: ids.GpuUuid) -> None:
        """Without the GPU in hand first, so that nobody waits for a reset that is not to be."""
        try:
            if self._may(gpu, self._node.use(gpu)):
                self._take(gpu)
        except errors.RationError as e:
            self._wait_for(gpu, str(e))

    def _take(self, gpu: ids.GpuUuid) -> None:
        with self._node.holding.gpus([gpu]):
            use = self._node.use(gpu)
            if self._may(gpu, use):
                self._reset(gpu, use)

    def _may(self, gpu: ids.GpuUuid, use: reset_policy.Use) -> bool:
        why = reset_policy.hindrance(use)
        if why:
            self._wait_for(gpu, why)
        return not why

    def _wait_for(self, gpu: ids.GpuUuid, why: str) -> None:
        """Say it once, and not every minute."""
        if self._waiting.get(gpu) != why:
            self._waiting[gpu] = why
            _log.info("reset waits", gpu=gpu, why=why)

    def _reset(self, gpu: ids.GpuUuid, use: reset_policy.Use) -> None:
        began = self._tried_at[gpu] = self._tools.clock.monotonic()
        action = health.Recovery(use.signs.action).name
        _log.warning("resetting", gpu=gpu, action=action)
        try:
            self._node.reset(gpu)
        except errors.RationError as e:
            self._tools.metrics.resets["failed"].inc()
            _log.warning("reset failed", gpu=gpu, error=str(e))
            minutes = round(AGAIN_S / 60)
            text = f"{gpu} asks for {action} and could not be reset: {e}; again in {minutes} min"
            self._tools.failed(text)
            return
        self._tools.metrics.resets["done"].inc()
        duration_s = self._tools.clock.monotonic() - began
        _log.warning("reset done", gpu=gpu, action=action, duration_s=round(duration_s, 1))
        self._tools.done(f"{gpu} asked for {action} and was reset in {duration_s:.1f} s")
