"""Tracks requested nodes: in flight, arrived, given up."""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from driver import ids, names
from driver.api import crd
from driver.controller import node_request_metrics
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import placeholder_writer, shape_catalog
from driver.resources.core import nodes, pods
from driver.scheduling.provisioning import fill_simulation, observed_shapes, placeholder
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.snapshot import node_usage

_log = structlog.get_logger(__name__)
_UNSEEN_S = 30.0
"""A pod that was made and is not shown after so long was not made."""
_REST_S, _LONGEST_REST_S = 60.0, 1800.0
"""A shape that did not come is left alone so long, each time for longer."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A complete node and its request."""

    request: placeholder.Placeholder
    node: nodes.Node
    gpus: int
    took_s: float


@dataclass(frozen=True, slots=True)
class Missing:
    """A requested node that is not complete in time."""

    request: placeholder.Placeholder
    message: str


@dataclass(slots=True)
class _Backoff:
    until: float
    lasts_s: float
    why: str


class NodeRequests:
    """On the decider's thread. State may be lost: the placeholder pods are in the API."""

    def __init__(
        self,
        world: state.SchedulerContext,
        writer: placeholder_writer.PlaceholderWriter,
        how: provisioning_settings.ProvisionerSettings,
        shapes: shape_catalog.ShapeCatalog,
        metrics: node_request_metrics.NodeRequestMetrics,
    ) -> None:
        self._context = world
        self._writer = writer
        self._metrics = metrics
        self._settings = how
        self._ttl_s = crd.seconds(how.document.ttl)
        self._shapes = shapes
        self._placeholders: dict[ids.Key, placeholder.Placeholder] = {}
        self._unseen: dict[str, tuple[placeholder.NodeRequest, float]] = {}
        self._deleting: set[ids.PodUid] = set()
        self._arrived_uids: set[ids.PodUid] = set()
        self._backoffs: dict[str, _Backoff] = {}
        self._refused: list[tuple[placeholder.NodeRequest, str]] = []

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """Apply a pod's change."""
        previous = self._placeholders.pop(key, None)
        if previous is not None and (pod is None or pod.uid != previous.pod.uid):
            self._deleting.discard(previous.pod.uid)
            self._arrived_uids.discard(previous.pod.uid)
        if pod is None or not node_usage.is_placeholder(pod, self._settings.namespace):
            return
        self._unseen.pop(pod.name, None)
        request = placeholder.Placeholder(pod)
        if pod.finished:
            # Its node ended it: it asks for nothing any more, and nobody else clears up.
            self.drop(request)
        elif not pod.deleting:
            self._placeholders[key] = request

    def in_flight(self) -> fill_simulation.Nodes:
        """Return the nodes in flight by the names of their placeholder pods."""
        now = self._context.clock.monotonic()
        self._unseen = {
            k: request for k, request in self._unseen.items() if request[1] + _UNSEEN_S > now
        }
        node_templates = {
            ids.NodeName(name): ask.template for name, (ask, _) in self._unseen.items()
        }
        for request in self._placeholders.values():
            if request.pod.uid in self._deleting and request.pod.uid not in self._arrived_uids:
                continue
            shape = self._shapes.get(request.shape)
            if shape is not None:
                node_templates[request.name] = shape
        return node_templates

    def _active(self) -> Iterator[placeholder.Placeholder]:
        return (
            request
            for request in self._placeholders.values()
            if request.pod.uid not in self._deleting
        )

    def node_demand(self, node: ids.NodeName) -> str | None:
        """Return the demand of the placeholder on a node."""
        return next(
            (request.demand for request in self._placeholders.values() if request.node == node),
            None,
        )

    def placeholder_nodes(self) -> Iterator[ids.NodeName]:
        """Yield the nodes on which placeholders run."""
        return (request.node for request in self._placeholders.values() if request.node is not None)

    def poll(self) -> Iterator[Arrived | Missing]:
        """Yield the outcome of each request, once."""
        now = self._context.clock.now()
        for request in [*self._active()]:
            arrived = self._check_arrived(request, request.age_s(now))
            if arrived is not None:
                yield arrived
                self._record_arrival(arrived)
            elif request.age_s(now) > self._ttl_s:
                missing = Missing(request, self._missing_message(request))
                yield missing
                self._back_off(request.shape, node_request_metrics.NOT_ARRIVED, missing.message)
                self.drop(request)
            elif self._shapes.get(request.shape) is None:
                self.drop(request)

    def _check_arrived(self, request: placeholder.Placeholder, took_s: float) -> Arrived | None:
        """Return the arrival once the node is marked complete: no other placeholder lands there."""
        if request.node is None:
            return None
        node = self._context.view.nodes.get(request.node)
        pool = self._shapes.is_complete(request.node)
        if node is None or pool is None or names.POOL_COMPLETE not in node.labels:
            return None
        return Arrived(request, node, observed_shapes.gpu_count(pool), took_s)

    def _record_arrival(self, arrived: Arrived) -> None:
        self._backoffs.pop(arrived.request.shape, None)
        self._shapes.record_startup(arrived.request.shape, arrived.took_s)
        self._metrics.observe_arrival(arrived.request.shape, arrived.took_s)
        # Until that pod is seen to be gone its node takes nobody, and counts as on its way.
        self._arrived_uids.add(arrived.request.pod.uid)
        self.drop(arrived.request)

    def _missing_message(self, request: placeholder.Placeholder) -> str:
        waited = f"after {self._settings.document.ttl}"
        if request.node is None:
            verdict = request.pod.verdict.message
            why = f"; kube-scheduler says: {verdict}" if verdict else ""
            return f"no node of shape {request.shape} has come {waited}{why}"
        view = self._context.view
        has_pool = (view.driver, request.node) in view.pools
        state = "has not published all its GPUs" if has_pool else "has published no GPU"
        return f"node {request.node} of shape {request.shape} {state} {waited}"

    # Back-off.

    def _back_off(self, shape: str, why: str, words: str) -> None:
        now = self._context.clock.monotonic()
        last = self._backoffs.get(shape)
        lasts_s = min(last.lasts_s * 2, _LONGEST_REST_S) if last else _REST_S
        self._backoffs[shape] = _Backoff(now + lasts_s, lasts_s, words)
        self._metrics.count_failed(shape, why)

    def backed_off(self) -> dict[str, str]:
        """Return the shapes in back-off, with the reason."""
        now = self._context.clock.monotonic()
        return {
            name: f"is left alone for a while: {backoff.why}"
            for name, backoff in self._backoffs.items()
            if backoff.until > now
        }

    def next_due_s(self) -> float | None:
        """Return the seconds until the next timeout or the next end of a back-off."""
        now, moment = self._context.clock.now(), self._context.clock.monotonic()
        left = [self._ttl_s - backoff.age_s(now) for backoff in self._active()]
        left += [
            backoff.until - moment for backoff in self._backoffs.values() if backoff.until > moment
        ]
        left += [backoff[1] + _UNSEEN_S - moment for backoff in self._unseen.values()]
        return max(0.1, min(left) + 0.05) if left else None

    # Writes.

    def request(self, node_request: placeholder.NodeRequest) -> None:
        """Request a node."""
        self._unseen[node_request.name] = node_request, self._context.clock.monotonic()
        self._metrics.count_requested(node_request.template.name)
        _log.info(
            "node asked for",
            shape=node_request.template.name,
            wish=node_request.demand,
            pod=node_request.name,
        )
        self._writer.create(
            node_request, lambda refused, problem: self._refused.append((refused, problem))
        )

    def drain_refused(self) -> Iterator[tuple[placeholder.NodeRequest, str]]:
        """Yield the requests that the API server refused, with its message.

        Requests without an answer are repeated by the same name.
        """
        while self._refused:
            ask, words = self._refused.pop()
            self._unseen.pop(ask.name, None)
            if words:
                why = f"the API server refused: {words}"
                self._back_off(ask.template.name, node_request_metrics.REFUSED, why)
                yield ask, words

    def give_up(self, name: ids.NodeName) -> None:
        """Delete the placeholder of a node that is not needed any more."""
        for request in [*self._active()]:
            if request.name == name:
                _log.info("node not needed any more", shape=request.shape, pod=request.pod.key)
                self.drop(request)

    def drop(self, request: placeholder.Placeholder) -> None:
        """Delete a placeholder pod."""
        self._deleting.add(request.pod.uid)
        self._writer.delete(request.pod, lambda pod: self._deleting.discard(pod.uid))
