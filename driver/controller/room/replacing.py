"""Work on what failed goes elsewhere: a place is held, then it is evicted whole (D7)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from driver import clock, errors, ids
from driver.api import crd
from driver.api import reservations as api
from driver.controller import state, stores
from driver.controller.allocation import outcome, settings
from driver.controller.allocation.gangs import result, seating, topology
from driver.controller.allocation.whatif import absence
from driver.controller.gangs import roster
from driver.controller.preempting import units
from driver.controller.reservations import planning
from driver.controller.room import broken, departing, preemption, reserving
from driver.controller.waiting import placing
from driver.resources import pods, reservations

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


class Replacing:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.State,
        book: units.Book,
        kept: reserving.Reserving,
        placer: placing.Placing,
        deciding: settings.Settings,
    ) -> None:
        self._known = known
        self._book = book
        self._reserving = kept
        self._placing = placer
        self._deciding = deciding

    def look(self, node: ids.NodeName) -> float | None:
        """Have the work on devices of a node that failed go elsewhere, where it is to.

        Seconds until it is to be looked at again, where something is there that failed.
        """
        view = self._known.bring()
        found: dict[units.UnitKey, broken.Fault] = {}
        for fault in broken.devices(view, node):
            for holder in view.holders(fault.device):
                for pod in self._users(holder.claim):
                    found.setdefault(units.key_of(pod), fault)
        for key, fault in found.items():
            unit = self._book.all(view).get(key)
            if unit is not None and broken.is_replaced(unit):
                self._replace(unit, fault)
        return _AGAIN_S if found else None

    def _users(self, claim: ids.Key) -> Sequence[pods.Pod]:
        """The pods of a claim that run."""
        there = stores.users(self._known.stores, claim)
        return [pod for pod in there if pod.node and not pod.deleting]

    def _replace(self, unit: units.Unit, fault: broken.Fault) -> None:
        first = unit.people[0].pod
        if self._reserving.is_going(first):
            return
        stays = broken.stays(unit)
        if stays:
            self._placing.wait(first, (), fault.kept, f"{fault.words}; it stays: {stays}")
            return
        seats = self._seats(unit)
        held = planning.of_seats(self._known.view, seats)
        where = ", ".join(sorted({seat.placement.node for seat in seats}))
        then = f"it is placed on {where}" if seats else "it waits with its place in the queue"
        words = f"Evicted with all of {unit.words}: {fault.words}; {then}"
        _log.info("replacing", unit=unit.name, why=fault.words, nodes=where)
        made = _reservation(unit, clock.rfc3339(self._known.clock.now()))
        said: Mapping[ids.PodUid, str] = {one.pod.uid: words for one in unit.people}
        self._reserving.begin(made, held, departing.Words(said, fault.evicted))

    def _seats(self, unit: units.Unit) -> Sequence[result.Seat]:
        """Places for all of it on what works, as if it were gone; none where there are none."""
        view = absence.Absence(self._known.view, unit.people)
        members = [self._afresh(one.pod) for one in unit.people]
        found = seating.place(members, view, _near(unit), self._deciding)
        return found.seats if isinstance(found, result.Seated) else ()

    def _afresh(self, pod: pods.Pod) -> outcome.Workload:
        """A pod as its owner will make it again."""
        there = stores.claims_of(self._known.stores, pod)
        asked = tuple(replace(one, allocation=None, consumers=()) for one in there)
        return outcome.Workload(replace(pod, node=None), asked)


def _near(unit: units.Unit) -> topology.Topology:
    found = tuple(one.pod for one in unit.people)
    if not found[0].gang:
        return topology.Topology()
    try:
        gang = roster.read(ids.Key(unit.name), found, None)
    except errors.BadInput:
        return topology.Topology()
    return gang.near if gang is not None else topology.Topology()


def _reservation(unit: units.Unit, now: str) -> reservations.Reservation:
    first = unit.people[0].pod
    labels = {key: value for key, value in first.labels.items() if key not in _OF_ONE_POD}
    holder = api.Holder(gang=first.gang) if first.gang else api.Holder(labels=labels or None)
    return reservations.Reservation(
        namespace=first.namespace,
        name=f"{reserving.REPLACE}{first.uid}",
        uid="",
        version="",
        created=now,
        holder=holder,
        ttl_s=crd.seconds(preemption.TTL),
        since=min(one.pod.created for one in unit.people),
        evicting=tuple(
            reservations.Victim(one.pod.namespace, one.pod.name, one.pod.uid) for one in unit.people
        ),
    )
