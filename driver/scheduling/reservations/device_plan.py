"""Devices of a Reservation that declares its pods' requests. Pure."""

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
"""The pods' tolerations are not known yet."""
_CLAIM_ENTRY = "reserved"
_ANYWHERE = topology.Topology()


def view_at_start(
    view: snapshot.Snapshot,
    holder_index: holders.HolderIndex,
    reservation: reservations.Reservation,
    now: dt.datetime,
) -> snapshot.Snapshot:
    """Return the snapshot at a Reservation's start, by pods' declared run times."""
    starts = term.start_time(reservation)
    if starts <= now:
        return view
    leaving = [
        holder
        for name in view.nodes
        for holder in holder_index.node_holders(name)
        if term.ends_by(holder.pod, starts, now)
    ]
    return without_pods.WithoutPods(view, leaving) if leaving else view


def plan_devices(
    view: snapshot.Snapshot,
    reservation: reservations.Reservation,
    allocator_settings: settings.Settings,
) -> tuple[reservations.HeldDevice, ...] | gang_types.GangUnschedulable:
    """Return devices for each of its pods, or why there are none.

    Cordoned nodes are left out: whether its pods will tolerate them is not known.
    """
    open_to_all = [name for name, node in view.nodes.items() if not node.cordoned]
    uncordoned = overlay.WithoutReservations(view, (), open_to_all)
    result = gang_placement.place_gang(
        workloads(reservation), uncordoned, _ANYWHERE, allocator_settings
    )
    if isinstance(result, gang_types.GangUnschedulable):
        return result
    return held_devices(view, result.members)


def class_fault(view: snapshot.Snapshot, reservation: reservations.Reservation) -> str:
    """Return the field of a Reservation with a missing DeviceClass; "" for none."""
    for index, request in enumerate(reservation.spec.requests):
        path = f"spec.devices.requests[{index}]"
        for number, subrequest in enumerate(request.alternatives_or_self):
            if subrequest.device_class not in view.classes:
                inside = f"firstAvailable[{number}]" if request.alternatives else "exactly"
                name = subrequest.device_class or "(none)"
                return f"{path}.{inside}.deviceClassName: DeviceClass {name} does not exist"
    return ""


def workloads(reservation: reservations.Reservation) -> tuple[allocator_types.Workload, ...]:
    """Return the future pods, each with its requests."""
    return tuple(_workload(reservation, number) for number in range(reservation.count))


def _workload(reservation: reservations.Reservation, number: int) -> allocator_types.Workload:
    name = f"{reservation.name}-{number}"
    claim = claims.Claim(
        reservation.namespace,
        name,
        ids.ClaimUid(f"{reservation.uid}-{number}"),
        "",
        reservation.spec,
    )
    pod = pods.Pod(
        reservation.namespace,
        name,
        ids.PodUid(f"{reservation.uid}-{number}"),
        tolerations=_ANY_NODE,
        claims=(pods.PodClaim(_CLAIM_ENTRY, name),),
    )
    return allocator_types.Workload(pod, (claim,))


def held_devices(
    view: snapshot.Snapshot, members: Iterable[gang_types.MemberPlacement]
) -> tuple[reservations.HeldDevice, ...]:
    """Return the devices of placements, each to be held for the pod of its number."""
    return tuple(
        held
        for number, member in enumerate(members)
        for held in placement_devices(view, number, member.workload, member.placement)
    )


def placement_devices(
    view: snapshot.Snapshot,
    number: int,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
) -> tuple[reservations.HeldDevice, ...]:
    """Return the devices of a placement, to be held for a pod."""
    allocations = allocation_result.build_allocations(view, workload, placement, timestamp="")
    return tuple(
        reservations.HeldDevice(number, placement.node, result.device, result.consumed)
        for allocation in allocations.values()
        for result in allocation.results
        if not result.admin_access
    )
