"""Whose a Reservation is, from when to when, and what of it nobody has used yet. Pure.

What is reserved counts as held, by a key that no claim can have; for its holder it does not.
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
    """What its devices are held by in a view."""
    return ids.Key(f"{_PREFIX}{reservation.key}")


def reservation_of(holder: ids.Key) -> ids.Key | None:
    """The Reservation that holds a device; None where it is a claim."""
    return ids.Key(holder.removeprefix(_PREFIX)) if holder.startswith(_PREFIX) else None


def may_use(one: reservations.Reservation, pod: pods.Pod, leaf: str) -> bool:
    """Whether a pod of a queue may use what is reserved."""
    to = one.holder
    if to.queue is not None:
        return leaf == to.queue
    if pod.namespace != one.namespace:
        return False
    if to.gang is not None:
        return pod.gang == to.gang
    if to.pod is not None:
        return pod.name == to.pod and to.uid in (None, pod.uid)
    if to.claim is not None:
        return any(entry.claim == to.claim for entry in pod.claims)
    return to.labels is not None and to.labels.items() <= pod.labels.items()


def sample_holder(one: reservations.Reservation) -> pods.Pod:
    """A pod such as may use it, as far as its queue goes."""
    to = one.holder
    labels = dict(to.labels or {})
    if to.queue is not None:
        labels[names.QUEUE_LABEL] = to.queue
    return pods.Pod(one.namespace, to.pod or one.name, ids.PodUid(""), labels=labels)


def start_time(one: reservations.Reservation) -> dt.datetime:
    """From when on it is held against everybody."""
    return _moment(one.start or one.created)


def end_time(one: reservations.Reservation) -> dt.datetime:
    """When what nobody has used is given back."""
    return start_time(one) + dt.timedelta(seconds=one.ttl_s)


def _moment(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


def ends_by(pod: pods.Pod, moment: dt.datetime, now: dt.datetime) -> bool:
    """Whether a pod that starts now, or has started, says that it ends before a moment."""
    if pod.max_runtime_s is None:
        return False
    begun = _moment(pod.started) if pod.started else now
    return begun + dt.timedelta(seconds=pod.max_runtime_s) <= moment


def held_allocation(held: Iterable[reservations.HeldDevice]) -> claims.Allocation | None:
    """What is held, as a view counts it; None: nothing."""
    results = tuple(
        claims.Result(f"pod-{one.pod}", one.device, consumed=one.consumed) for one in held
    )
    return claims.Allocation(results) if results else None


def unused_devices(
    one: reservations.Reservation, view: snapshot.Snapshot, users: Iterable[ids.Key]
) -> tuple[reservations.HeldDevice, ...]:
    """What none of its holder's claims has taken yet."""
    mine = frozenset(users)
    devices = {held.device for held in one.held}
    taken = [
        (device, holder.result.consumed)
        for device in devices
        for holder in view.holders(device)
        if holder.claim in mine
    ]
    found: list[reservations.HeldDevice] = []
    for held in one.held:
        entry = (held.device, held.consumed)
        if entry in taken:
            taken.remove(entry)
        else:
            found.append(held)
    return tuple(found)
