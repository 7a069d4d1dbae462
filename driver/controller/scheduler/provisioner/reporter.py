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
class DemandStatus:
    """How a wish stands. `mark`: what has to change for it to be told again."""

    reason: reasons.Reason
    message: str
    mark: str


class ProvisioningReporter:
    """On the decider's thread."""

    def __init__(
        self,
        world: state.SchedulerContext,
        tools: write_pool.WriteDeps,
        placer: scheduler_results.ResultHandler,
        waiting: pending_demand.PendingDemand,
    ) -> None:
        self._world = world
        self._tools = tools
        self._placing = placer
        self._waiting = waiting
        self._told: dict[str, str] = {}

    def report_statuses(
        self,
        found: Mapping[str, DemandStatus],
        all_of: Mapping[str, provisioning_demand.NodeDemand],
    ) -> None:
        """How each wish stands now; what is not named stands no way."""
        self._told = {key: mark for key, mark in self._told.items() if key in found}
        for key, one in found.items():
            mark = f"{one.reason.value} {one.mark}"
            new = self._told.get(key) != mark
            self._told[key] = mark
            if new:
                self._on_reservation(key, one.reason, one.message)
            for work in all_of[key].workloads if self._waiting.demand_pods(key) else ():
                self._placing.report_provisioning(
                    work.pod, work.open_claims, one.reason, one.message, new=new
                )

    def report_event(
        self, wish: str, node: nodes.Node | None, reason: reasons.Reason, message: str
    ) -> None:
        """Something happened to a node that was asked for, by now: told to all whom it concerns."""
        warning = reason is not _REASON.NODE_ARRIVED
        for pod in self._waiting.demand_pods(wish):
            told = self._tools.reporter.warning if warning else self._tools.reporter.normal
            told(pod, stores.pod_claims(self._world.stores, pod), reason, message)
        self._on_reservation(wish, reason, message)
        if node is not None:
            self.report_on_node(node, reason, message)

    def report_on_node(self, node: nodes.Node, reason: reasons.Reason, message: str) -> None:
        """Told on a Node."""
        regarding = recorder.ObjectRef("Node", "v1", "", node.name, node.uid)
        self._tools.reporter.report_on(regarding, reason, message)

    def _on_reservation(self, wish: str, reason: reasons.Reason, message: str) -> None:
        one = self._waiting.reservation(wish)
        if one is not None:
            self._tools.reporter.report_on(_ref(one), reason, message)


def _ref(one: reservations.Reservation) -> recorder.ObjectRef:
    return recorder.ObjectRef(reservations.KIND, crd.VERSION, one.namespace, one.name, one.uid)
