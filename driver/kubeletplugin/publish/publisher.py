"""Keeps the node's ResourceSlices equal to its GPUs: reads, compares, writes the difference.

The kubelet deletes every slice of the node when it starts, so a change, ours or foreign, wakes the
loop at once; after a write the loop waits increasingly before the next write, so that two writers
that disagree do not fight. Of two plugins on the node the newest writes.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from driver import clock, errors, ids, reasons
from driver.kube import backoff, client, gvr, reflector, store
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics
from driver.kubeletplugin.publish import (
    conflicts,
    handover,
    node_allocator,
    node_events,
    pool_builder,
    slice_plan,
)
from driver.resources.core import nodes
from driver.resources.dra import version_support
from driver.resources.publish import slice_builder

_log = structlog.get_logger(__name__)
_SHOWN = 5
_TURN_S = 2.0
"""Interval of checks for the end of a newer plugin."""
_BREATH_S = 0.01
"""A health change is often reported twice at once, by the event and by the poll it triggers."""
WRITING = backoff.Pace(base_s=0.5, max_s=3.0)
"""Back-off of writes: the kubelet may wipe several times a minute, and the slices must be back
soon.
"""
FAILING = backoff.Pace(base_s=0.5, max_s=15.0)


def _always() -> bool:
    return True


def _ignore_node(_node: nodes.Node) -> None:
    """Ignore the Node."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Identity and timing.

    `share_domain`: `cluster` publishes shared faces under kube-scheduler too (D18). `settle_s`:
    wait for further changes after a change. `quiet_s`: after this time without a write the back-off
    is reset. `label_s`: interval of reading the Node's label.
    """

    driver: str
    node: ids.NodeName
    share_domain: str = "none"
    settle_s: float = 0.3
    quiet_s: float = 60.0
    label_s: float = 10.0
    writing: backoff.Pace = WRITING
    failing: backoff.Pace = FAILING
    jitter: backoff.Jitter = backoff.no_jitter


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies of the publisher.

    `is_elected`: whether this plugin publishes; raises NodeFault. `on_node` is called with the Node
    each time it is read. `conflict_detector`: whether the GPUs may be published; by default they
    may.
    """

    kube: client.KubeClient
    reporter: plugin_events.EventReporter
    metrics: metrics.Metrics
    clock: clock.Clock
    allocator: node_allocator.NodeAllocator
    is_elected: Callable[[], bool] = _always
    on_node: Callable[[nodes.Node], None] = _ignore_node
    conflict_detector: conflicts.ConflictDetector = field(
        default_factory=conflicts.ConflictDetector
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Pool, UID of the Node and stored slices that were compared."""

    pool: slice_builder.Pool
    node_uid: str
    stored: Mapping[ids.Key, slice_plan.Object]

    def is_same(self, other: "_Comparison | None") -> bool:
        """Return whether comparing would have the same result; a changed store is another one."""
        return (
            other is not None
            and self.stored is other.stored
            and (self.pool, self.node_uid) == (other.pool, other.node_uid)
        )


class Publisher:
    """`run` is a thread's target, and `slices.run` that of the cache behind it."""

    def __init__(self, builder: pool_builder.PoolBuilder, settings: Settings, deps: Deps) -> None:
        self._pool_builder = builder
        self._settings = settings
        self._deps = deps
        self._store: store.Store[slice_plan.Object] = store.Store()
        self._wake = threading.Event()
        self._urgent = threading.Event()
        self._reread = threading.Event()
        self._writing = backoff.Backoff(settings.writing, settings.jitter)
        self._failing = backoff.Backoff(settings.failing, settings.jitter)
        self._wrote_at = -math.inf
        self._round_at = deps.clock.monotonic()
        self._node: nodes.Node | None = None
        self._node_at = -math.inf
        self._version = ""
        self._allocator = deps.allocator
        self._generation = 0
        self._written: dict[str, slice_plan.WrittenSlice] = {}
        self._settled: _Comparison | None = None
        self._missing_feature: str | None = None
        self._quiet = False
        self._node_events = node_events.NodeEvents(deps.reporter)
        self._problem: str | None = "the slices have not been published yet"
        self._withheld: str | None = None
        self._behind_at: float | None = None
        self.slices = self._reflector()

    def problem(self) -> str | None:
        """Return why the slices are not as they should be; None if they are.

        A GPU that cannot be read is reported on the Node, and tainted: the slices are correct.
        """
        return self._problem

    def withheld(self) -> str | None:
        """Return why nothing is published although the slices are correct; None otherwise.

        Another agent gives out the GPUs, or changes them. If the plugin were not ready meanwhile,
        it would stop the update of every other node's.
        """
        return self._withheld

    def lag_s(self) -> float:
        """Return the seconds since desired and stored slices differ; 0 while they agree."""
        since = self._behind_at
        return 0.0 if since is None else self._deps.clock.monotonic() - since

    def idle_s(self) -> float:
        """Return the seconds since the last round; waiting for the API server counts as one."""
        return self._deps.clock.monotonic() - self._round_at

    def publish_now(self) -> None:
        """Publish what changed at once, then read all GPUs again; from any thread."""
        self._reread.set()
        self._urgent.set()
        self._wake.set()

    def publish_health(self, gpu: ids.GpuUuid) -> None:
        """Publish a GPU's health at once, and check that GPU soon; from any thread."""
        self._pool_builder.request_check(gpu)
        self._urgent.set()
        self._wake.set()

    def check_gpu(self, gpu: ids.GpuUuid) -> None:
        """Publish what changed of a GPU, such as its MIG, soon; from any thread."""
        if self._pool_builder.request_check(gpu):
            self._wake.set()

    def stored_slices(self) -> Iterable[slice_plan.Object]:
        """Return the node's known slices of our driver's name; from any thread."""
        return self._store.snapshot().values()

    def report(self, problem: pool_builder.Problem) -> None:
        """Report on the Node, before `run` does anything. Raises RationError."""
        self._node_events.report(self._node or self._read_node(), problem)

    def interrupt(self) -> None:
        """Wake `run` after its stop was set."""
        self.publish_now()

    def node_uid(self) -> str:
        """Return the Node's UID; empty while it has not been read."""
        return self._node.uid if self._node else ""

    def run(self, stop: threading.Event) -> None:
        """Publish until `stop` is set. The slices stay: the kubelet and the Node own their end."""
        time = self._deps.clock
        while not stop.is_set() and not time.wait(self.slices.synced, 0.2):
            self._round_at = time.monotonic()
        while not stop.is_set():
            self._round_at = time.monotonic()
            urgent = self._take_urgent(stop)
            if not urgent:
                self._pool_builder.refresh()
                self._refresh_node()
            at_once = self._publish(stop)
            if urgent:
                # More may come of it, and nothing is published while the GPUs are read.
                time.wait(self._urgent, self._settings.settle_s)
                if self._reread.is_set():
                    self._reread.clear()
                    self._pool_builder.request_refresh()
            elif not at_once:
                time.wait(self._wake, self._due_in_s())
                time.wait(self._urgent, self._settings.settle_s)
            self._wake.clear()

    def _due_in_s(self) -> float:
        """Return the seconds until the next periodic work."""
        dues = [self._pool_builder.due_in_s()]
        if self._node is not None:
            since_s = self._deps.clock.monotonic() - self._node_at
            dues.append(max(0.0, self._settings.label_s - since_s))
        turn_s = _TURN_S if self._quiet else self._allocator.due_in_s()
        return min(dues if turn_s is None else [*dues, turn_s])

    def _take_urgent(self, stop: threading.Event) -> bool:
        """Return whether a health change is pending, and clear it."""
        if not self._urgent.is_set():
            return False
        self._deps.clock.wait(stop, _BREATH_S)
        self._urgent.clear()
        return True

    def _reflector(self) -> reflector.Reflector[slice_plan.Object]:
        selector = f"spec.driver={self._settings.driver},spec.nodeName={self._settings.node}"
        self._store.subscribe(lambda _key, _old, _new: self._wake.set())
        return reflector.Reflector(
            reflector.ListWatch(self._deps.kube, gvr.RESOURCE_SLICES, field_selector=selector),
            self._store,
            lambda written: written,
            self._deps.clock,
            reflector.Options(jitter=self._settings.jitter),
        )

    def _publish(self, stop: threading.Event) -> bool:
        """Run one pass and its pause; return whether the next one follows at once.

        A health change does not wait for the pause between writes.
        """
        now = self._deps.clock.monotonic()
        if now - self._wrote_at > self._settings.quiet_s:
            self._writing.reset()
        if self._behind_at is None:
            self._behind_at = now
        try:
            wrote = self._publish_once() if self._is_publisher() else 0
        except (errors.ApiError, errors.NodeFault) as e:
            self._problem = f"slices not published: {e}"
            self._deps.metrics.publish_failures.inc()
            retry_after_s = e.retry_after_s if isinstance(e, errors.ApiError) else None
            wait_s = self._failing.after_failure(retry_after_s)
            _log.warning("slices not published", error=str(e), retry_s=round(wait_s, 1))
            self._deps.clock.wait(stop, wait_s)
            return True
        self._behind_at = None
        self._failing.reset()
        self._deps.metrics.slices.set(len(self._store))
        if wrote:
            self._wrote_at = now
            self._deps.clock.wait(self._urgent, self._writing.after_failure())
        return self._pool_builder.due_in_s() == 0 or self._urgent.is_set()

    def _is_publisher(self) -> bool:
        """Return whether to write; if a newer plugin does, all is well. Raises NodeFault."""
        self._quiet = not self._deps.is_elected()
        if self._quiet:
            self._problem = self._withheld = None
            self._allocator.reset()
        return not self._quiet

    def _publish_once(self) -> int:
        """Compare and write; return the number of writes. Raises ApiError, NodeFault."""
        node = self._node or self._read_node()
        conflict = self._deps.conflict_detector.check_name(self.stored_slices())
        if conflict is None:
            return self._publish_gpus(node)
        # Whatever were written now, the other one would delete or outdo.
        self._node_events.report_current(node, (conflict,))
        self._problem, self._withheld = str(conflict), None
        return 0

    def _publish_gpus(self, node: nodes.Node) -> int:
        """Make the slices match the GPUs; return the number of writes."""
        node_problems = self._deps.conflict_detector.node_conflicts(node)
        state = self._allocator.choose_state(self._intended_slices())
        update = self._pool_builder.build(
            self._options(state, closed=bool(node_problems)), self.stored_slices()
        )
        problems = (*node_problems, *update.problems)
        self._node_events.report_current(
            node, (*problems, *self._sharing_problems(), *self._allocator.problems())
        )
        wrote = 0
        if update.pool is not None and node_problems and not update.pool.devices:
            wrote = self._withdraw(node)
        elif update.pool is not None:
            self._deps.metrics.set_devices(update.pool.devices)
            self._allocator.before_write(state)
            wrote = self._write_pool(update.pool, node)
            self._allocator.after_write(state, node)
        blocking = (
            problem
            for problem in update.problems
            if problem.reason not in pool_builder.NON_BLOCKING
        )
        self._problem = "; ".join(map(str, blocking)) or None
        self._withheld = "; ".join(map(str, node_problems)) or None
        return wrote

    def _options(
        self, state: handover.AllocatorState, *, closed: bool
    ) -> pool_builder.PublishOptions:
        settings = self._settings
        return pool_builder.PublishOptions(
            settings.driver,
            settings.node,
            state,
            plain=self._missing_feature is not None,
            shares=settings.share_domain == "cluster",
            closed=closed,
        )

    def _withdraw(self, node: nodes.Node) -> int:
        """Delete our slices; return the number of writes."""
        self._deps.metrics.set_devices(())
        self._allocator.reset()
        current = list(self.stored_slices())
        self._generation = max(self._generation, slice_plan.highest_generation(current))
        writes = slice_plan.plan_withdrawal(current)
        self._write(writes, node)
        return len(writes)

    def _write_pool(self, pool: slice_builder.Pool, node: nodes.Node) -> int:
        """Write the difference to the pool; return the number of writes."""
        current = _Comparison(pool, node.uid, self._store.snapshot())
        if current.is_same(self._settled):
            return 0
        writes = self._plan(pool, node)
        if writes.creates:
            # The Node may be another one of that name by now, and the slices gone with the old one.
            node = self._read_node()
            writes = self._plan(pool, node)
        self._write(writes, node)
        self._settled = None if writes else current
        return len(writes)

    def _sharing_problems(self) -> tuple[pool_builder.Problem, ...]:
        if self._missing_feature is None:
            return ()
        return (pool_builder.Problem(reasons.Reason.SHARING_DISABLED, self._missing_feature),)

    def _read_node(self) -> nodes.Node:
        """Read the Node, whose label names the allocator, and the server's version."""
        node = nodes.parse(self._deps.kube.get(gvr.NODES, self._settings.node))
        version = self._deps.kube.server_version().git
        if self._version != version:
            self._version, self._missing_feature = version, version_support.check_version(version)
        self._set_node(node)
        return node

    def _refresh_node(self) -> None:
        """Read a known Node periodically; on failure the last one stays."""
        time, settings = self._deps.clock, self._settings
        if self._node is None or time.monotonic() - self._node_at < settings.label_s:
            return
        try:
            self._set_node(nodes.parse(self._deps.kube.get(gvr.NODES, settings.node)))
        except errors.RationError as e:
            self._node_at = time.monotonic()
            _log.warning("node not read", error=str(e), retry_s=settings.label_s)

    def _set_node(self, node: nodes.Node) -> None:
        self._node, self._node_at = node, self._deps.clock.monotonic()
        self._allocator.update(node)
        self._deps.on_node(node)

    def _intended_slices(self) -> Iterable[slice_plan.Object]:
        """Yield the stored slices, or their intended form if the server dropped fields."""
        memory = slice_plan.WriteHistory(self._generation, self._written)
        return (memory.intended(slice_) or slice_ for slice_ in self._store.snapshot().values())

    def _plan(self, pool: slice_builder.Pool, node: nodes.Node) -> slice_plan.Writes:
        """Return the writes from the cached slices to the pool."""
        current = list(self._store.snapshot().values())
        self._generation = max(self._generation, slice_plan.highest_generation(current))
        memory = slice_plan.WriteHistory(self._generation, self._written)
        owner = slice_builder.Owner(node.name, node.uid)
        writes = slice_plan.plan_writes(pool, owner, current, memory)
        self._written = dict(writes.unchanged)
        return writes

    def _write(self, writes: slice_plan.Writes, node: nodes.Node) -> None:
        if not writes:
            return
        kube, count = self._deps.kube, self._deps.metrics.writes
        for slice_ in writes.deletes:
            self._delete(slice_["metadata"])
            count["delete"].inc()
        for slice_ in writes.updates:
            name = slice_["metadata"]["name"]
            self._accept(
                writes.intended[name], kube.replace(gvr.RESOURCE_SLICES, name, slice_), node
            )
            count["update"].inc()
        for slice_ in writes.creates:
            self._accept(slice_, kube.create(gvr.RESOURCE_SLICES, slice_), node)
            count["create"].inc()
        deleted, updated, created = map(len, (writes.deletes, writes.updates, writes.creates))
        _log.info("slices published", deleted=deleted, updated=updated, created=created)

    def _delete(self, meta: slice_plan.Object) -> None:
        """Delete exactly the version that was read."""
        name, version = meta["name"], meta["resourceVersion"]
        try:
            self._deps.kube.delete(gvr.RESOURCE_SLICES, name, uid=meta["uid"], version=version)
        except errors.NotFound:
            _log.debug("slice already gone", slice=name)

    def _accept(
        self, intended: slice_plan.Object, response: slice_plan.Object, node: nodes.Node
    ) -> None:
        """Record the server's response; report fields it dropped."""
        self._store.observe(response)
        self._generation = max(self._generation, slice_plan.highest_generation([response]))
        meta = response["metadata"]
        name = meta["name"]
        self._written[name] = slice_plan.WrittenSlice(intended, meta["resourceVersion"])
        dropped = slice_plan.dropped_fields(intended, response)
        if not dropped:
            return
        if (missing := version_support.check_dropped_fields(dropped)) is not None:
            self._missing_feature = missing
            self._wake.set()
            return
        more = f" and {len(dropped) - _SHOWN} more" if len(dropped) > _SHOWN else ""
        text = f"the API server changed {', '.join(dropped[:_SHOWN])}{more} of slice {name}"
        self._node_events.report(node, pool_builder.Problem(reasons.Reason.FIELDS_DROPPED, text))
