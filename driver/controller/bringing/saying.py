"""What is told of nodes on demand, to those who wait for them: once for each new word."""

from collections.abc import Mapping

from driver import reasons
from driver.api import crd
from driver.controller import state, stores, writers
from driver.controller.bringing import wishing
from driver.controller.provisioning import wishes
from driver.controller.waiting import placing
from driver.kube import events
from driver.resources import nodes, reservations

_REASON = reasons.Reason


class Saying:
    """On the decider's thread."""

    def __init__(
        self,
        world: state.State,
        tools: writers.Tools,
        placer: placing.Placing,
        waiting: wishing.Wishing,
    ) -> None:
        self._world = world
        self._tools = tools
        self._placing = placer
        self._waiting = waiting
        self._told: dict[str, tuple[reasons.Reason, str]] = {}

    def stands(
        self, found: Mapping[str, tuple[reasons.Reason, str]], all_of: Mapping[str, wishes.Wish]
    ) -> None:
        """How each wish stands now; what is not named stands no way."""
        self._told = {key: said for key, said in self._told.items() if key in found}
        for key, (reason, message) in found.items():
            new = self._told.get(key) != (reason, message)
            self._told[key] = reason, message
            if wishing.parted(key)[0] == wishes.RESERVATION:
                if new:
                    self._on_reservation(key, reason, message)
                continue
            for work in all_of[key].workloads:
                self._placing.beside(work.pod, work.open, reason, message, new=new)

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
        regarding = events.ObjectRef("Node", "v1", "", node.name, node.uid)
        self._tools.tell.on(regarding, reason, message)

    def _on_reservation(self, wish: str, reason: reasons.Reason, message: str) -> None:
        one = self._waiting.reservation(wish)
        if one is not None:
            self._tools.tell.on(_ref(one), reason, message)


def _ref(one: reservations.Reservation) -> events.ObjectRef:
    return events.ObjectRef(reservations.KIND, crd.VERSION, one.namespace, one.name, one.uid)
