"""The allocator of this node's devices: its label, else the flag, through handovers (D2).

The published state is read from the slices. A file beside them records the allocator published
last, as the kubelet wipes slices while they may still be in an allocator's cache.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from driver import clock, names, reasons
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics
from driver.kubeletplugin.publish import handover, pool_builder
from driver.resources import fields
from driver.resources.core import nodes
from driver.runtime.files import atomic, failpoints

_log = structlog.get_logger(__name__)
_MODE = 0o644
_ALLOCATOR_NAMES = {"controller": "Ration's controller", "scheduler": "kube-scheduler"}


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies for reporting and timing handovers."""

    reporter: plugin_events.EventReporter
    metrics: metrics.Metrics
    clock: clock.Clock


class NodeAllocator:
    """Used by one thread. `flag` is the allocator if the Node's label names none."""

    def __init__(self, flag: str, file: Path, deps: Deps) -> None:
        self._flag = flag
        self._file = file
        self._deps = deps
        self._desired = flag
        self._problem: pool_builder.Problem | None = None
        self._last: str | None = None
        self._since: float | None = None
        self._reported = False

    def update(self, node: nodes.Node) -> None:
        """Take the Node's current label."""
        label = node.labels.get(names.ALLOCATOR_LABEL, self._flag)
        is_valid = label in handover.ALLOCATORS
        self._problem = None if is_valid else _invalid_label(label, self._flag)
        desired = label if is_valid else self._flag
        if desired != self._desired:
            _log.info("another allocator is wanted", allocator=desired, before=self._desired)
        self._desired = desired

    def problems(self) -> tuple[pool_builder.Problem, ...]:
        """Return the problems of the label."""
        return () if self._problem is None else (self._problem,)

    def choose_state(self, stored: Iterable[fields.Raw]) -> handover.AllocatorState:
        """Return the state to publish, given the stored slices. Raises NodeFault."""
        if self._last is None:
            self._last = (atomic.read(self._file) or b"").decode(errors="replace").strip()
        current = handover.stored_allocators(stored)
        if not handover.is_settled(current, self._desired):
            self._since = None
        return handover.decide(
            current, self._desired, handover.HandoverHistory(self._last, self._waited_s())
        )

    def before_write(self, state: handover.AllocatorState) -> None:
        """Record the state before slices are written. Raises NodeFault."""
        if state.allocator == self._last or (state.in_handover and self._last):
            return
        atomic.replace(self._file, state.allocator.encode(), _MODE, failpoints.NO_OBSERVER)
        self._last = state.allocator

    def after_write(self, state: handover.AllocatorState, node: nodes.Node) -> None:
        """Record the state after every slice is stored."""
        self._deps.metrics.handing_over.set(state.in_handover)
        if state.in_handover:
            if self._since is None:
                self._since = self._deps.clock.monotonic()
            self._report_start(node)
            return
        self._since = None
        self._report_end(state, node)

    def reset(self) -> None:
        """Drop the state, as another plugin publishes."""
        self._last = self._since = None
        self._reported = False
        self._deps.metrics.handing_over.set(0)

    def due_in_s(self) -> float | None:
        """Return the seconds until a handover should end, at least 1; None outside one."""
        waited_s = self._waited_s()
        return None if waited_s is None else max(1.0, handover.HANDOVER_S - waited_s)

    def _waited_s(self) -> float | None:
        return None if self._since is None else self._deps.clock.monotonic() - self._since

    def _report_start(self, node: nodes.Node) -> None:
        if self._reported:
            return
        self._reported = True
        _log.info("handing over", allocator=self._desired, before=self._last)
        text = (
            f"no device of this node is allocated for {handover.HANDOVER_S:.0f} s, "
            f"then {_ALLOCATOR_NAMES[self._desired]} allocates them"
        )
        reason = reasons.Reason.ALLOCATOR_CHANGING
        self._deps.reporter.notify_node(node.name, node.uid, reason, text)

    def _report_end(self, state: handover.AllocatorState, node: nodes.Node) -> None:
        if not self._reported:
            return
        self._reported = False
        _log.info("handed over", allocator=state.allocator)
        text = f"{_ALLOCATOR_NAMES[state.allocator]} allocates the devices of this node now"
        reason = reasons.Reason.ALLOCATOR_CHANGED
        self._deps.reporter.notify_node(node.name, node.uid, reason, text)


def _invalid_label(label: str, flag: str) -> pool_builder.Problem:
    text = (
        f"label {names.ALLOCATOR_LABEL} is {label!r}; expected controller or scheduler. "
        f"It is ignored: {_ALLOCATOR_NAMES[flag]} allocates the devices"
    )
    return pool_builder.Problem(reasons.Reason.ALLOCATOR_LABEL_INVALID, text)
