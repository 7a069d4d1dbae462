"""Moves workloads off failed GPUs: reserves a place, then evicts all pods (D7)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import structlog

from driver import clock, errors, ids
from driver.api import crd
from driver.api import reservations as api
from driver.controller.commit import write_pool
from driver.controller.informers import stores
from driver.controller.scheduler import state
from driver.controller.scheduler.eviction import evictions, preemption
from driver.controller.scheduler.eviction import reservations as eviction_reservations
from driver.controller.scheduler.explain import pending_reporter
from driver.resources import reservations
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import without_pods
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import faulty, victims
from driver.scheduling.reservations import device_plan
from driver.scheduling.snapshot import allocation_hold

_log = structlog.get_logger(__name__)
_RETRY_S = 60.0
"""What may not leave yet, for a budget, may later."""
_POD_LABELS = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that the next pod of an owner does not have in common with this one."""


class FaultRemediation:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        book: victims.VictimIndex,
        reservation_controller: eviction_reservations.ReservationController,
        reporter: pending_reporter.PendingReporter,
    ) -> None:
        self._context = context
        self._victims = book
        self._reservations = reservation_controller
        self._reporter = reporter

    def reconcile(self, item: write_pool.WorkItem) -> float | None:
        """Move the workloads on a node's failed devices.

        Returns the seconds until the next reconcile if a failed device is in use.
        """
        view = self._context.refresh_view()
        faults_by_victim: dict[victims.VictimKey, faulty.Fault] = {}
        for fault in faulty.faulty_devices(view, ids.NodeName(item.key)):
            for holder in view.holders(fault.device):
                users = self._users(holder.claim)
                if self._is_shared_by_group(holder.claim):
                    self._report_shared(users, holder.claim, fault)
                    continue
                for pod in users:
                    faults_by_victim.setdefault(self._victims.victim_key(pod), fault)
        for key, fault in faults_by_victim.items():
            unit = self._victims.all_victims(view).get(key)
            if unit is not None and faulty.should_replace(unit):
                self._replace(unit, fault)
        return _RETRY_S if faults_by_victim else None

    def _is_shared_by_group(self, key: ids.Key) -> bool:
        claim = self._context.stores.claims.get(key)
        return claim is not None and allocation_hold.is_reserved_for_group(claim)

    def _report_shared(
        self, users: Iterable[pods.Pod], claim: ids.Key, fault: faulty.Fault
    ) -> None:
        """Report that evictions would not help: new pods of the PodGroup get the same devices."""
        for pod in users:
            why = f"{claim} is reserved for PodGroup {pod.pod_group} until that is deleted"
            self._reporter.pending(pod, (), fault.kept_reason, f"{fault.message}; it stays: {why}")

    def _users(self, claim: ids.Key) -> Sequence[pods.Pod]:
        """Return the running pods of a claim."""
        users = stores.claim_users(self._context.stores, claim)
        return [pod for pod in users if pod.node and not pod.deleting]

    def _replace(self, unit: victims.Victim, fault: faulty.Fault) -> None:
        first = unit.pods[0].pod
        if self._reservations.is_victim(first):
            return
        stays = faulty.irreplaceable_reason(unit)
        if stays:
            self._reporter.pending(
                first, (), fault.kept_reason, f"{fault.message}; it stays: {stays}"
            )
            return
        seats = self._find_placements(unit)
        held = device_plan.held_devices(self._context.view, seats)
        node_names = ", ".join(sorted({seat.placement.node for seat in seats}))
        then = f"it is placed on {node_names}" if seats else "it waits with its place in the queue"
        words = f"Evicted with all of {unit.description}: {fault.message}; {then}"
        _log.info("replacing", unit=unit.name, why=fault.message, nodes=node_names)
        reservation = _reservation(unit, clock.rfc3339(self._context.clock.now()))
        messages: Mapping[ids.PodUid, str] = {holder.pod.uid: words for holder in unit.pods}
        self._reservations.create_for_eviction(
            reservation, held, evictions.EvictionMessages(messages, fault.eviction_reason)
        )

    def _find_placements(self, unit: victims.Victim) -> Sequence[gang_types.MemberPlacement]:
        """Return placements on healthy devices as if the workload were gone; empty if none."""
        view = without_pods.WithoutPods(self._context.view, unit.pods)
        members = [self._recreated(holder.pod) for holder in unit.pods]
        placement = gang_placement.place_gang(
            members, view, _topology(unit), self._context.settings.allocator
        )
        return placement.members if isinstance(placement, gang_types.GangPlacement) else ()

    def _recreated(self, pod: pods.Pod) -> allocator_types.Workload:
        """Return the workload of a pod as its owner recreates it."""
        pod_claims = stores.pod_claims(self._context.stores, pod)
        fresh_claims = tuple(replace(claim, allocation=None, consumers=()) for claim in pod_claims)
        return allocator_types.Workload(replace(pod, node=None), fresh_claims)


def _topology(unit: victims.Victim) -> topology.Topology:
    victim_pods = tuple(holder.pod for holder in unit.pods)
    if not victim_pods[0].gang:
        return topology.Topology()
    try:
        gang = gang_index.read_gang(ids.Key(unit.name), victim_pods, None)
    except errors.BadInput:
        return topology.Topology()
    return gang.topology_request if gang is not None else topology.Topology()


def _reservation(unit: victims.Victim, now: str) -> reservations.Reservation:
    first = unit.pods[0].pod
    labels = {key: value for key, value in first.labels.items() if key not in _POD_LABELS}
    holder = api.Holder(gang=first.gang) if first.gang else api.Holder(labels=labels or None)
    return reservations.Reservation(
        namespace=first.namespace,
        name=f"{eviction_reservations.REPLACE}{first.uid}",
        uid="",
        version="",
        created=now,
        holder=holder,
        ttl_s=crd.seconds(preemption.TTL),
        since=min(victim_pod.pod.created for victim_pod in unit.pods),
        evicting=tuple(
            reservations.Victim(victim_pod.pod.namespace, victim_pod.pod.name, victim_pod.pod.uid)
            for victim_pod in unit.pods
        ),
    )
