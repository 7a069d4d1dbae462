"""Who allocates this node's devices: as its label says, else the flag, through handovers (D2).

What is published is read from the slices; beside them a file says who was published last, because
the kubelet wipes slices while they may still be in somebody's cache.
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
    """What a handover is told with and timed by."""

    reporter: plugin_events.EventReporter
    metrics: metrics.Metrics
    clock: clock.Clock


class NodeAllocator:
    """Used by one thread. `flag` is who allocates where the Node's label does not say."""

    def __init__(self, flag: str, file: Path, tools: Deps) -> None:
        self._flag = flag
        self._file = file
        self._deps = tools
        self._desired = flag
        self._problem: pool_builder.Problem | None = None
        self._last: str | None = None
        self._since: float | None = None
        self._reported = False

    def update(self, node: nodes.Node) -> None:
        """Take note of the Node's label as it is now."""
        label = node.labels.get(names.ALLOCATOR_LABEL, self._flag)
        known = label in handover.ALLOCATORS
        self._problem = None if known else _invalid_label(label, self._flag)
        wanted = label if known else self._flag
        if wanted != self._desired:
            _log.info("another allocator is wanted", allocator=wanted, before=self._desired)
        self._desired = wanted

    def problems(self) -> tuple[pool_builder.Problem, ...]:
        """What is wrong with the label."""
        return () if self._problem is None else (self._problem,)

    def choose_state(self, stored: Iterable[fields.Raw]) -> handover.AllocatorState:
        """What the slices are to show, as they are stored now. Raises NodeFault."""
        if self._last is None:
            self._last = (atomic.read(self._file) or b"").decode(errors="replace").strip()
        found = handover.stored_allocators(stored)
        if not handover.is_settled(found, self._desired):
            self._since = None
        return handover.decide(
            found, self._desired, handover.HandoverHistory(self._last, self._waited_s())
        )

    def before_write(self, shown: handover.AllocatorState) -> None:
        """Called before slices are written so. Raises NodeFault."""
        if shown.allocator == self._last or (shown.in_handover and self._last):
            return
        atomic.replace(self._file, shown.allocator.encode(), _MODE, failpoints.NO_OBSERVER)
        self._last = shown.allocator

    def after_write(self, shown: handover.AllocatorState, node: nodes.Node) -> None:
        """Called once every slice is stored so."""
        self._deps.metrics.handing_over.set(shown.in_handover)
        if shown.in_handover:
            if self._since is None:
                self._since = self._deps.clock.monotonic()
            self._report_start(node)
            return
        self._since = None
        self._report_end(shown, node)

    def reset(self) -> None:
        """Another plugin publishes: what was seen so far says nothing any more."""
        self._last = self._since = None
        self._reported = False
        self._deps.metrics.handing_over.set(0)

    def due_in_s(self) -> float | None:
        """Seconds until a handover should be over, never less than one; None outside one."""
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
            f"nobody gives out the devices of this node for {handover.HANDOVER_S:.0f} s, "
            f"then {_ALLOCATOR_NAMES[self._desired]} does"
        )
        reason = reasons.Reason.ALLOCATOR_CHANGING
        self._deps.reporter.notify_node(node.name, node.uid, reason, text)

    def _report_end(self, shown: handover.AllocatorState, node: nodes.Node) -> None:
        if not self._reported:
            return
        self._reported = False
        _log.info("handed over", allocator=shown.allocator)
        text = f"{_ALLOCATOR_NAMES[shown.allocator]} gives out the devices of this node now"
        reason = reasons.Reason.ALLOCATOR_CHANGED
        self._deps.reporter.notify_node(node.name, node.uid, reason, text)


def _invalid_label(label: str, flag: str) -> pool_builder.Problem:
    text = (
        f"label {names.ALLOCATOR_LABEL} is {label!r}; expected controller or scheduler. "
        f"As without it, {_ALLOCATOR_NAMES[flag]} gives out the devices"
    )
    return pool_builder.Problem(reasons.Reason.ALLOCATOR_LABEL_INVALID, text)
