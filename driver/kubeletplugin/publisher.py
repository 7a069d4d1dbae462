"""Keeps the node's ResourceSlices equal to its GPUs: looks, compares, writes what differs.

The kubelet deletes every slice of the node when it starts, so a change of ours or by others wakes
the loop at once; a loop that had to write waits longer before each next write, so that two
writers who disagree do not fight. Of two plugins of the node the newest writes.
"""

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog

from driver import clock, errors, ids, reasons
from driver.kube import backoff, client, reflector, resource, store
from driver.kubeletplugin import (
    handover,
    metrics,
    neighbourhood,
    node_allocator,
    notices,
    slice_plan,
    supply,
    telling,
)
from driver.resources import floor, nodes, publish

_log = structlog.get_logger(__name__)
_SHOWN = 5
_TURN_S = 2.0
"""Between looks for the end of a newer plugin."""
_BREATH_S = 0.01
"""What ails a GPU is often told twice at once, by the event and by the poll that it causes."""
WRITING = backoff.Pace(base_s=0.5, max_s=3.0)
"""Between writes: the kubelet may wipe several times a minute, and the slices must be back soon."""
FAILING = backoff.Pace(base_s=0.5, max_s=15.0)


def _no_jitter() -> float:
    return 0.0


def _alone() -> bool:
    return True


def _disregard(_node: nodes.Node) -> None:
    """Nobody else follows the Node."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Whose slices, and how often.

    `share_domain`: `cluster` publishes shared faces where kube-scheduler allocates too (D18).
    `settle_s`: what follows a change is awaited so long. `quiet_s`: without a write for so long,
    the next one is made at once again. `label_s`: how often the Node's label is read.
    """

    driver: str
    node: ids.NodeName
    share_domain: str = "none"
    settle_s: float = 0.3
    quiet_s: float = 60.0
    label_s: float = 10.0
    writing: backoff.Pace = WRITING
    failing: backoff.Pace = FAILING
    jitter: backoff.Jitter = _no_jitter


@dataclass(frozen=True, slots=True)
class Tools:
    """What the publisher works with.

    `is_newest`: whether it is this plugin's to write; raises NodeFault. `on_node` is told of the
    Node each time it is read. `beside`: whether the GPUs are ours to offer; by default they are.
    """

    kube: client.KubeClient
    teller: telling.Teller
    metrics: metrics.Metrics
    clock: clock.Clock
    allocator: node_allocator.NodeAllocator
    is_newest: Callable[[], bool] = _alone
    on_node: Callable[[nodes.Node], None] = _disregard
    beside: neighbourhood.Neighbourhood = field(default_factory=neighbourhood.Neighbourhood)


