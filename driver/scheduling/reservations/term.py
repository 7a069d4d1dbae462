"""Holder and term of a Reservation, and its unused devices. Pure.

Reserved devices count as held, by a key that no claim can have; not for their holder.
"""

import datetime as dt
from collections.abc import Iterable

from driver import ids, names
from driver.resources import reservations
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import snapshot

_PREFIX = "reservation:"
"""No namespace has a colon in its name."""


def holder_key(reservation: reservations.Reservation) -> ids.Key:
    """Return the holder of its devices in a snapshot."""
    return ids.Key(f"{_PREFIX}{reservation.key}")


def reservation_of(holder: ids.Key) -> ids.Key | None:
    """Return the Reservation that holds a device; None if it is a claim."""
    return ids.Key(holder.removeprefix(_PREFIX)) if holder.startswith(_PREFIX) else None


def may_use(reservation: reservations.Reservation, pod: pods.Pod, queue: str) -> bool:
    """Return whether a pod of a queue may use the reserved devices."""
    to = reservation.holder
    if to.queue is not None:
        return queue == to.queue
    if pod.namespace != reservation.namespace:
        return False
    if to.gang is not None:
        return pod.gang == to.gang
    if to.pod is not None:
        return pod.name == to.pod and to.uid in (None, pod.uid)
    if to.claim is not None:
        return any(entry.claim == to.claim for entry in pod.claims)
    return to.labels is not None and to.labels.items() <= pod.labels.items()


def sample_holder(reservation: reservations.Reservation) -> pods.Pod:
    """Return a pod such as may use it, as far as its queue is concerned."""
    to = reservation.holder
    labels = dict(to.labels or {})
    if to.queue is not None:
        labels[names.QUEUE_LABEL] = to.queue
    return pods.Pod(
        reservation.namespace, to.pod or reservation.name, ids.PodUid(""), labels=labels
    )


def start_time(reservation: reservations.Reservation) -> dt.datetime:
    """Return when it becomes exclusive."""
    return _moment(reservation.start or reservation.created)


def end_time(reservation: reservations.Reservation) -> dt.datetime:
    """Return when unused devices are released."""
    return start_time(reservation) + dt.timedelta(seconds=reservation.ttl_s)


def _moment(text: str) -> dt.datetime:
    time = dt.datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)


def ends_by(pod: pods.Pod, moment: dt.datetime, now: dt.datetime) -> bool:
    """Return whether a pod, started or starting now, declares to end before a moment."""
    if pod.max_runtime_s is None:
        return False
    begun = _moment(pod.started) if pod.started else now
    return begun + dt.timedelta(seconds=pod.max_runtime_s) <= moment


def held_allocation(held: Iterable[reservations.HeldDevice]) -> claims.Allocation | None:
    """Return the held devices as a snapshot counts them; None: nothing."""
    results = tuple(
        claims.Result(f"pod-{entry.pod}", entry.device, consumed=entry.consumed) for entry in held
    )
    return claims.Allocation(results) if results else None


def unused_devices(
    reservation: reservations.Reservation, view: snapshot.Snapshot, users: Iterable[ids.Key]
) -> tuple[reservations.HeldDevice, ...]:
    """Return the devices that no claim of its holder uses yet."""
    own_keys = frozenset(users)
    devices = {held.device for held in reservation.held}
    taken = [
        (device, holder.result.consumed)
        for device in devices
        for holder in view.holders(device)
        if holder.claim in own_keys
    ]
    unused: list[reservations.HeldDevice] = []
    for held in reservation.held:
        entry = (held.device, held.consumed)
        if entry in taken:
            taken.remove(entry)
        else:
            unused.append(held)
    return tuple(unused)
