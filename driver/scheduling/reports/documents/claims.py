"""Claims as documents: requests, devices, and problems. Pure."""

from collections.abc import Iterator
from typing import Literal

from driver import ids, names, reasons
from driver.resources.dra import claims
from driver.resources.dra import requests as dra_requests
from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import gpus
from driver.scheduling.snapshot import allocation_hold

_State = Literal["pending", "allocated", "reserved", "deleting"]
_CONDITIONS = (names.CONDITION_STALLED, names.CONDITION_READY, names.CONDITION_WITHIN_SHARE)


def claim_keys(cluster: read_model.ClusterModel, namespace: str = "") -> Iterator[ids.Key]:
    """Yield the keys of claims of our devices, in order; of one namespace, or of all."""
    for key, claim in sorted(cluster.objects.claims.items()):
        if namespace in {"", claim.namespace} and cluster.requests_managed(claim):
            yield key


def claim_document(cluster: read_model.ClusterModel, key: str) -> model.Claim | None:
    """Return one claim, of any driver; None if it does not exist."""
    resource_claim = cluster.objects.claims.get(ids.Key(key))
    if resource_claim is None:
        return None
    users = cluster.claim_users(resource_claim)
    devices = tuple(_devices(cluster, resource_claim))
    reason, message = _problem(resource_claim)
    if not reason and resource_claim.allocation is None:
        reason, message = _pod_problem(cluster, resource_claim)
    return model.Claim(
        namespace=resource_claim.namespace,
        name=resource_claim.name,
        uid=resource_claim.uid,
        state=_state(resource_claim),
        requests=tuple(_request(request) for request in resource_claim.spec.requests),
        devices=devices,
        node=next((device.node for device in devices if device.node), ""),
        pods=tuple(pod.key for pod in users),
        queue=cluster.pod_queue(users[0]) if users else "",
        since=resource_claim.allocation.stamped if resource_claim.allocation else "",
        holds=any(entry.is_hold for entry in resource_claim.consumers),
        reason=reason,
        message=message,
        conditions=tuple(_conditions(resource_claim)),
    )


def _state(resource_claim: claims.Claim) -> _State:
    if resource_claim.deleting:
        return "deleting"
    if resource_claim.allocation is None:
        return "pending"
    return "reserved" if allocation_hold.is_reserved(resource_claim) else "allocated"


def _devices(
    cluster: read_model.ClusterModel, resource_claim: claims.Claim
) -> Iterator[model.Held]:
    """Yield its devices, each with its place on the GPU if it is of one."""
    for result in resource_claim.allocation.results if resource_claim.allocation else ():
        driver, pool, device = result.device
        key = cluster.gpu_key(result.device)
        gpu = gpus.gpu_document(cluster, *key) if key else None
        part_of_claim = next(
            (
                part
                for part in (gpu.parts if gpu else ())
                if (part.claim, part.device, part.share_id)
                == (resource_claim.key, device, result.share_id)
            ),
            None,
        )
        yield model.Held(
            driver=driver,
            pool=pool,
            device=device,
            node=gpu.node if gpu else (key[0] if key else ""),
            gpu=gpu.name if gpu else "",
            part=part_of_claim,
        )


def _problem(resource_claim: claims.Claim) -> tuple[str, str]:
    """Return what is wrong with it by its drivers' conditions, the gravest first."""
    for kind in _CONDITIONS:
        for device_status in resource_claim.device_statuses:
            condition = device_status.condition(kind)
            bad = "True" if kind == names.CONDITION_STALLED else "False"
            if condition is not None and condition.status == bad:
                return reasons.current_name(condition.reason), condition.message
    return "", ""


def _pod_problem(cluster: read_model.ClusterModel, resource_claim: claims.Claim) -> tuple[str, str]:
    """Return what the controller reports on a pod that waits for it."""
    for pod in cluster.pods_by_claim.get(resource_claim.key, ()):
        if pod.pending is not None:
            return reasons.current_name(pod.pending.reason), pod.pending.message
    return "", ""


def _conditions(resource_claim: claims.Claim) -> Iterator[model.Condition]:
    for device_status in resource_claim.device_statuses:
        for condition in device_status.conditions:
            yield model.Condition(
                device=device_status.device.device,
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                since=condition.since,
            )


def _request(request: dra_requests.Request) -> model.Request:
    subrequests = [_request_text(subrequest) for subrequest in request.alternatives_or_self]
    return model.Request(name=request.name, text=", else ".join(subrequests))


def _request_text(request: dra_requests.Request) -> str:
    """`2 of gpu.ration.dev`, `gpu-mps.ration.dev memory 20Gi`."""
    many = "all of " if request.all_devices else f"{request.count} of " if request.count > 1 else ""
    amounts = ", ".join(
        f"{name} {amount.text}" for name, amount in sorted(request.minimums.items())
    )
    admin = "admin access" if request.admin_access else ""
    parts = [part for part in (amounts, admin) if part]
    return f"{many}{request.device_class}" + (f" ({', '.join(parts)})" if parts else "")
