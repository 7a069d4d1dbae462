"""Source of reports from the controller's caches, refreshed at most once a second."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from driver import clock
from driver.controller.informers import stores
from driver.controller.web import ports
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.provisioning import shape_status
from driver.scheduling.reports import catalog, model, read_model
from driver.scheduling.reports.documents import fleet

INTERVAL_S = 1.0
_PART = 10
"""Looks take at most a tenth of the time, however many ask: the decider has the same processor."""


@dataclass(frozen=True, slots=True)
class SourceInputs:
    """Inputs beside the caches.

    `require_readable` raises NotLeader where this replica cannot answer; `stale` names, in words,
    the stale caches; `offer` is the status of node shapes; `plan` the backfill plan.
    """

    require_readable: Callable[[], None]
    stale: Callable[[], Sequence[str]]
    explain: catalog.Explain
    moments: Callable[[], Sequence[model.Moment]]
    offer: Callable[[], shape_status.ShapeStatus | None] = lambda: None
    plan: Callable[[], backfill_plan.BackfillPlan | None] = lambda: None


class ReportSource:
    """Source of reports. Thread safe; readers wait for one another's refresh alone."""

    def __init__(
        self, caches: stores.Stores, driver: str, minded: SourceInputs, time: clock.Clock
    ) -> None:
        self._stores = caches
        self._driver = driver
        self._inputs = minded
        self._clock = time
        self._lock = threading.Lock()
        self._last: catalog.Reports | None = None
        self._due = 0.0

    def read(self) -> catalog.Reports:
        """Return the current reports. Raises NotLeader."""
        self._inputs.require_readable()
        with self._lock:
            began = self._clock.monotonic()
            if self._last is None or began >= self._due:
                self._last = self._read(self._last.cluster if self._last else None)
                took_s = self._clock.monotonic() - began
                self._due = began + max(INTERVAL_S, _PART * took_s)
            return self._last

    def nodes(self) -> Sequence[model.Node]:
        """Return every node with GPUs, for metrics; empty while this replica cannot answer."""
        try:
            return fleet.node_documents(self.read().cluster)
        except ports.NotLeader:
            return ()

    def shapes(self) -> Sequence[model.Shape]:
        """Return every node shape, as for `nodes`."""
        try:
            return self.read().shapes().items
        except ports.NotLeader:
            return ()

    def _read(self, previous: read_model.ClusterModel | None) -> catalog.Reports:
        caches = self._stores
        objects = read_model.Objects(
            driver=self._driver,
            nodes=caches.nodes.snapshot(),
            slices=caches.slices.snapshot(),
            classes=caches.classes.snapshot(),
            claims=caches.claims.snapshot(),
            pods=caches.pods.snapshot(),
            rules=caches.taint_rules.snapshot(),
            queues=caches.queues.snapshot(),
            reservations=caches.reservations.snapshot(),
            missing=tuple(self._inputs.stale()),
            shapes=self._inputs.offer(),
            plan=self._inputs.plan(),
        )
        timestamp, minded = clock.rfc3339(self._clock.now()), self._inputs
        reading = catalog.Reports(
            read_model.ClusterModel(objects, previous), timestamp, minded.explain, minded.moments()
        )
        reading.fleet()  # here, where it is timed: most of what any report takes
        return reading


def require_leader(leads: Callable[[], bool], leader: Callable[[], str]) -> None:
    """Raise NotLeader where this replica does not lead."""
    if leads():
        return
    name = leader()
    who = f"{name} leads: ask that one" if name else "no controller leads yet: retry in a moment"
    raise ports.NotLeader(f"this replica stands by; {who}", name)


def require_synced(empty: Iterable[str]) -> None:
    """Raise NotLeader while caches have no listing yet."""
    names = ", ".join(empty)
    if names:
        raise ports.NotLeader(
            f"this replica leads, and is still listing {names}: ask again in a moment"
        )
