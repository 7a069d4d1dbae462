"""Reservations as the controller reads them, and the status it writes (D7)."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver import errors, ids
from driver.api import crd, validation
from driver.api import reservations as api
from driver.resources import fields, quantities
from driver.resources.dra import claims
from driver.resources.dra import requests as dra_requests

KIND = "Reservation"
ACCEPTED = "Accepted"
"""Condition: whether what is asked can be had at all."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that goes for the holder."""

    namespace: str
    name: str
    uid: ids.PodUid

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device that is reserved on a node, or so much of one, for the holder's pod number `pod`."""

    pod: int
    node: ids.NodeName
    device: claims.DeviceId
    consumed: Mapping[str, quantities.Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A Reservation (`api.ReservationSpec`). `start` and `since` are RFC 3339, "" without.

    `spec` is what each of `count` pods asks; empty where `held` says it all.
    """

    namespace: str
    name: str
    uid: str
    version: str
    created: str
    holder: api.Holder
    start: str = ""
    ttl_s: float = 3600.0
    count: int = 1
    spec: dra_requests.ClaimSpec = claims.NO_REQUESTS
    since: str = ""
    evicting: tuple[Victim, ...] = ()
    phase: str = "Pending"
    held: tuple[HeldDevice, ...] = ()
    deleting: bool = False
    status: fields.Raw = field(default_factory=dict, compare=False, hash=False)

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")


def parse(obj: fields.Raw) -> Reservation:
    """Read a Reservation. Raises BadInput where it is not as its CRD wants it."""
    meta = fields.mapping(obj, "metadata")
    status = fields.mapping(obj, "status")
    spec = validation.read(api.ReservationSpec, fields.mapping(obj, "spec"), "spec")
    return Reservation(
        namespace=fields.text(meta, "namespace", "metadata"),
        name=fields.required_text(meta, "name", "metadata"),
        uid=fields.text(meta, "uid", "metadata"),
        version=fields.text(meta, "resourceVersion", "metadata"),
        created=fields.text(meta, "creationTimestamp", "metadata"),
        holder=spec.for_,
        start=_time(spec.start, "spec.start"),
        ttl_s=crd.seconds(spec.ttl),
        count=spec.count,
        spec=dra_requests.parse(spec.devices) if spec.devices else claims.NO_REQUESTS,
        since=_time(spec.since, "spec.since"),
        evicting=tuple(
            Victim(item.namespace, item.name, ids.PodUid(item.uid)) for item in spec.evicting
        ),
        phase=fields.text(status, "phase", "status", "Pending"),
        held=tuple(_held(item, path) for path, item in fields.objects(status, "devices", "status")),
        deleting=bool(meta.get("deletionTimestamp")),
        status=status,
    )


def _time(text: str | None, path: str) -> str:
    """RFC 3339 that is a moment; "" for none."""
    if not text:
        return ""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise errors.BadInput(path, f"{text!r}: {error}", "such as 2026-12-01T22:00:00Z") from error
    return text


def render(reservation: Reservation) -> dict[str, object]:
    """A Reservation for which pods go, as it is made; deleted with the pod that it is for."""
    to = reservation.holder.model_dump(by_alias=True, exclude_none=True)
    meta: dict[str, object] = {"name": reservation.name, "namespace": reservation.namespace}
    if reservation.holder.pod is not None:
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": reservation.holder.pod,
            "uid": reservation.holder.uid,
        }
        meta["ownerReferences"] = [owner]
    gone = [{"namespace": v.namespace, "name": v.name, "uid": v.uid} for v in reservation.evicting]
    since = {"since": reservation.since} if reservation.since else {}
    spec = {"for": to, "ttl": f"{reservation.ttl_s:.0f}s", "evicting": gone, **since}
    return {"apiVersion": crd.VERSION, "kind": KIND, "metadata": meta, "spec": spec}


def _held(obj: fields.Raw, path: str) -> HeldDevice:
    texts = (fields.required_text(obj, key, path) for key in ("driver", "pool", "device"))
    return HeldDevice(
        fields.integer(obj, "pod", path),
        ids.NodeName(fields.required_text(obj, "node", path)),
        claims.DeviceId(*texts),
        {
            key: quantities.parse(amount, f"{path}.consumedCapacity[{key}]")
            for key, amount in fields.mapping(obj, "consumedCapacity", path).items()
        },
    )


def render_held(held_devices: Iterable[HeldDevice]) -> list[dict[str, object]]:
    """`status.devices`."""
    return [
        {
            "pod": held_device.pod,
            "node": held_device.node,
            **held_device.device._asdict(),
            **({"consumedCapacity": _texts(held_device)} if held_device.consumed else {}),
        }
        for held_device in held_devices
    ]


def _texts(held_device: HeldDevice) -> dict[str, str]:
    return {key: amount.text for key, amount in held_device.consumed.items()}


def render_status(
    reservation: Reservation,
    phase: str,
    held: Iterable[HeldDevice],
    accepted: dict[str, str],
    message: str,
) -> dict[str, object]:
    """`status`, as it is written: what is held, for people and for the next leader.

    `accepted` is the condition of that type without its time, which stays while it does.
    """
    devices = render_held(held)
    return {
        "phase": phase,
        "for": describe_holder(reservation.holder),
        "count": len(devices),
        "nodes": ",".join(sorted({str(entry["node"]) for entry in devices})),
        "devices": devices,
        "message": message,
        "conditions": [accepted],
    }


def render_accepted(reservation: Reservation, fault: str, reason: str, now: str) -> dict[str, str]:
    """The condition Accepted; its time stays as long as its status does."""
    status = "False" if fault else "True"
    current = (
        result
        for _, result in fields.objects(reservation.status, "conditions", "status")
        if result.get("type") == ACCEPTED and result.get("status") == status
    )
    since = next((fields.text(result, "lastTransitionTime") for result in current), now)
    return {
        "type": ACCEPTED,
        "status": status,
        "reason": reason if fault else ACCEPTED,
        "message": fault or "what is asked can be had",
        "lastTransitionTime": since,
    }


def is_same_status(previous: fields.Raw, body: fields.Raw) -> bool:
    """Return whether a status already says that."""
    return all((previous.get(key) or None) == (value or None) for key, value in body.items())


def describe_holder(holder: api.Holder) -> str:
    """`gang nightly-train`, `pod worker-0`."""
    if holder.labels is not None:
        return ",".join(f"{key}={value}" for key, value in sorted(holder.labels.items()))
    named = (("gang", holder.gang), ("pod", holder.pod), ("claim", holder.claim))
    result = (f"{kind} {name}" for kind, name in (*named, ("queue", holder.queue)) if name)
    return next(result, "")
