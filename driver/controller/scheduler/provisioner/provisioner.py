"""Provisioner: plans for pending demand, requests nodes, and holds them for that demand.

Level-triggered: requests in flight are read from the placeholder pods, provenance from the nodes.
A new leader continues where the last one stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import structlog

from driver import errors, ids, reasons
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import (
    arrived_capacity,
    node_requests,
    pending_demand,
    reporter,
    shape_catalog,
)
from driver.resources.core import nodes
from driver.scheduling.provisioning import annotations, node_template, planner, shape_status
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import messages as provisioning_messages

_log = structlog.get_logger(__name__)
_PAUSE_FACTOR = 10.0
"""After a plan none is made for so many times what it took."""
_PACE_S = 1.0
_UNNEEDED_S = 10.0
"""What nobody needs for so long is not waited for any more."""
_RETRY_S = 5.0
_REASON = reasons.Reason


class Provisioner:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        shapes: shape_catalog.ShapeCatalog,
        requests: node_requests.NodeRequests,
        demand: pending_demand.PendingDemand,
        arrived: arrived_capacity.ArrivedCapacity,
        reports: reporter.ProvisioningReporter,
    ) -> None:
        self._context = context
        self._shapes = shapes
        self._requests = requests
        self._demand = demand
        self._arrived = arrived
        self._reporter = reports
        self._provenance: dict[ids.NodeName, annotations.ProvisionedFor] = {}
        self._unneeded: dict[ids.NodeName, float] = {}
        self._next = 0.0
        self._offer = shapes.declared_status()

    def offer(self) -> shape_status.ShapeStatus:
        """Return the status of the shapes at the last reconcile; from any thread."""
        return self._offer

    def put_node(self, name: ids.Key, node: nodes.Node | None) -> None:
        """Apply a node's change."""
        origin = annotations.parse(node.provisioned_for) if node is not None else None
        if origin is None:
            self._provenance.pop(ids.NodeName(name), None)
        else:
            self._provenance[ids.NodeName(name)] = origin

    def reconcile(self) -> float | None:
        """Reconcile; return the seconds until the next reconcile."""
        begun = self._context.clock.monotonic()
        if begun < self._next:
            return self._next - begun
        try:
            self._shapes.load()
        except errors.ApiError as error:
            _log.info("what was learned of shapes is not read yet", error=str(error))
            return _RETRY_S
        self._context.refresh_view()
        for node, path, problem in self._shapes.learn():
            message = f"NodeShapes, {path} {problem}; the actual node is used"
            _log.warning("shape contradicts its node", where=path, said=problem)
            self._reporter.report_on_node(node, _REASON.NODE_SHAPE_MISMATCH, message)
        self._report_outcomes()
        demands = self._plan()
        self._offer = self._shapes.status(self._requests.backed_off())
        self._next = begun + max(_PACE_S, _PAUSE_FACTOR * (self._context.clock.monotonic() - begun))
        return self._recheck_after_s(demands)

    def _recheck_after_s(self, demands: Sequence[provisioning_demand.NodeDemand]) -> float | None:
        """Return the seconds until time alone may change the result."""
        now = self._context.clock.monotonic()
        ends = [since + _UNNEEDED_S - now for since in self._unneeded.values()]
        if any(demand.lead_s > 0 for demand in demands):
            ends.append(_RETRY_S)
        flying_s = self._requests.next_due_s()
        if flying_s is not None:
            ends.append(flying_s)
        return max(_PACE_S, min(ends)) if ends else None

    def _report_outcomes(self) -> None:
        """Report the outcomes of requested nodes."""
        for ask, problem in self._requests.drain_refused():
            message = f"A node of shape {ask.template.name} could not be requested: {problem}"
            self._reporter.report_event(ask.demand, None, _REASON.NODE_NOT_ARRIVED, message)
        for outcome in self._requests.poll():
            node = (
                self._context.view.nodes.get(outcome.request.node) if outcome.request.node else None
            )
            if isinstance(outcome, node_requests.Arrived):
                message = provisioning_messages.arrived_message(
                    outcome.node.name, outcome.request.shape, outcome.gpus, outcome.took_s
                )
                _log.info("node arrived", node=outcome.node.name, shape=outcome.request.shape)
                reason = _REASON.NODE_ARRIVED
            else:
                message, reason = (
                    f"{outcome.message}: it is given up",
                    _REASON.NODE_NOT_ARRIVED,
                )
                _log.warning(
                    "node did not arrive", shape=outcome.request.shape, why=outcome.message
                )
            self._reporter.report_event(outcome.request.demand, node, reason, message)

    def _plan(self) -> Sequence[provisioning_demand.NodeDemand]:
        pending_nodes = self._pending_nodes()
        demands = [
            replace(
                demand,
                provisioned_nodes=pending_nodes.get(demand.key, frozenset()),
                has_kept_devices=self._arrived.has(demand.key),
            )
            for demand in self._demand.list_demands()
        ]
        flying = self._requests.in_flight()
        supply = self._shapes.supply(flying, self._requests.backed_off())
        headroom, allocator = self._demand.headroom(), self._context.settings.allocator
        plan = planner.make_plan(self._context.view, supply, demands, allocator, headroom)
        headroom.reset()
        for ask in plan.requests:
            self._requests.request(ask)
        self._give_up(plan.unneeded)
        arrived = {
            name: pool
            for name in (*self._provenance, *self._requests.placeholder_nodes())
            if (pool := self._shapes.is_complete(name)) and self._requests.node_demand(name)
        }
        self._arrived.refresh(plan.placements, pending_nodes, arrived)
        self._reporter.report_statuses(
            dict(self._statuses(plan, flying)), {w.key: w for w in demands}
        )
        return demands

    def _pending_nodes(self) -> Mapping[str, frozenset[ids.NodeName]]:
        """Map each pending demand to the nodes that arrived for it."""
        by_demand: dict[str, set[ids.NodeName]] = {}
        for name, origin in self._provenance.items():
            by_demand.setdefault(origin.demand, set()).add(name)
        return {
            wish: frozenset(n) for wish, n in by_demand.items() if self._demand.is_pending(wish)
        }

    def _give_up(self, unneeded: tuple[ids.NodeName, ...]) -> None:
        """Give up nodes that are unneeded for a while: work comes and goes."""
        now = self._context.clock.monotonic()
        self._unneeded = {name: self._unneeded.get(name, now) for name in unneeded}
        for name, since in self._unneeded.items():
            if now - since >= _UNNEEDED_S:
                self._requests.give_up(name)

    def _statuses(
        self, plan: planner.Plan, flying: Mapping[ids.NodeName, node_template.NodeTemplate]
    ) -> Iterator[tuple[str, reporter.DemandStatus]]:
        """Yield the status of each demand that has something to report."""
        kinds: dict[str, list[node_template.NodeTemplate]] = {}
        for wish, seats in plan.placements.items():
            node_names = {seat.placement.node for seat in seats}
            kinds[wish] = [flying[name] for name in sorted(node_names) if name in flying]
        for ask in plan.requests:
            for guest in ask.demands:
                kinds.setdefault(guest, []).append(ask.template)
        for wish, node_templates in kinds.items():
            if node_templates:
                message = provisioning_messages.requested_message(node_templates)
                mark = provisioning_messages.describe_nodes(node_templates)
                yield wish, reporter.DemandStatus(_REASON.NODES_REQUESTED, message, mark)
        for wish, why in plan.deferred.items():
            yield (
                wish,
                reporter.DemandStatus(
                    _REASON.NODES_REQUESTED, provisioning_messages.deferred_message(why), "in turn"
                ),
            )
        for wish, why in plan.impossible.items():
            yield (
                wish,
                reporter.DemandStatus(
                    _REASON.NO_NODE_SHAPE_FITS, provisioning_messages.impossible_message(why), why
                ),
            )

    def provisioned_for(self, node: nodes.Node) -> annotations.ProvisionedFor | None:
        """Return the pending demand of a node: the value of its mark."""
        origin = self._provenance.get(node.name)
        wish = origin.demand if origin is not None else self._requests.node_demand(node.name)
        if wish is None or not self._demand.is_pending(wish):
            return None
        return origin or annotations.ProvisionedFor(wish, self._context.clock.now())
