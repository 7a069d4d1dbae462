"""What waits for a node now: pods, gangs and Reservations without a place, in their order."""

from collections.abc import Iterator

from driver import ids
from driver.controller.scheduler import cycle as scheduler_cycle
from driver.controller.scheduler import state
from driver.controller.scheduler.eviction import reservations as eviction_reservations
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
        known: state.SchedulerContext,
        fair: engine.QueueEngine,
        turns: scheduler_cycle.SchedulingCycle,
        kept: eviction_reservations.ReservationController,
        gangs: gang_index.GangIndex,
    ) -> None:
        self._known = known
        self._engine = fair
        self._turns = turns
        self._reserving = kept
        self._gangs = gangs

    def list_demands(self) -> list[provisioning_demand.NodeDemand]:
        """Those that nothing else is underway for: pods and gangs first, by their turn."""
        return [*self._of_line(), *self._of_reservations()]

    def _of_line(self) -> Iterator[provisioning_demand.NodeDemand]:
        for one in self._turns.pending_in_order():
            if not self._reserving.has_pending_eviction(one):
                leaf = self._turns.workload_queue(one)
                yield provisioning_demand.NodeDemand(
                    one.demand_key, one.workloads, one.topology, leaf
                )

    def _of_reservations(self) -> Iterator[provisioning_demand.NodeDemand]:
        now = self._known.clock.now()
        for key in self._reserving.pending_keys():
            one = self._known.stores.reservations.get(key)
            if one is None or one.deleting or one.evicting:
                continue
            lead_s = (term.start_time(one) - now).total_seconds()
            leaf = self._engine.pod_queue(term.sample_holder(one))
            found = device_plan.workloads(one)
            yield provisioning_demand.NodeDemand(
                provisioning_demand.reservation_key(key), found, queue=leaf, lead_s=max(0.0, lead_s)
            )

    def is_pending(self, wish: str) -> bool:
        """Whether something waits still, by the objects alone: a new leader knows it, too."""
        if self.reservation(wish) is not None:
            return True
        return any(self._is_open(pod) for pod in self.demand_pods(wish))

    def reservation(self, wish: str) -> reservations.Reservation | None:
        """The Reservation that a wish is, as long as it holds nothing and is not over."""
        kind, key = split_key(wish)
        one = (
            self._known.stores.reservations.get(key)
            if kind == provisioning_demand.RESERVATION
            else None
        )
        if one is None or one.held or one.deleting:
            return None
        return one if self._known.clock.now() < term.end_time(one) else None

    def demand_pods(self, wish: str) -> tuple[pods.Pod, ...]:
        """The pods of a wish that are there."""
        kind, key = split_key(wish)
        if kind == "pod":
            pod = self._known.stores.pods.get(key)
            return (pod,) if pod is not None else ()
        return self._gangs.members(key) if kind == "gang" else ()

    def _is_open(self, pod: pods.Pod) -> bool:
        if pod.node is not None or pod.finished or pod.deleting:
            return False
        found = snapshot.pod_claims(pod, self._known.stores.claims.get)
        return found is None or any(claim.allocation is None for claim in found)


def split_key(wish: str) -> tuple[str, ids.Key]:
    """The kind and the key of a wish."""
    kind, _, key = wish.partition("/")
    return kind, ids.Key(key)
