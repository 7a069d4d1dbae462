"""GPUs and nodes as documents: who has what of each. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from driver import clock, ids, names
from driver.resources.core import nodes
from driver.resources.dra import claims, device_status
from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import reservations, slots

_Mode = model.Mode | Literal["free", "kept"]


@dataclass(frozen=True, slots=True)
class _Share:
    """What a result has of a GPU: of a share what it consumes, else all of its slot."""

    memory: int
    compute: int
    shares: int


def node(found: read_model.Seen, name: str) -> model.Node | None:
    """One node; None where nobody publishes GPUs of ours under that name."""
    pool = found.pools.get(ids.NodeName(name))
    return None if pool is None else found.once(("node", name), lambda: _node(found, name, pool))


def _node(found: read_model.Seen, name: str, pool: slots.Pool) -> model.Node:
    there = found.objects.nodes.get(ids.Key(name))
    gpus = tuple(
        _gpu(found, name, index, shell, len(pool.gpus)) for index, shell in enumerate(pool.gpus)
    )
    users = sorted({pod for gpu in gpus for part in gpu.parts for pod in part.pods})
    return model.Node(
        name=name,
        ready=there is not None and there.ready,
        cordoned=there is not None and there.cordoned,
        problem=_problem(there),
        complete=pool.complete,
        taints=tuple(
            model.Taint(key=one.key, value=one.value, effect=one.effect)
            for one in (there.taints if there else ())
        ),
        allocators=tuple(sorted({one.allocator for one in gpus})),
        products=tuple(sorted({one.product for one in gpus})),
        memory=sum(one.memory for one in gpus),
        memory_allocated=sum(one.memory_allocated for one in gpus),
        gpus=gpus,
        pods=tuple(users),
    )


def gpu(found: read_model.Seen, node_name: str, name: str) -> model.Gpu | None:
    """One GPU, by name, UUID or PCI address; None where the node has none such."""
    there = node(found, node_name)
    if there is None:
        return None
    return next((one for one in there.gpus if name in {one.name, one.uuid, one.pci}), None)


def _problem(there: nodes.Node | None) -> str:
    if there is None:
        return "there is no such Node any more"
    if not there.ready:
        return "the node is not ready"
    return "the node is cordoned" if there.cordoned else ""


def _gpu(
    found: read_model.Seen, node_name: str, index: int, shell: slots.Shell, total: int
) -> model.Gpu:
    key = node_name, shell.name
    parts = _laid([*_parts(found, shell, found.taken.get(key, ()))])
    given = [one for one in parts if not one.admin and one.mode != "monitor"]
    kept = tuple(_kept(found, shell, key))
    mode: _Mode = given[0].mode if given else "kept" if kept else "free"
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
        offers=shell.offers,
        health=shell.health,
        taints=shell.taints,
        memory_allocated=sum(one.memory for one in given),
        compute_allocated=sum(one.compute for one in given),
        nvlink=tuple(bit for bit in range(total) if shell.peers >> bit & 1),
        parts=tuple(parts),
        kept=kept,
    )


def _parts(
    found: read_model.Seen, shell: slots.Shell, taken: Sequence[read_model.Taken]
) -> Iterator[model.Part]:
    for one in taken:
        slot = shell.slots.get(one.result.device.device)
        if slot is not None:
            yield part(found, one, slot)


def part(found: read_model.Seen, one: read_model.Taken, slot: slots.Slot) -> model.Part:
    """What a result has of its GPU; a share is not laid beside the others yet."""
    claim, result, share = one.claim, one.result, _share(one.result, slot)
    users = found.pods_of(claim)
    said = _said(claim, result)
    ready, problem = _readiness(said)
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
        queue=found.queue_of(users[0]) if users else "",
        since=claim.allocation.stamped if claim.allocation else "",
        ready=ready,
        problem=problem,
        admin=result.admin_access,
        use=use(said),
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


def _said(claim: claims.Claim, result: claims.Result) -> device_status.DeviceStatus | None:
    of = device_status.Device(*result.device, result.share_id)
    return next((one for one in claim.device_statuses if one.device == of), None)


def _readiness(said: device_status.DeviceStatus | None) -> tuple[bool | None, str]:
    """Whether the plugin has prepared it, and if not, why."""
    ready = said.condition(names.CONDITION_READY) if said else None
    if ready is None:
        return None, ""
    if ready.status == "True":
        within = said.condition(names.CONDITION_WITHIN_SHARE) if said else None
        over = within is not None and within.status == "False"
        return True, f"{within.reason}: {within.message}" if within and over else ""
    return False, f"{ready.reason}: {ready.message}"


def use(said: device_status.DeviceStatus | None) -> model.Use | None:
    """What the plugin says a device does."""
    told = said.activity if said else None
    if told is None:
        return None
    return model.Use(
        last_busy=told.last_busy,
        idle_since=told.idle_since,
        utilization=told.utilization,
        peak_memory=told.peak_bytes,
    )


def _laid(found: list[model.Part]) -> list[model.Part]:
    """Shares side by side; where they are more than the GPU, each gets less of the bar."""
    shared = [one for one in found if one.mode in {"mps", "time-slicing"}]
    most = max(sum(one.width for one in shared), model.WHOLE_BAR)
    made, at = [], 0
    for one in found:
        if one.mode not in {"mps", "time-slicing"}:
            made.append(one)
            continue
        width = one.width * model.WHOLE_BAR // most
        made.append(one.model_copy(update={"start": at, "width": width}))
        at += width
    return made


def _kept(
    cluster: read_model.Seen, shell: slots.Shell, key: tuple[str, str]
) -> Iterator[model.Kept]:
    """List entries of Reservations, then of backfill."""
    for promised in cluster.promised.get(key, ()):
        slot = shell.slots.get(promised.held.device.device)
        if slot is not None:
            yield model.Kept(
                reservation=promised.reservation.key,
                holder=reservations.holder(promised.reservation.holder),
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
