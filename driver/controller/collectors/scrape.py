"""The controller's metrics that are worked out at scrapes, of its caches and of what it remembers.

Nobody is asked over a network. The fleet is counted no more often than every `FLEET_S`.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from driver import clock
from driver.controller.collectors import fleet, managed_devices, node_shapes
from driver.controller.scheduler.metrics import pending, queues
from driver.resources import reservations
from driver.resources.dra import taint_rules
from driver.runtime.metrics.families import Family, Figures, Labels
from driver.scheduling.reports import model

FLEET_S: Final = 10.0
CACHE_AGE: Final = Family(
    "dra_gpu_controller_cache_age_seconds",
    "Seconds since an informer last heard from the API server, while this process leads.",
    ("cache",),
)
FAMILIES: Final = (
    *(*fleet.FAMILIES, *queues.FAMILIES, *node_shapes.FAMILIES, *pending.FAMILIES),
    *(*managed_devices.FAMILIES, CACHE_AGE),
)
"""Standbys have no caches, and series of none of these."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Callables that supply the values. Each may be called from any thread and does not block."""

    is_leading: Callable[[], bool]
    nodes: Callable[[], Sequence[model.Node]]
    reservations: Callable[[], Iterable[reservations.Reservation]]
    pending: Callable[[], pending.PendingState]
    queues: Callable[[], Figures]
    ages_s: Callable[[], Mapping[str, float]]
    shapes: Callable[[], Sequence[model.Shape]] = tuple
    rules: Callable[[], Iterable[taint_rules.TaintRule]] = tuple


class ControllerCollector:
    """`figures` is a `shown.Source`."""

    def __init__(self, sources: Sources, time: clock.Clock) -> None:
        self._sources = sources
        self._clock = time
        self._lock = threading.Lock()
        self._counted: Figures = {}
        self._counted_at = -math.inf

    def figures(self) -> Figures:
        """All of `FAMILIES`."""
        ask = self._sources
        if not ask.is_leading():
            return {}
        ages: dict[Labels, float] = {
            (name,): age for name, age in ask.ages_s().items() if age < math.inf
        }
        return {
            **self._of_fleet(),
            **ask.queues(),
            **node_shapes.figures(ask.shapes(), self._clock.now()),
            **pending.pending_values(ask.pending(), ask.reservations()),
            **managed_devices.figures(ask.rules()),
            CACHE_AGE.name: ages,
        }

    def _of_fleet(self) -> Figures:
        with self._lock:
            now = self._clock.monotonic()
            if now - self._counted_at >= FLEET_S:
                self._counted = fleet.figures(self._sources.nodes())
                self._counted_at = now
            return self._counted
