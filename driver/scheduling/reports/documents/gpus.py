"""GPUs and nodes as documents, with their claims. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from driver import clock, ids, names, reasons
from driver.resources.core import nodes
from driver.resources.dra import claims, device_status
from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import reservations, slots

_Mode = model.Mode | Literal["free", "kept"]


@dataclass(frozen=True, slots=True)
class _Share:
    """Amounts that a result has of a GPU: a share's consumption, else all of its slot."""

    memory: int
    compute: int
    shares: int


def node_document(cluster: read_model.ClusterModel, name: str) -> model.Node | None:
    """Return one node; None if it publishes no GPUs of ours or of managed drivers."""
    pool = cluster.pools.get(ids.NodeName(name))
    return (
        None
        if pool is None
        else cluster.cached(("node", name), lambda: _build_node(cluster, name, pool))
    )


def _build_node(
    cluster: read_model.ClusterModel, name: str, pool: slots.PublishedPool
) -> model.Node:
    kubernetes_node = cluster.objects.nodes.get(ids.Key(name))
    gpus = tuple(
        _build_gpu(cluster, name, index, shell, len(pool.gpus))
        for index, shell in enumerate(pool.gpus)
    )
    users = sorted({pod for gpu in gpus for part in gpu.parts for pod in part.pods})
    return model.Node(
        name=name,
        ready=kubernetes_node is not None and kubernetes_node.ready,
        cordoned=kubernetes_node is not None and kubernetes_node.cordoned,
        problem=_problem(kubernetes_node),
        complete=pool.complete,
        taints=tuple(
            model.Taint(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in (kubernetes_node.taints if kubernetes_node else ())
        ),
        allocators=tuple(sorted({taint.allocator for taint in gpus})),
        products=tuple(sorted({taint.product for taint in gpus})),
        memory=sum(taint.memory for taint in gpus),
        memory_allocated=sum(taint.memory_allocated for taint in gpus),
        gpus=gpus,
        pods=tuple(users),
    )


def gpu_document(cluster: read_model.ClusterModel, node_name: str, name: str) -> model.Gpu | None:
    """Return one GPU, by name, UUID or PCI address; None if the node has none such."""
    parent = node_document(cluster, node_name)
    if parent is None:
        return None
    return next(
        (
            document
            for document in parent.gpus
            if name in {document.name, document.uuid, document.pci}
        ),
        None,
    )


def _problem(kubernetes_node: nodes.Node | None) -> str:
    if kubernetes_node is None:
        return "there is no such Node any more"
    if not kubernetes_node.ready:
        return "the node is not ready"
    return "the node is cordoned" if kubernetes_node.cordoned else ""


def _build_gpu(
    cluster: read_model.ClusterModel,
    node_name: str,
    index: int,
    shell: slots.PublishedGpu,
    total: int,
) -> model.Gpu:
    key = node_name, shell.name
    parts = _lay_out([*_parts(cluster, shell, cluster.taken_devices.get(key, ()))])
    exclusive = [
        document for document in parts if not document.admin and document.mode != "monitor"
    ]
    reserved = tuple(_kept(cluster, shell, key))
    mode: _Mode = exclusive[0].mode if exclusive else "kept" if reserved else "free"
    return model.Gpu(
        node=node_name,
        name=shell.name,
        uuid=shell.uuid,
        product=shell.product,
        index=index,
        pci=shell.pci,
        pcie_root=shell.pcie_root,
        numa=shell.numa,
        memory=shell.memory,
        memory_slices=shell.memory_slices,
        mode=mode,
        allocator="controller" if shell.allocator == "controller" else "scheduler",
        offers=shell.modes,
        health=shell.health,
        taints=shell.taints,
        memory_allocated=sum(document.memory for document in exclusive),
        compute_allocated=sum(document.compute for document in exclusive),
        nvlink=tuple(bit for bit in range(total) if shell.peers >> bit & 1),
        parts=tuple(parts),
        kept=reserved,
    )


def _parts(
    cluster: read_model.ClusterModel,
    shell: slots.PublishedGpu,
    taken: Sequence[read_model.TakenDevice],
) -> Iterator[model.Part]:
    for taken_device in taken:
        slot = shell.slots.get(taken_device.result.device.device)
        if slot is not None:
            yield part_document(cluster, taken_device, slot)


def part_document(
    cluster: read_model.ClusterModel, taken_device: read_model.TakenDevice, slot: slots.Slot
) -> model.Part:
    """Return what a result has of its GPU; shares are not laid out yet."""
    claim, result, share = (
        taken_device.claim,
        taken_device.result,
        _share(taken_device.result, slot),
    )
    users = cluster.claim_users(claim)
    device_status = _device_status(claim, result)
    ready, problem = _readiness(device_status)
    wide = slot.width
    if slot.mode in {"mps", "time-slicing"} and slot.memory:
        wide = round(share.memory * model.WHOLE_BAR / slot.memory)
    return model.Part(
        claim=claim.key,
        claim_name=claim.pod_claim or claim.name,
        request=result.request,
        device=result.device.device,
        share_id=result.share_id,
        mode=slot.mode,
        start=slot.start,
        width=wide,
        memory=share.memory,
        compute=share.compute,
        shares=share.shares,
        profile=slot.profile,
        pods=tuple(pod.key for pod in users),
        queue=cluster.pod_queue(users[0]) if users else "",
        since=claim.allocation.stamped if claim.allocation else "",
        ready=ready,
        problem=problem,
        admin=result.admin_access,
        use=use_document(device_status),
    )


def _share(result: claims.Result, slot: slots.Slot) -> _Share:
    took = result.consumed
    if not took:
        return _Share(slot.memory, slot.compute, 0)
    memory, compute = took.get(names.CAP_MEMORY), took.get(names.CAP_COMPUTE)
    shares = took.get(names.CAP_SHARES)
    return _Share(
        memory.units if memory else 0,
        compute.units if compute else 0,
        shares.units if shares else 0,
    )


def _device_status(claim: claims.Claim, result: claims.Result) -> device_status.DeviceStatus | None:
    device = device_status.Device(*result.device, result.share_id)
    return next((entry for entry in claim.device_statuses if entry.device == device), None)


def _readiness(reported: device_status.DeviceStatus | None) -> tuple[bool | None, str]:
    """Return whether the plugin has prepared it, and if not, why."""
    ready = reported.condition(names.CONDITION_READY) if reported else None
    if ready is None:
        return None, ""
    if ready.status == "True":
        within = reported.condition(names.CONDITION_WITHIN_SHARE) if reported else None
        over = within is not None and within.status == "False"
        return True, _reason_text(within) if within and over else ""
    return False, _reason_text(ready)


def _reason_text(condition: device_status.Condition) -> str:
    return f"{reasons.current_name(condition.reason)}: {condition.message}"


def use_document(reported: device_status.DeviceStatus | None) -> model.Use | None:
    """Return the reported activity of a device."""
    activity = reported.activity if reported else None
    if activity is None:
        return None
    return model.Use(
        last_busy=activity.last_busy,
        idle_since=activity.idle_since,
        utilization=activity.utilization,
        peak_memory=activity.peak_bytes,
    )


def _lay_out(documents: list[model.Part]) -> list[model.Part]:
    """Lay shares out side by side; if they exceed the GPU, each gets less of the bar."""
    shared = [document for document in documents if document.mode in {"mps", "time-slicing"}]
    most = max(sum(document.width for document in shared), model.WHOLE_BAR)
    laid_out, position = [], 0
    for document in documents:
        if document.mode not in {"mps", "time-slicing"}:
            laid_out.append(document)
            continue
        width = document.width * model.WHOLE_BAR // most
        laid_out.append(document.model_copy(update={"start": position, "width": width}))
        position += width
    return laid_out


def _kept(
    cluster: read_model.ClusterModel, shell: slots.PublishedGpu, key: tuple[str, str]
) -> Iterator[model.Kept]:
    """Yield entries of Reservations, then of backfill."""
    for promised in cluster.reserved_devices.get(key, ()):
        slot = shell.slots.get(promised.held.device.device)
        if slot is not None:
            yield model.Kept(
                reservation=promised.reservation.key,
                holder=reservations.holder_text(promised.reservation.holder),
                device=slot.device,
                mode=slot.mode,
                start=slot.start,
                width=slot.width,
            )
    plan = cluster.objects.plan
    for held in cluster.planned.get(key, ()):
        slot = shell.slots.get(held.device.device)
        if slot is not None and plan is not None:
            yield model.Kept(
                holder=f"{plan.kind} {plan.key}",
                since=clock.rfc3339(plan.since),
                until=plan.end,
                why=plan.reason.value,
                device=slot.device,
                mode=slot.mode,
                start=slot.start,
                width=slot.width,
            )
