"""Reports provisioning to pending workloads, once for each change."""

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
    """Status of a demand. It is reported again when `mark` changes."""

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
        self._context = world
        self._tools = tools
        self._results = placer
        self._demand = waiting
        self._reported: dict[str, str] = {}

    def report_statuses(
        self,
        statuses: Mapping[str, DemandStatus],
        all_of: Mapping[str, provisioning_demand.NodeDemand],
    ) -> None:
        """Report the status of each demand; demands that are not named have none."""
        self._reported = {key: mark for key, mark in self._reported.items() if key in statuses}
        for key, status in statuses.items():
            mark = f"{status.reason.value} {status.mark}"
            new = self._reported.get(key) != mark
            self._reported[key] = mark
            if new:
                self._report_on_reservation(key, status.reason, status.message)
            for work in all_of[key].workloads if self._demand.demand_pods(key) else ():
                self._results.report_provisioning(
                    work.pod, work.open_claims, status.reason, status.message, new=new
                )

    def report_event(
        self, wish: str, node: nodes.Node | None, reason: reasons.Reason, message: str
    ) -> None:
        """Report an event of a requested node on its demand's objects."""
        warning = reason is not _REASON.NODE_ARRIVED
        for pod in self._demand.demand_pods(wish):
            report = self._tools.reporter.warning if warning else self._tools.reporter.normal
            report(pod, stores.pod_claims(self._context.stores, pod), reason, message)
        self._report_on_reservation(wish, reason, message)
        if node is not None:
            self.report_on_node(node, reason, message)

    def report_on_node(self, node: nodes.Node, reason: reasons.Reason, message: str) -> None:
        """Report an event on a Node."""
        regarding = recorder.ObjectRef("Node", "v1", "", node.name, node.uid)
        self._tools.reporter.report_on(regarding, reason, message)

    def _report_on_reservation(self, wish: str, reason: reasons.Reason, message: str) -> None:
        reservation = self._demand.reservation(wish)
        if reservation is not None:
            self._tools.reporter.report_on(_ref(reservation), reason, message)


def _ref(reservation: reservations.Reservation) -> recorder.ObjectRef:
    return recorder.ObjectRef(
        reservations.KIND, crd.VERSION, reservation.namespace, reservation.name, reservation.uid
    )
