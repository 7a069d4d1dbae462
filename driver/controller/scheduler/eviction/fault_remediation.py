"""Work on what failed goes elsewhere: a place is held, then it is evicted whole (D7)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from driver import clock, errors, ids
from driver.api import crd
from driver.api import reservations as api
from driver.controller.informers import stores
from driver.controller.scheduler import results as scheduler_results
from driver.controller.scheduler import state
from driver.controller.scheduler.eviction import evictions, preemption
from driver.controller.scheduler.eviction import reservations as eviction_reservations
from driver.resources import reservations
from driver.resources.core import pods
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import without_pods
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import faulty, victims
from driver.scheduling.reservations import device_plan

_log = structlog.get_logger(__name__)
_AGAIN_S = 60.0
"""What may not leave yet, for a budget, may later."""
_OF_ONE_POD = frozenset(
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
        known: state.SchedulerContext,
        book: victims.VictimIndex,
        kept: eviction_reservations.ReservationController,
        placer: scheduler_results.ResultHandler,
        deciding: settings.Settings,
    ) -> None:
        self._known = known
        self._book = book
        self._reserving = kept
        self._placing = placer
        self._deciding = deciding

    def reconcile(self, node: ids.NodeName) -> float | None:
        """Have the work on devices of a node that failed go elsewhere, where it is to.

        Seconds until it is to be looked at again, where something is there that failed.
        """
        view = self._known.refresh_view()
        found: dict[victims.VictimKey, faulty.Fault] = {}
        for fault in faulty.faulty_devices(view, node):
            for holder in view.holders(fault.device):
                for pod in self._users(holder.claim):
                    found.setdefault(victims.victim_key(pod), fault)
        for key, fault in found.items():
            unit = self._book.all_victims(view).get(key)
            if unit is not None and faulty.should_replace(unit):
                self._replace(unit, fault)
        return _AGAIN_S if found else None

    def _users(self, claim: ids.Key) -> Sequence[pods.Pod]:
        """The pods of a claim that run."""
        there = stores.claim_users(self._known.stores, claim)
        return [pod for pod in there if pod.node and not pod.deleting]

    def _replace(self, unit: victims.Victim, fault: faulty.Fault) -> None:
        first = unit.pods[0].pod
        if self._reserving.is_victim(first):
            return
        stays = faulty.irreplaceable_reason(unit)
        if stays:
            self._placing.report_pending(
                first, (), fault.kept_reason, f"{fault.message}; it stays: {stays}"
            )
            return
        seats = self._seats(unit)
        held = device_plan.held_devices(self._known.view, seats)
        where = ", ".join(sorted({seat.placement.node for seat in seats}))
        then = f"it is placed on {where}" if seats else "it waits with its place in the queue"
        words = f"Evicted with all of {unit.description}: {fault.message}; {then}"
        _log.info("replacing", unit=unit.name, why=fault.message, nodes=where)
        made = _reservation(unit, clock.rfc3339(self._known.clock.now()))
        said: Mapping[ids.PodUid, str] = {one.pod.uid: words for one in unit.pods}
        self._reserving.create_for_eviction(
            made, held, evictions.EvictionMessages(said, fault.eviction_reason)
        )

    def _seats(self, unit: victims.Victim) -> Sequence[gang_types.MemberPlacement]:
        """Places for all of it on what works, as if it were gone; none where there are none."""
        view = without_pods.WithoutPods(self._known.view, unit.pods)
        members = [self._afresh(one.pod) for one in unit.pods]
        found = gang_placement.place_gang(members, view, _near(unit), self._deciding)
        return found.members if isinstance(found, gang_types.GangPlacement) else ()

    def _afresh(self, pod: pods.Pod) -> allocator_types.Workload:
        """A pod as its owner will make it again."""
        there = stores.pod_claims(self._known.stores, pod)
        asked = tuple(replace(one, allocation=None, consumers=()) for one in there)
        return allocator_types.Workload(replace(pod, node=None), asked)


def _near(unit: victims.Victim) -> topology.Topology:
    found = tuple(one.pod for one in unit.pods)
    if not found[0].gang:
        return topology.Topology()
    try:
        gang = gang_index.read_gang(ids.Key(unit.name), found, None)
    except errors.BadInput:
        return topology.Topology()
    return gang.topology_request if gang is not None else topology.Topology()


def _reservation(unit: victims.Victim, now: str) -> reservations.Reservation:
    first = unit.pods[0].pod
    labels = {key: value for key, value in first.labels.items() if key not in _OF_ONE_POD}
    holder = api.Holder(gang=first.gang) if first.gang else api.Holder(labels=labels or None)
    return reservations.Reservation(
        namespace=first.namespace,
        name=f"{eviction_reservations.REPLACE}{first.uid}",
        uid="",
        version="",
        created=now,
        holder=holder,
        ttl_s=crd.seconds(preemption.TTL),
        since=min(one.pod.created for one in unit.pods),
        evicting=tuple(
            reservations.Victim(one.pod.namespace, one.pod.name, one.pod.uid) for one in unit.pods
        ),
    )
