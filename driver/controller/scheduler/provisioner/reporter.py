"""Reports provisioning to pending workloads, once for each change."""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from driver import reasons
from driver.controller.commit import reporter as commit_reporter
from driver.controller.informers import stores
from driver.controller.scheduler import state
from driver.controller.scheduler.provisioner import pending_demand
from driver.resources.core import nodes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.provisioning import demand as provisioning_demand

_log = structlog.get_logger(__name__)


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
        reporter: commit_reporter.Reporter,
        waiting: pending_demand.PendingDemand,
    ) -> None:
        self._context = world
        self._reporter = reporter
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
                self._report_pending(work, status, new=new)

    def _report_pending(
        self, work: allocator_types.Workload, status: DemandStatus, *, new: bool
    ) -> None:
        """Set the condition of a refused pod if it differs; emit an event if the status is new."""
        pod, reason, last = work.pod, status.reason, self._context.memory.pending_reasons
        if new:
            self._reporter.event(pod, work.open_claims, reason, status.message)
            _log.info("not placed yet", pod=pod.key, reason=reason.value, answer=status.message)
        if new or last.get(pod.uid) is not reason:
            last[pod.uid] = reason
            self._reporter.pending(pod, reason, status.message)

    def report_event(
        self, wish: str, node: nodes.Node | None, reason: reasons.Reason, message: str
    ) -> None:
        """Report an event of a requested node on its demand's objects."""
        for pod in self._demand.demand_pods(wish):
            pod_claims = stores.pod_claims(self._context.stores, pod)
            self._reporter.event(pod, pod_claims, reason, message)
        self._report_on_reservation(wish, reason, message)
        if node is not None:
            self.report_on_node(node, reason, message)

    def report_on_node(self, node: nodes.Node, reason: reasons.Reason, message: str) -> None:
        """Report an event on a Node."""
        self._reporter.node_event(node, reason, message)

    def _report_on_reservation(self, wish: str, reason: reasons.Reason, message: str) -> None:
        reservation = self._demand.reservation(wish)
        if reservation is not None:
            self._reporter.reservation_event(reservation, reason, message)
