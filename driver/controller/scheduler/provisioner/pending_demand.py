"""Demand for nodes: pending pods, gangs and Reservations without a place, in their order."""

from collections.abc import Iterator

from driver import ids
from driver.controller.scheduler import state
from driver.controller.scheduler.eviction import reservations as eviction_reservations
from driver.controller.scheduler.provisioner import queue_headroom
from driver.controller.scheduler.queues import pending_order
from driver.resources import reservations
from driver.resources.core import pods
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.queues import engine
from driver.scheduling.reservations import device_plan, term
from driver.scheduling.snapshot import snapshot


class PendingDemand:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        order: pending_order.PendingOrder,
        reservation_controller: eviction_reservations.ReservationController,
        gangs: gang_index.GangIndex,
    ) -> None:
        self._context = context
        self._engine = fair
        self._order = order
        self._reservations = reservation_controller
        self._gangs = gangs

    def list_demands(self) -> list[provisioning_demand.NodeDemand]:
        """Return the demands without an eviction in progress: pods and gangs first, in order."""
        return [*self._workload_demands(), *self._reservation_demands()]

    def _workload_demands(self) -> Iterator[provisioning_demand.NodeDemand]:
        for workload in self._order.all_in_order():
            if not self._reservations.has_pending_eviction(workload):
                leaf = self._order.queue(workload)
                yield provisioning_demand.NodeDemand(
                    workload.demand_key, workload.workloads, workload.topology, leaf
                )

    def _reservation_demands(self) -> Iterator[provisioning_demand.NodeDemand]:
        now = self._context.clock.now()
        for key in self._reservations.pending_keys():
            reservation = self._context.stores.reservations.get(key)
            if reservation is None or reservation.deleting or reservation.evicting:
                continue
            lead_s = (term.start_time(reservation) - now).total_seconds()
            leaf = self._engine.pod_queue(term.sample_holder(reservation))
            workloads = device_plan.workloads(reservation)
            yield provisioning_demand.NodeDemand(
                provisioning_demand.reservation_key(key),
                workloads,
                queue=leaf,
                lead_s=max(0.0, lead_s),
            )

    def headroom(self) -> queue_headroom.QueueHeadroom:
        """Return the headroom of the queues, to plan by; `reset` it after the plan."""
        return queue_headroom.QueueHeadroom(self._engine)

    def is_pending(self, wish: str) -> bool:
        """Return whether a demand is pending, by API objects alone, as a new leader needs it."""
        if self.reservation(wish) is not None:
            return True
        return any(self._is_open(pod) for pod in self.demand_pods(wish))

    def reservation(self, wish: str) -> reservations.Reservation | None:
        """Return the Reservation of a demand while it holds nothing and has not ended."""
        kind, key = split_key(wish)
        reservation = (
            self._context.stores.reservations.get(key)
            if kind == provisioning_demand.RESERVATION
            else None
        )
        if reservation is None or reservation.held or reservation.deleting:
            return None
        return reservation if self._context.clock.now() < term.end_time(reservation) else None

    def demand_pods(self, wish: str) -> tuple[pods.Pod, ...]:
        """Return the existing pods of a demand."""
        kind, key = split_key(wish)
        if kind == "pod":
            pod = self._context.stores.pods.get(key)
            return (pod,) if pod is not None else ()
        return self._gangs.members(key) if kind == "gang" else ()

    def _is_open(self, pod: pods.Pod) -> bool:
        if pod.node is not None or pod.finished or pod.deleting:
            return False
        pod_claims = snapshot.pod_claims(pod, self._context.stores.claims.get)
        return pod_claims is None or any(claim.allocation is None for claim in pod_claims)


def split_key(wish: str) -> tuple[str, ids.Key]:
    """Return the kind and the key of a demand."""
    kind, _, key = wish.partition("/")
    return kind, ids.Key(key)
