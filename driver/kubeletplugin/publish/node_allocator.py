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
_WORDS = {"controller": "Ration's controller", "scheduler": "kube-scheduler"}


@dataclass(frozen=True, slots=True)
class Tools:
    """What a handover is told with and timed by."""

    teller: plugin_events.Teller
    metrics: metrics.Metrics
    clock: clock.Clock


class NodeAllocator:
    """Used by one thread. `flag` is who allocates where the Node's label does not say."""

    def __init__(self, flag: str, file: Path, tools: Tools) -> None:
        self._flag = flag
        self._file = file
        self._tools = tools
        self._wanted = flag
        self._problem: pool_builder.Problem | None = None
        self._last: str | None = None
        self._since: float | None = None
        self._told = False

    def follow(self, node: nodes.Node) -> None:
        """Take note of the Node's label as it is now."""
        label = node.labels.get(names.ALLOCATOR_LABEL, self._flag)
        known = label in handover.ALLOCATORS
        self._problem = None if known else _unusable(label, self._flag)
        wanted = label if known else self._flag
        if wanted != self._wanted:
            _log.info("another allocator is wanted", allocator=wanted, before=self._wanted)
        self._wanted = wanted

    def problems(self) -> tuple[pool_builder.Problem, ...]:
        """What is wrong with the label."""
        return () if self._problem is None else (self._problem,)

    def choose(self, stored: Iterable[fields.Raw]) -> handover.Shown:
        """What the slices are to show, as they are stored now. Raises NodeFault."""
        if self._last is None:
            self._last = (atomic.read(self._file) or b"").decode(errors="replace").strip()
        found = handover.seen(stored)
        if not handover.settles(found, self._wanted):
            self._since = None
        return handover.decide(found, self._wanted, handover.Past(self._last, self._waited_s()))

    def begin(self, shown: handover.Shown) -> None:
        """Called before slices are written so. Raises NodeFault."""
        if shown.allocator == self._last or (shown.handing and self._last):
            return
        atomic.replace(self._file, shown.allocator.encode(), _MODE, failpoints.NOBODY)
        self._last = shown.allocator

    def done(self, shown: handover.Shown, node: nodes.Node) -> None:
        """Called once every slice is stored so."""
        self._tools.metrics.handing_over.set(shown.handing)
        if shown.handing:
            if self._since is None:
                self._since = self._tools.clock.monotonic()
            self._tell_begin(node)
            return
        self._since = None
        self._tell_end(shown, node)

    def leave(self) -> None:
        """Another plugin publishes: what was seen so far says nothing any more."""
        self._last = self._since = None
        self._told = False
        self._tools.metrics.handing_over.set(0)

    def due_in_s(self) -> float | None:
        """Seconds until a handover should be over, never less than one; None outside one."""
        waited_s = self._waited_s()
        return None if waited_s is None else max(1.0, handover.HANDOVER_S - waited_s)

    def _waited_s(self) -> float | None:
        return None if self._since is None else self._tools.clock.monotonic() - self._since

    def _tell_begin(self, node: nodes.Node) -> None:
        if self._told:
            return
        self._told = True
        _log.info("handing over", allocator=self._wanted, before=self._last)
        text = (
            f"nobody gives out the devices of this node for {handover.HANDOVER_S:.0f} s, "
            f"then {_WORDS[self._wanted]} does"
        )
        reason = reasons.Reason.ALLOCATOR_CHANGING
        self._tools.teller.node_notice(node.name, node.uid, reason, text)

    def _tell_end(self, shown: handover.Shown, node: nodes.Node) -> None:
        if not self._told:
            return
        self._told = False
        _log.info("handed over", allocator=shown.allocator)
        text = f"{_WORDS[shown.allocator]} gives out the devices of this node now"
        reason = reasons.Reason.ALLOCATOR_CHANGED
        self._tools.teller.node_notice(node.name, node.uid, reason, text)


def _unusable(label: str, flag: str) -> pool_builder.Problem:
    text = (
        f"label {names.ALLOCATOR_LABEL} is {label!r}; expected controller or scheduler. "
        f"As without it, {_WORDS[flag]} gives out the devices"
    )
    return pool_builder.Problem(reasons.Reason.ALLOCATOR_LABEL_INVALID, text)