class Publisher:
    """`run` is a thread's target, and `slices.run` that of the cache behind it."""

    def __init__(self, devices: supply.Supply, settings: Settings, tools: Tools) -> None:
        self._supply = devices
        self._settings = settings
        self._tools = tools
        self._store: store.Store[slice_plan.Object] = store.Store()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._writing = backoff.Backoff(settings.writing, settings.jitter)
        self._failing = backoff.Backoff(settings.failing, settings.jitter)
        self._wrote_at = -math.inf
        self._round_at = tools.clock.monotonic()
        self._node: nodes.Node | None = None
        self._node_at = -math.inf
        self._version = ""
        self._allocator = tools.allocator
        self._generation = 0
        self._answered: dict[str, slice_plan.Answered] = {}
        self._lacking: str | None = None
        self._quiet = False
        self._notices = notices.Notices(tools.teller)
        self._problem: str | None = "the slices have not been published yet"
        self._withheld: str | None = None
        self._behind_at: float | None = None
        self.slices = self._reflector()

    def problem(self) -> str | None:
        """Why the slices are not as they should be; None when they are.

        A GPU that cannot be read is told on the node, and tainted: the slices are right so.
        """
        return self._problem

    def withheld(self) -> str | None:
        """Why nothing is offered although the slices are as they should be; None when it is.

        Somebody else gives out the GPUs, or changes them. A plugin that is not ready for it would
        stop the update of every other node's.
        """
        return self._withheld

    def lag_s(self) -> float:
        """Seconds since what is wanted and what is stored differ; 0 while they do not."""
        since = self._behind_at
        return 0.0 if since is None else self._tools.clock.monotonic() - since

    def idle_s(self) -> float:
        """Seconds since the loop last came round; waiting for the API server is coming round."""
        return self._tools.clock.monotonic() - self._round_at

    def hurry(self) -> None:
        """What ails a GPU has changed: publish that at once, then look at the GPUs again."""
        self._hurry.set()
        self._wake.set()

    def stored(self) -> Iterable[slice_plan.Object]:
        """The node's slices of our driver's name as they are known; from any thread."""
        return self._store.snapshot().values()

    def tell(self, problem: supply.Problem) -> None:
        """Tell the Node's readers, before `run` does anything. Raises RationError."""
        self._notices.tell(self._node or self._read_node(), problem)

    def interrupt(self) -> None:
        """Let `run`, told to stop, see it now."""
        self.hurry()

    def node_uid(self) -> str:
        """The Node's UID; empty while it has not been read."""
        return self._node.uid if self._node else ""

    def run(self, stop: threading.Event) -> None:
        """Publish until `stop` is set. The slices stay: the kubelet and the Node own their end."""
        time = self._tools.clock
        while not stop.is_set() and not time.wait(self.slices.synced, 0.2):
            self._round_at = time.monotonic()
        while not stop.is_set():
            self._round_at = time.monotonic()
            urgent = self._hurried(stop)
            if not urgent:
                self._supply.refresh()
                self._follow_node()
            at_once = self._publish(stop)
            if urgent:
                # The GPU may be gone, or back; but looking takes long, and more may come of it.
                time.wait(self._hurry, self._settings.settle_s)
                self._supply.look_soon()
            elif not at_once:
                time.wait(self._wake, self._due_in_s())
                time.wait(self._hurry, self._settings.settle_s)
            self._wake.clear()

    def _due_in_s(self) -> float:
        """Seconds until there may be something to do that nobody tells of."""
        dues = [self._supply.due_in_s()]
        if self._node is not None:
            since_s = self._tools.clock.monotonic() - self._node_at
            dues.append(max(0.0, self._settings.label_s - since_s))
        turn_s = _TURN_S if self._quiet else self._allocator.due_in_s()
        return min(dues if turn_s is None else [*dues, turn_s])

    def _hurried(self, stop: threading.Event) -> bool:
        """Whether what ails a GPU has changed, and is to be told before all else."""
        if not self._hurry.is_set():
            return False
        self._tools.clock.wait(stop, _BREATH_S)
        self._hurry.clear()
        return True

    def _reflector(self) -> reflector.Reflector[slice_plan.Object]:
        mine = f"spec.driver={self._settings.driver},spec.nodeName={self._settings.node}"
        self._store.subscribe(lambda _key, _old, _new: self._wake.set())
        return reflector.Reflector(
            reflector.ListWatch(self._tools.kube, resource.RESOURCE_SLICES, field_selector=mine),
            self._store,
            lambda written: written,
            self._tools.clock,
            reflector.Options(jitter=self._settings.jitter),
        )

    def _publish(self, stop: threading.Event) -> bool:
        """One pass, and the pause after it; whether the next one is to follow at once.

        What ails a GPU does not wait for the pause between writes.
        """
        now = self._tools.clock.monotonic()
        if now - self._wrote_at > self._settings.quiet_s:
            self._writing.reset()
        if self._behind_at is None:
            self._behind_at = now
        try:
            wrote = self._pass() if self._is_ours() else 0
        except (errors.ApiError, errors.NodeFault) as e:
            self._problem = f"slices not published: {e}"
            self._tools.metrics.publish_failures.inc()
            asked_s = e.retry_after_s if isinstance(e, errors.ApiError) else None
            wait_s = self._failing.after_failure(asked_s)
            _log.warning("slices not published", error=str(e), retry_s=round(wait_s, 1))
            self._tools.clock.wait(stop, wait_s)
            return True
        self._behind_at = None
        self._failing.reset()
        self._tools.metrics.slices.set(len(self._store))
        if wrote:
            self._wrote_at = now
            self._tools.clock.wait(self._hurry, self._writing.after_failure())
        return self._supply.due_in_s() == 0 or self._hurry.is_set()

    def _is_ours(self) -> bool:
        """Whether to write; where a newer plugin does, all is as it should be. Raises NodeFault."""
        self._quiet = not self._tools.is_newest()
        if self._quiet:
            self._problem = self._withheld = None
            self._allocator.leave()
        return not self._quiet

    def _pass(self) -> int:
        """Compare and write; how many writes it took. Raises ApiError, NodeFault."""
        node = self._node or self._read_node()
        taken = self._tools.beside.name_taken(self.stored())
        if taken is None:
            return self._follow_gpus(node)
        # Whatever were written now, the other one would delete or outdo.
        self._notices.settle(node, (taken,))
        self._problem, self._withheld = str(taken), None
        return 0

    def _follow_gpus(self, node: nodes.Node) -> int:
        """Make the slices what the GPUs are; how many writes it took."""
        refused = self._tools.beside.refusals(node)
        shown = self._allocator.choose(self._stored())
        offer = self._supply.offer(self._place(shown, closed=bool(refused)), self.stored())
        problems = (*refused, *offer.problems)
        self._notices.settle(node, (*problems, *self._sharing_off(), *self._allocator.problems()))
        wrote = 0
        if offer.pool is not None and refused and not offer.pool.devices:
            wrote = self._withdraw(node)
        elif offer.pool is not None:
            self._tools.metrics.offered(offer.pool.devices)
            self._allocator.begin(shown)
            wrote = self._make(offer.pool, node)
            self._allocator.done(shown, node)
        grave = (one for one in offer.problems if one.reason not in supply.TOLD_ONLY)
        self._problem = "; ".join(map(str, grave)) or None
        self._withheld = "; ".join(map(str, refused)) or None
        return wrote

    def _place(self, shown: handover.Shown, *, closed: bool) -> supply.Place:
        settings = self._settings
        return supply.Place(
            settings.driver,
            settings.node,
            shown,
            plain=self._lacking is not None,
            shares=settings.share_domain == "cluster",
            closed=closed,
        )

    def _withdraw(self, node: nodes.Node) -> int:
        """Leave no slice of ours; how many writes it took."""
        self._tools.metrics.offered(())
        self._allocator.leave()
        current = list(self.stored())
        self._generation = max(self._generation, slice_plan.generation_of(current))
        writes = slice_plan.plan_withdrawal(current)
        self._write(writes, node)
        return len(writes)

    def _make(self, pool: publish.Pool, node: nodes.Node) -> int:
        """Write what the pool lacks; how many writes it took."""
        writes = self._planned(pool, node)
        if writes.creates:
            # The Node may be another one of that name by now, and the slices gone with the old one.
            node = self._read_node()
            writes = self._planned(pool, node)
        self._write(writes, node)
        return len(writes)

    def _sharing_off(self) -> tuple[supply.Problem, ...]:
        if self._lacking is None:
            return ()
        return (supply.Problem(reasons.Reason.SHARING_OFF, self._lacking),)

    def _read_node(self) -> nodes.Node:
        """The Node now, whose label decides who allocates, and what the server is."""
        node = nodes.parse(self._tools.kube.get(resource.NODES, self._settings.node))
        version = self._tools.kube.server_version().git
        if self._version != version:
            self._version, self._lacking = version, floor.below(version)
        self._take_node(node)
        return node

    def _follow_node(self) -> None:
        """Read a known Node now and then; while it cannot be read, all stays as it is."""
        time, settings = self._tools.clock, self._settings
        if self._node is None or time.monotonic() - self._node_at < settings.label_s:
            return
        try:
            self._take_node(nodes.parse(self._tools.kube.get(resource.NODES, settings.node)))
        except errors.RationError as e:
            self._node_at = time.monotonic()
            _log.warning("node not read", error=str(e), retry_s=settings.label_s)

    def _take_node(self, node: nodes.Node) -> None:
        self._node, self._node_at = node, self._tools.clock.monotonic()
        self._allocator.follow(node)
        self._tools.on_node(node)

    def _stored(self) -> Iterable[slice_plan.Object]:
        """The slices as they are, or as we meant them where the server took less."""
        memory = slice_plan.Memory(self._generation, self._answered)
        return (memory.of(one) or one for one in self._store.snapshot().values())

    def _planned(self, pool: publish.Pool, node: nodes.Node) -> slice_plan.Writes:
        """The writes from what the cache holds to the pool."""
        current = list(self._store.snapshot().values())
        self._generation = max(self._generation, slice_plan.generation_of(current))
        memory = slice_plan.Memory(self._generation, self._answered)
        owner = publish.Owner(node.name, node.uid)
        writes = slice_plan.plan_writes(pool, owner, current, memory)
        self._answered = dict(writes.settled)
        return writes

    def _write(self, writes: slice_plan.Writes, node: nodes.Node) -> None:
        if not writes:
            return
        kube, count = self._tools.kube, self._tools.metrics.writes
        for one in writes.deletes:
            self._delete(one["metadata"])
            count["delete"].inc()
        for one in writes.updates:
            name = one["metadata"]["name"]
            self._take(writes.meant[name], kube.replace(resource.RESOURCE_SLICES, name, one), node)
            count["update"].inc()
        for one in writes.creates:
            self._take(one, kube.create(resource.RESOURCE_SLICES, one), node)
            count["create"].inc()
        deleted, updated, created = map(len, (writes.deletes, writes.updates, writes.creates))
        _log.info("slices published", deleted=deleted, updated=updated, created=created)

    def _delete(self, meta: slice_plan.Object) -> None:
        """Delete exactly what was seen."""
        name, version = meta["name"], meta["resourceVersion"]
        try:
            self._tools.kube.delete(
                resource.RESOURCE_SLICES, name, uid=meta["uid"], version=version
            )
        except errors.NotFound:
            _log.debug("slice already gone", slice=name)

    def _take(self, meant: slice_plan.Object, answer: slice_plan.Object, node: nodes.Node) -> None:
        """Remember what the server made of it; say so when something is missing."""
        self._store.observe(answer)
        self._generation = max(self._generation, slice_plan.generation_of([answer]))
        meta = answer["metadata"]
        name = meta["name"]
        self._answered[name] = slice_plan.Answered(meant, meta["resourceVersion"])
        lost = slice_plan.dropped(meant, answer)
        if not lost:
            return
        if (lacking := floor.dropped(lost)) is not None:
            self._lacking = lacking
            self._wake.set()
            return
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        text = f"the API server changed {', '.join(lost[:_SHOWN])}{more} of slice {name}"
        self._notices.tell(node, supply.Problem(reasons.Reason.FIELDS_DROPPED, text))
