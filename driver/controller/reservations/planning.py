"""Which devices a Reservation gets that says what its pods will ask. Pure."""

import datetime as dt
from collections.abc import Iterable

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import assemble, outcome, settings
from driver.controller.allocation.gangs import result, seating, topology
from driver.controller.allocation.whatif import absence, tenants
from driver.controller.reservations import term, without
from driver.resources import claims, pods, reservations, toleration

_ANY_NODE = (toleration.Toleration("", "Exists", "", "", {}),)
"""Which taints the pods will tolerate is not known yet."""
_ENTRY = "reserved"
_ANYWHERE = topology.Topology()


def at_start(
    view: cluster.ClusterView,
    people: tenants.Tenants,
    one: reservations.Reservation,
    now: dt.datetime,
) -> cluster.ClusterView:
    """A view as it will be when a Reservation starts, by what pods say of their run times."""
    starts = term.starts(one)
    if starts <= now:
        return view
    leaving = [
        there
        for name in view.nodes
        for there in people.of(name)
        if term.is_over_by(there.pod, starts, now)
    ]
    return absence.Absence(view, leaving) if leaving else view


def plan(
    view: cluster.ClusterView, one: reservations.Reservation, deciding: settings.Settings
) -> tuple[reservations.Held, ...] | result.Unseated:
    """Devices for each of its pods, or why there are none.

    What is cordoned takes no pods that do not say so, and of these it is not known what they say.
    """
    open_to_all = [name for name, node in view.nodes.items() if not node.cordoned]
    there = without.Without(view, (), open_to_all)
    found = seating.place(workloads(one), there, _ANYWHERE, deciding)
    if isinstance(found, result.Unseated):
        return found
    return of_seats(view, found.seats)


def fault(view: cluster.ClusterView, one: reservations.Reservation) -> str:
    """The field of a Reservation that names a DeviceClass which does not exist; "" for none."""
    for place, asked in enumerate(one.spec.requests):
        at = f"spec.devices.requests[{place}]"
        for number, way in enumerate(asked.ways):
            if way.device_class not in view.classes:
                inside = f"firstAvailable[{number}]" if asked.alternatives else "exactly"
                name = way.device_class or "(none)"
                return f"{at}.{inside}.deviceClassName: DeviceClass {name} does not exist"
    return ""


def workloads(one: reservations.Reservation) -> tuple[outcome.Workload, ...]:
    """The pods that will come, each as it will ask."""
    return tuple(_workload(one, number) for number in range(one.count))


def _workload(one: reservations.Reservation, number: int) -> outcome.Workload:
    name = f"{one.name}-{number}"
    claim = claims.Claim(one.namespace, name, ids.ClaimUid(f"{one.uid}-{number}"), "", one.spec)
    pod = pods.Pod(
        one.namespace,
        name,
        ids.PodUid(f"{one.uid}-{number}"),
        tolerations=_ANY_NODE,
        claims=(pods.PodClaim(_ENTRY, name),),
    )
    return outcome.Workload(pod, (claim,))


def of_seats(
    view: cluster.ClusterView, seats: Iterable[result.Seat]
) -> tuple[reservations.Held, ...]:
    """The devices of places, each to be held for the pod of its number."""
    return tuple(
        held
        for number, seat in enumerate(seats)
        for held in of_placement(view, number, seat.workload, seat.placement)
    )


def of_placement(
    view: cluster.ClusterView,
    number: int,
    workload: outcome.Workload,
    placement: outcome.Placement,
) -> tuple[reservations.Held, ...]:
    """The devices of a placement, to be held for a pod."""
    made = assemble.allocations(view, workload, placement, stamped="")
    return tuple(
        reservations.Held(number, placement.node, found.device, found.consumed)
        for allocation in made.values()
        for found in allocation.results
        if not found.admin_access
    )
