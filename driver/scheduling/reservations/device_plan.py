"""Which devices a Reservation gets that says what its pods will ask. Pure."""

import datetime as dt
from collections.abc import Iterable

from driver import ids
from driver.resources import reservations
from driver.resources.core import pods, tolerations
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import holders, without_pods
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.reservations import overlay, term
from driver.scheduling.snapshot import snapshot

_ANY_NODE = (tolerations.Toleration("", "Exists", "", "", {}),)
"""Which taints the pods will tolerate is not known yet."""
_CLAIM_ENTRY = "reserved"
_ANYWHERE = topology.Topology()


def view_at_start(
    view: snapshot.Snapshot,
    people: holders.HolderIndex,
    one: reservations.Reservation,
    now: dt.datetime,
) -> snapshot.Snapshot:
    """A view as it will be when a Reservation starts, by what pods say of their run times."""
    starts = term.start_time(one)
    if starts <= now:
        return view
    leaving = [
        there
        for name in view.nodes
        for there in people.node_holders(name)
        if term.ends_by(there.pod, starts, now)
    ]
    return without_pods.WithoutPods(view, leaving) if leaving else view


def plan_devices(
    view: snapshot.Snapshot, one: reservations.Reservation, deciding: settings.Settings
) -> tuple[reservations.HeldDevice, ...] | gang_types.GangUnschedulable:
    """Devices for each of its pods, or why there are none.

    What is cordoned takes no pods that do not say so, and of these it is not known what they say.
    """
    open_to_all = [name for name, node in view.nodes.items() if not node.cordoned]
    there = overlay.WithoutReservations(view, (), open_to_all)
    found = gang_placement.place_gang(workloads(one), there, _ANYWHERE, deciding)
    if isinstance(found, gang_types.GangUnschedulable):
        return found
    return held_devices(view, found.members)


def class_fault(view: snapshot.Snapshot, one: reservations.Reservation) -> str:
    """The field of a Reservation that names a DeviceClass which does not exist; "" for none."""
    for place, asked in enumerate(one.spec.requests):
        at = f"spec.devices.requests[{place}]"
        for number, way in enumerate(asked.alternatives_or_self):
            if way.device_class not in view.classes:
                inside = f"firstAvailable[{number}]" if asked.alternatives else "exactly"
                name = way.device_class or "(none)"
                return f"{at}.{inside}.deviceClassName: DeviceClass {name} does not exist"
    return ""


def workloads(one: reservations.Reservation) -> tuple[allocator_types.Workload, ...]:
    """The pods that will come, each as it will ask."""
    return tuple(_workload(one, number) for number in range(one.count))


def _workload(one: reservations.Reservation, number: int) -> allocator_types.Workload:
    name = f"{one.name}-{number}"
    claim = claims.Claim(one.namespace, name, ids.ClaimUid(f"{one.uid}-{number}"), "", one.spec)
    pod = pods.Pod(
        one.namespace,
        name,
        ids.PodUid(f"{one.uid}-{number}"),
        tolerations=_ANY_NODE,
        claims=(pods.PodClaim(_CLAIM_ENTRY, name),),
    )
    return allocator_types.Workload(pod, (claim,))


def held_devices(
    view: snapshot.Snapshot, seats: Iterable[gang_types.MemberPlacement]
) -> tuple[reservations.HeldDevice, ...]:
    """The devices of places, each to be held for the pod of its number."""
    return tuple(
        held
        for number, seat in enumerate(seats)
        for held in placement_devices(view, number, seat.workload, seat.placement)
    )


def placement_devices(
    view: snapshot.Snapshot,
    number: int,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
) -> tuple[reservations.HeldDevice, ...]:
    """The devices of a placement, to be held for a pod."""
    made = allocation_result.build_allocations(view, workload, placement, timestamp="")
    return tuple(
        reservations.HeldDevice(number, placement.node, found.device, found.consumed)
        for allocation in made.values()
        for found in allocation.results
        if not found.admin_access
    )
