"""Nodes on demand: what waits is planned for, nodes are asked for, and kept for what they came for.

A look is level-triggered as all else here: what is on its way is read from the pods that ask, what
a node came for from the node. A new leader goes on where the last one was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from driver import errors, ids, reasons
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import (
    arrived_capacity,
    node_requests,
    pending_demand,
    queue_headroom,
    reporter,
    shape_catalog,
)
from driver.resources.core import nodes
from driver.scheduling.allocator import settings as deciding_settings
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.provisioning import messages as provisioning_messages
from driver.scheduling.provisioning import node_template, planner, provenance, shape_status
from driver.scheduling.provisioning import settings as provisioning_settings

_log = structlog.get_logger(__name__)
_PATIENT = 10.0
"""After a plan none is made for so many times what it took."""
_PACE_S = 1.0
_UNNEEDED_S = 10.0
"""What nobody needs for so long is not waited for any more."""
_RETRY_S = 5.0
_REASON = reasons.Reason


@dataclass(frozen=True, slots=True)
class ProvisionerDeps:
    """What a look works with."""

    shapes: shape_catalog.ShapeCatalog
    requests: node_requests.NodeRequests
    demand: pending_demand.PendingDemand
    arrived: arrived_capacity.ArrivedCapacity
    reporter: reporter.ProvisioningReporter
    headroom: queue_headroom.QueueHeadroom


class Provisioner:
    """On the decider's thread."""

    def __init__(
        self,
        world: state.SchedulerContext,
        hands: ProvisionerDeps,
        deciding: deciding_settings.Settings,
        how: provisioning_settings.ProvisionerSettings,
    ) -> None:
        self._world = world
        self._hands = hands
        self._deciding = deciding
        self._how = how
        self._brought: dict[ids.NodeName, provenance.ProvisionedFor] = {}
        self._unneeded: dict[ids.NodeName, float] = {}
        self._next = 0.0
        self._offer = shape_status.build_status(how.document, {}, how.namespace, world.view.driver)

    def offer(self) -> shape_status.ShapeStatus:
        """What the last look saw of the shapes; from any thread."""
        return self._offer

    def put_node(self, name: ids.Key, node: nodes.Node | None) -> None:
        """A node came, changed or went."""
        said = provenance.parse(node.brought_for) if node is not None else None
        if said is None:
            self._brought.pop(ids.NodeName(name), None)
        else:
            self._brought[ids.NodeName(name)] = said

    def reconcile(self) -> float | None:
        """Do what is due; seconds until it is to be looked at again."""
        begun = self._world.clock.monotonic()
        if begun < self._next:
            return self._next - begun
        try:
            self._hands.shapes.load()
        except errors.ApiError as error:
            _log.info("what was learned of shapes is not read yet", error=str(error))
            return _RETRY_S
        self._world.refresh_view()
        for node, path, said in self._hands.shapes.learn():
            message = f"NodeShapes, {path} {said}; the node counts"
            _log.warning("shape contradicts its node", where=path, said=said)
            self._hands.reporter.report_on_node(node, _REASON.NODE_SHAPE_CONTRADICTED, message)
        self._follow()
        found = self._plan()
        self._offer = shape_status.ShapeStatus(
            self._how.namespace,
            self._hands.shapes.shapes(),
            self._hands.shapes.measured(),
            self._hands.requests.backed_off(),
        )
        self._next = begun + max(_PACE_S, _PATIENT * (self._world.clock.monotonic() - begun))
        return self._again_s(found)

    def _again_s(self, found: Sequence[provisioning_demand.NodeDemand]) -> float | None:
        """Until time alone may change the answer."""
        now = self._world.clock.monotonic()
        ends = [since + _UNNEEDED_S - now for since in self._unneeded.values()]
        if any(one.lead_s > 0 for one in found):
            ends.append(_RETRY_S)
        flying_s = self._hands.requests.next_due_s()
        if flying_s is not None:
            ends.append(flying_s)
        return max(_PACE_S, min(ends)) if ends else None

    def _follow(self) -> None:
        """What became of nodes that were asked for."""
        for ask, said in self._hands.requests.drain_refused():
            message = f"A node of shape {ask.template.name} could not be asked for: {said}"
            self._hands.reporter.report_event(ask.demand, None, _REASON.NODE_NOT_ARRIVED, message)
        for one in self._hands.requests.poll():
            node = self._world.view.nodes.get(one.request.node) if one.request.node else None
            if isinstance(one, node_requests.Arrived):
                told = provisioning_messages.arrived_message(
                    one.node.name, one.request.shape, one.gpus, one.took_s
                )
                _log.info("node arrived", node=one.node.name, shape=one.request.shape)
                reason = _REASON.NODE_ARRIVED
            else:
                told, reason = f"{one.message}: it is not waited for", _REASON.NODE_NOT_ARRIVED
                _log.warning("node did not arrive", shape=one.request.shape, why=one.message)
            self._hands.reporter.report_event(one.request.demand, node, reason, told)

    def _plan(self) -> Sequence[provisioning_demand.NodeDemand]:
        there = self._brought_for()
        found = [
            replace(
                one,
                provisioned_nodes=there.get(one.key, frozenset()),
                has_kept_devices=self._hands.arrived.has(one.key),
            )
            for one in self._hands.demand.list_demands()
        ]
        flying = self._hands.requests.in_flight()
        supply = planner.Supply(
            self._hands.shapes.shapes(),
            flying,
            self._how.document.most,
            self._hands.requests.backed_off(),
        )
        made = planner.make_plan(
            self._world.view, supply, found, self._deciding, self._hands.headroom
        )
        self._hands.headroom.reset()
        for ask in made.requests:
            self._hands.requests.request(ask)
        self._give_up(made.unneeded)
        arrived = {
            name: pool
            for name in (*self._brought, *self._hands.requests.placeholder_nodes())
            if (pool := self._hands.shapes.is_complete(name))
            and self._hands.requests.node_demand(name)
        }
        self._hands.arrived.refresh(made.placements, there, arrived)
        self._hands.reporter.report_statuses(
            dict(self._stands(made, flying)), {w.key: w for w in found}
        )
        return found

    def _brought_for(self) -> Mapping[str, frozenset[ids.NodeName]]:
        """By what waits still: the nodes that came for it."""
        found: dict[str, set[ids.NodeName]] = {}
        for name, one in self._brought.items():
            found.setdefault(one.demand, set()).add(name)
        return {
            wish: frozenset(n) for wish, n in found.items() if self._hands.demand.is_pending(wish)
        }

    def _give_up(self, unneeded: tuple[ids.NodeName, ...]) -> None:
        """What is not needed for a while: work comes and goes."""
        now = self._world.clock.monotonic()
        self._unneeded = {name: self._unneeded.get(name, now) for name in unneeded}
        for name, since in self._unneeded.items():
            if now - since >= _UNNEEDED_S:
                self._hands.requests.give_up(name)

    def _stands(
        self, made: planner.Plan, flying: Mapping[ids.NodeName, node_template.NodeTemplate]
    ) -> Iterator[tuple[str, reporter.DemandStatus]]:
        """How each wish stands that something is to be told of."""
        kinds: dict[str, list[node_template.NodeTemplate]] = {}
        for wish, seats in made.placements.items():
            there = {seat.placement.node for seat in seats}
            kinds[wish] = [flying[name] for name in sorted(there) if name in flying]
        for ask in made.requests:
            for guest in ask.demands:
                kinds.setdefault(guest, []).append(ask.template)
        for wish, found in kinds.items():
            if found:
                said = provisioning_messages.requested_message(found)
                mark = provisioning_messages.describe_nodes(found)
                yield wish, reporter.DemandStatus(_REASON.NODES_REQUESTED, said, mark)
        for wish, why in made.deferred.items():
            yield (
                wish,
                reporter.DemandStatus(
                    _REASON.NODES_REQUESTED, provisioning_messages.deferred_message(why), "in turn"
                ),
            )
        for wish, why in made.impossible.items():
            yield (
                wish,
                reporter.DemandStatus(
                    _REASON.NO_NODE_SHAPE_FITS, provisioning_messages.impossible_message(why), why
                ),
            )

    def provisioned_for(self, node: nodes.Node) -> provenance.ProvisionedFor | None:
        """What a node came for, as long as that waits: what its mark is to say."""
        one = self._brought.get(node.name)
        wish = one.demand if one is not None else self._hands.requests.node_demand(node.name)
        if wish is None or not self._hands.demand.is_pending(wish):
            return None
        return one or provenance.ProvisionedFor(wish, self._world.clock.now())
