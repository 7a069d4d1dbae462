"""Nodes that were asked for: which are on their way, which are there, which are given up."""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from driver import errors, ids, names
from driver.api import crd
from driver.controller import node_request_metrics
from driver.controller.commit import write_pool
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import shape_catalog
from driver.kube import gvr, workqueue
from driver.resources.core import nodes, pods
from driver.scheduling.provisioning import fill_simulation, observed_shapes, placeholder
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.snapshot import node_usage

_log = structlog.get_logger(__name__)
_UNSEEN_S = 30.0
"""A pod that was made and is not shown after so long was not made."""
_RETRY_S = 1.0
_REST_S, _LONGEST_REST_S = 60.0, 1800.0
"""A shape that did not come is left alone so long, each time for longer."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A node that is complete, and what it was asked for by."""

    request: placeholder.Placeholder
    node: nodes.Node
    gpus: int
    took_s: float


@dataclass(frozen=True, slots=True)
class Missing:
    """One that is not, in its time."""

    request: placeholder.Placeholder
    message: str


@dataclass(slots=True)
class _Rest:
    until: float
    lasts_s: float
    why: str


class NodeRequests:
    """On the decider's thread. What it remembers may be lost: the pods are in the API."""

    def __init__(
        self,
        world: state.SchedulerContext,
        tools: write_pool.WriteDeps,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        how: provisioning_settings.ProvisionerSettings,
        shapes: shape_catalog.ShapeCatalog,
    ) -> None:
        self._world = world
        self._tools = tools
        self._items = items
        self._how = how
        self._ttl_s = crd.seconds(how.document.ttl)
        self._shapes = shapes
        self._there: dict[ids.Key, placeholder.Placeholder] = {}
        self._made: dict[str, tuple[placeholder.NodeRequest, float]] = {}
        self._going: set[ids.PodUid] = set()
        self._come_to: set[ids.PodUid] = set()
        self._rests: dict[str, _Rest] = {}
        self._refused: list[tuple[placeholder.NodeRequest, str]] = []

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        before = self._there.pop(key, None)
        if before is not None and (pod is None or pod.uid != before.pod.uid):
            self._going.discard(before.pod.uid)
            self._come_to.discard(before.pod.uid)
        if pod is None or not node_usage.is_placeholder(pod, self._how.namespace):
            return
        self._made.pop(pod.name, None)
        one = placeholder.Placeholder(pod)
        if pod.finished:
            # Its node ended it: it asks for nothing any more, and nobody else clears up.
            self.drop(one)
        elif not pod.deleting:
            self._there[key] = one

    def in_flight(self) -> fill_simulation.Nodes:
        """Nodes that are on their way, by the names of the pods that ask for them."""
        now = self._world.clock.monotonic()
        self._made = {k: one for k, one in self._made.items() if one[1] + _UNSEEN_S > now}
        found = {ids.NodeName(name): ask.template for name, (ask, _) in self._made.items()}
        for one in self._there.values():
            if one.pod.uid in self._going and one.pod.uid not in self._come_to:
                continue
            shape = self._shapes.get(one.shape)
            if shape is not None:
                found[one.name] = shape
        return found

    def _staying(self) -> Iterator[placeholder.Placeholder]:
        return (one for one in self._there.values() if one.pod.uid not in self._going)

    def node_demand(self, node: ids.NodeName) -> str | None:
        """What a node was asked for on which a pod that asks sits."""
        return next((one.demand for one in self._there.values() if one.node == node), None)

    def placeholder_nodes(self) -> Iterator[ids.NodeName]:
        """The nodes on which pods sit that asked for them."""
        return (one.node for one in self._there.values() if one.node is not None)

    def poll(self) -> Iterator[Arrived | Missing]:
        """What became of those that were asked for. The last word on each of them."""
        now = self._world.clock.now()
        for one in [*self._staying()]:
            arrived = self._arrived(one, one.age_s(now))
            if arrived is not None:
                yield arrived
                self._come(arrived)
            elif one.age_s(now) > self._ttl_s:
                missing = Missing(one, self._lacks(one))
                yield missing
                self._fail(one.shape, node_request_metrics.NOT_ARRIVED, missing.message)
                self.drop(one)
            elif self._shapes.get(one.shape) is None:
                self.drop(one)

    def _arrived(self, one: placeholder.Placeholder, took_s: float) -> Arrived | None:
        """Once its node is marked complete: by that no other placeholder lands there."""
        if one.node is None:
            return None
        node = self._world.view.nodes.get(one.node)
        pool = self._shapes.is_complete(one.node)
        if node is None or pool is None or names.POOL_COMPLETE not in node.labels:
            return None
        return Arrived(one, node, observed_shapes.gpu_count(pool), took_s)

    def _come(self, one: Arrived) -> None:
        self._rests.pop(one.request.shape, None)
        self._shapes.record_startup(one.request.shape, one.took_s)
        self._tools.metrics.nodes.observe_arrival(one.request.shape, one.took_s)
        # Until that pod is seen to be gone its node takes nobody, and counts as on its way.
        self._come_to.add(one.request.pod.uid)
        self.drop(one.request)

    def _lacks(self, one: placeholder.Placeholder) -> str:
        waited = f"after {self._how.document.ttl}"
        if one.node is None:
            said = one.pod.verdict.message
            why = f"; kube-scheduler says: {said}" if said else ""
            return f"no node of shape {one.shape} has come {waited}{why}"
        view = self._world.view
        there = (view.driver, one.node) in view.pools
        what = "has not published all its GPUs" if there else "has published no GPU"
        return f"node {one.node} of shape {one.shape} {what} {waited}"

    # Back-off.

    def _fail(self, shape: str, why: str, words: str) -> None:
        now = self._world.clock.monotonic()
        before = self._rests.get(shape)
        lasts_s = min(before.lasts_s * 2, _LONGEST_REST_S) if before else _REST_S
        self._rests[shape] = _Rest(now + lasts_s, lasts_s, words)
        self._tools.metrics.nodes.count_failed(shape, why)

    def backed_off(self) -> dict[str, str]:
        """Shapes that are left alone for a while, with the reason."""
        now = self._world.clock.monotonic()
        return {
            name: f"is left alone for a while: {one.why}"
            for name, one in self._rests.items()
            if one.until > now
        }

    def next_due_s(self) -> float | None:
        """Until the first is given up, or may be asked for again."""
        now, moment = self._world.clock.now(), self._world.clock.monotonic()
        left = [self._ttl_s - one.age_s(now) for one in self._staying()]
        left += [one.until - moment for one in self._rests.values() if one.until > moment]
        left += [one[1] + _UNSEEN_S - moment for one in self._made.values()]
        return max(0.1, min(left) + 0.05) if left else None

    # Writes.

    def request(self, one: placeholder.NodeRequest) -> None:
        """Ask for a node."""
        self._made[one.name] = one, self._world.clock.monotonic()
        self._tools.metrics.nodes.count_requested(one.template.name)
        body = placeholder.render(one, self._how.namespace, self._how.image)
        _log.info("node asked for", shape=one.template.name, wish=one.demand, pod=one.name)
        self._tools.pool.submit(self._make, one, body)

    def _make(self, one: placeholder.NodeRequest, body: dict[str, object]) -> None:
        try:
            self._tools.writer.create(gvr.PODS, body, self._how.namespace)
        except errors.AlreadyExists:
            return
        except errors.RationError as error:
            _log.warning("node not asked for", shape=one.template.name, error=str(error))
            lasting = isinstance(error, errors.Forbidden | errors.Invalid)
            self._refused.append((one, str(error) if lasting else ""))
            self._items.add_after(write_pool.PROVISIONING, _RETRY_S)

    def drain_refused(self) -> Iterator[tuple[placeholder.NodeRequest, str]]:
        """What the API server did not let be asked for, with its words.

        What it could not answer is asked anew, by the same name, whether or not it was done.
        """
        while self._refused:
            ask, words = self._refused.pop()
            self._made.pop(ask.name, None)
            if words:
                why = f"the API server refused: {words}"
                self._fail(ask.template.name, node_request_metrics.REFUSED, why)
                yield ask, words

    def give_up(self, name: ids.NodeName) -> None:
        """Nobody needs it any more."""
        for one in [*self._staying()]:
            if one.name == name:
                _log.info("node not needed any more", shape=one.shape, pod=one.pod.key)
                self.drop(one)

    def drop(self, one: placeholder.Placeholder) -> None:
        """Delete the pod that asks for a node."""
        self._going.add(one.pod.uid)
        self._tools.pool.submit(self._delete, one.pod)

    def _delete(self, pod: pods.Pod) -> None:
        try:
            self._tools.writer.delete(gvr.PODS, pod.name, pod.namespace, uid=pod.uid)
        except errors.NotFound:
            return
        except errors.RationError as error:
            _log.info("pod that asks for a node not deleted", pod=pod.key, error=str(error))
            self._going.discard(pod.uid)
            self._items.add_after(write_pool.PROVISIONING, _RETRY_S)
