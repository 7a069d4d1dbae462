"""Reservations as documents. Pure."""

from driver.api import reservations as api
from driver.resources import reservations
from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import slots


def reservation_document(subject: reservations.Reservation) -> model.Reservation:
    """Return one Reservation, with its devices."""
    return model.Reservation(
        namespace=subject.namespace,
        name=subject.name,
        phase=subject.phase,
        holder=holder_text(subject.holder),
        start=subject.start,
        created=subject.created,
        count=subject.count,
        devices=tuple(_held(held) for held in subject.held),
        evicting=tuple(victim.key for victim in subject.evicting),
    )


def _held(held: reservations.HeldDevice) -> model.Held:
    driver, pool, device = held.device
    gpu = slots.gpu_name(device)
    return model.Held(driver=driver, pool=pool, device=device, node=held.node, gpu=gpu)


def reservation_documents(cluster: read_model.ClusterModel) -> tuple[model.Reservation, ...]:
    """Return all Reservations, by key."""
    return tuple(
        reservation_document(entry) for _, entry in sorted(cluster.objects.reservations.items())
    )


def holder_text(spec: api.Holder) -> str:
    """Return the holder in words: `gang train`, `pods with team=vision`."""
    if spec.labels:
        labels_text = ",".join(f"{key}={value}" for key, value in sorted(spec.labels.items()))
        return f"pods with {labels_text}"
    for kind in ("gang", "pod", "claim", "queue"):
        name = getattr(spec, kind)
        if name:
            return f"{kind} {name}"
    return ""
