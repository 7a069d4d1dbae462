"""Claims as documents: what each asks, has, and lacks. Pure."""

from collections.abc import Iterator
from typing import Literal

from driver import ids, names
from driver.resources.dra import claims
from driver.resources.dra import requests as dra_requests
from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import gpus, slots

_State = Literal["pending", "allocated", "reserved", "deleting"]
_CONDITIONS = (names.CONDITION_STALLED, names.CONDITION_READY, names.CONDITION_WITHIN_SHARE)


def every(found: read_model.Seen, namespace: str = "") -> Iterator[ids.Key]:
    """The keys of claims that concern us, in order; of one namespace, or of all."""
    for key, claim in sorted(found.objects.claims.items()):
        if namespace in {"", claim.namespace} and found.asks_ours(claim):
            yield key


def claim(found: read_model.Seen, key: str) -> model.Claim | None:
    """One claim, whosever it is; None where there is none."""
    one = found.objects.claims.get(ids.Key(key))
    if one is None:
        return None
    users = found.pods_of(one)
    held = tuple(_held(found, one))
    reason, message = _word(one)
    if not reason and one.allocation is None:
        reason, message = _of_pods(found, one)
    return model.Claim(
        namespace=one.namespace,
        name=one.name,
        uid=one.uid,
        state=_state(one),
        requests=tuple(_request(ask) for ask in one.spec.requests),
        devices=held,
        node=next((device.node for device in held if device.node), ""),
        pods=tuple(pod.key for pod in users),
        queue=found.queue_of(users[0]) if users else "",
        since=one.allocation.stamped if one.allocation else "",
        holds=any(entry.is_hold for entry in one.consumers),
        reason=reason,
        message=message,
        conditions=tuple(_conditions(one)),
    )


def _state(one: claims.Claim) -> _State:
    if one.deleting:
        return "deleting"
    if one.allocation is None:
        return "pending"
    return "reserved" if any(entry.is_pod for entry in one.consumers) else "allocated"


def _held(found: read_model.Seen, one: claims.Claim) -> Iterator[model.Held]:
    """What it has, each of ours as it lies on its GPU."""
    for result in one.allocation.results if one.allocation else ():
        driver, pool, device = result.device
        ours = driver == found.objects.driver
        there = gpus.gpu(found, pool, slots.gpu_of(device)) if ours else None
        mine = next(
            (
                part
                for part in (there.parts if there else ())
                if (part.claim, part.device, part.share_id) == (one.key, device, result.share_id)
            ),
            None,
        )
        yield model.Held(
            driver=driver,
            pool=pool,
            device=device,
            node=there.node if there else (pool if ours else ""),
            gpu=there.name if there else "",
            part=mine,
        )


def _word(one: claims.Claim) -> tuple[str, str]:
    """What is wrong with it by its drivers' conditions, the gravest first."""
    for kind in _CONDITIONS:
        for said in one.device_statuses:
            found = said.condition(kind)
            bad = "True" if kind == names.CONDITION_STALLED else "False"
            if found is not None and found.status == bad:
                return found.reason, found.message
    return "", ""


def _of_pods(found: read_model.Seen, one: claims.Claim) -> tuple[str, str]:
    """What the controller says of a pod that waits for it."""
    for pod in found.naming.get(one.key, ()):
        if pod.pending is not None:
            return pod.pending.reason, pod.pending.message
    return "", ""


def _conditions(one: claims.Claim) -> Iterator[model.Condition]:
    for said in one.device_statuses:
        for condition in said.conditions:
            yield model.Condition(
                device=said.device.device,
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                since=condition.since,
            )


def _request(ask: dra_requests.Request) -> model.Request:
    ways = [_way(one) for one in ask.alternatives_or_self]
    return model.Request(name=ask.name, text=", else ".join(ways))


def _way(one: dra_requests.Request) -> str:
    """`2 of gpu.ration.dev`, `gpu-mps.ration.dev memory 20Gi`."""
    many = "all of " if one.all_devices else f"{one.count} of " if one.count > 1 else ""
    amounts = ", ".join(f"{name} {amount.text}" for name, amount in sorted(one.minimums.items()))
    admin = "admin access" if one.admin_access else ""
    told = [part for part in (amounts, admin) if part]
    return f"{many}{one.device_class}" + (f" ({', '.join(told)})" if told else "")
