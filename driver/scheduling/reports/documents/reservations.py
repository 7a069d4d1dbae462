"""Reservations as documents. Pure."""

from driver.api import reservations as api
from driver.resources import reservations
from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import slots


def reservation(one: reservations.Reservation) -> model.Reservation:
    """One of them, with what it holds."""
    return model.Reservation(
        namespace=one.namespace,
        name=one.name,
        phase=one.phase,
        holder=holder(one.holder),
        start=one.start,
        created=one.created,
        count=one.count,
        devices=tuple(_held(held) for held in one.held),
        evicting=tuple(victim.key for victim in one.evicting),
    )


def _held(one: reservations.HeldDevice) -> model.Held:
    driver, pool, device = one.device
    gpu = slots.gpu_of(device)
    return model.Held(driver=driver, pool=pool, device=device, node=one.node, gpu=gpu)


def reservations_of(found: read_model.Seen) -> tuple[model.Reservation, ...]:
    """All of them, by key."""
    return tuple(reservation(one) for _, one in sorted(found.objects.reservations.items()))


def holder(one: api.Holder) -> str:
    """For whom, in words: `gang train`, `pods with team=vision`."""
    if one.labels:
        told = ",".join(f"{key}={value}" for key, value in sorted(one.labels.items()))
        return f"pods with {told}"
    for kind in ("gang", "pod", "claim", "queue"):
        name = getattr(one, kind)
        if name:
            return f"{kind} {name}"
    return ""
