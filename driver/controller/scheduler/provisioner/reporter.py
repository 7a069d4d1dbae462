"""What is told of nodes on demand, to those who wait for them: once for each new word."""

from collections.abc import Mapping
from dataclasses import dataclass

from driver import reasons
from driver.api import crd
from driver.controller.commit import write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import results as scheduler_results
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import pending_demand
from driver.kube.events import recorder
from driver.resources import reservations
from driver.resources.core import nodes
from driver.scheduling.provisioning import demand as provisioning_demand

_REASON = reasons.Reason


@dataclass(frozen=True, slots=True)
class Standing:
    """How a wish stands. `mark`: what has to change for it to be told again."""

    reason: reasons.Reason
    message: str
    mark: str


class Saying:
    """On the decider's thread."""

    def __init__(
        self,
        world: state.State,
        tools: write_pool.Tools,
        placer: scheduler_results.Placing,
        waiting: pending_demand.Wishing,
    ) -> None:
        self._world = world
        self._tools = tools
        self._placing = placer
        self._waiting = waiting
        self._told: dict[str, str] = {}

    def stands(
        self, found: Mapping[str, Standing], all_of: Mapping[str, provisioning_demand.NodeDemand]
    ) -> None:
        """How each wish stands now; what is not named stands no way."""
        self._told = {key: mark for key, mark in self._told.items() if key in found}
        for key, one in found.items():
            mark = f"{one.reason.value} {one.mark}"
            new = self._told.get(key) != mark
            self._told[key] = mark
            if new:
                self._on_reservation(key, one.reason, one.message)
            for work in all_of[key].workloads if self._waiting.people(key) else ():
                self._placing.beside(work.pod, work.open_claims, one.reason, one.message, new=new)

    def happened(
        self, wish: str, node: nodes.Node | None, reason: reasons.Reason, message: str
    ) -> None:
        """Something happened to a node that was asked for, by now: told to all whom it concerns."""
        warning = reason is not _REASON.NODE_ARRIVED
        for pod in self._waiting.people(wish):
            told = self._tools.tell.warning if warning else self._tools.tell.normal
            told(pod, stores.claims_of(self._world.stores, pod), reason, message)
        self._on_reservation(wish, reason, message)
        if node is not None:
            self.on_node(node, reason, message)

    def on_node(self, node: nodes.Node, reason: reasons.Reason, message: str) -> None:
        """Told on a Node."""
        regarding = recorder.ObjectRef("Node", "v1", "", node.name, node.uid)
        self._tools.tell.on(regarding, reason, message)

    def _on_reservation(self, wish: str, reason: reasons.Reason, message: str) -> None:
        one = self._waiting.reservation(wish)
        if one is not None:
            self._tools.tell.on(_ref(one), reason, message)


def _ref(one: reservations.Reservation) -> recorder.ObjectRef:
    return recorder.ObjectRef(reservations.KIND, crd.VERSION, one.namespace, one.name, one.uid)
