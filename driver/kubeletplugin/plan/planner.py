"""Turns grants and configuration into a plan. Pure: values in, values out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from driver import ids, names
from driver.api import v1alpha1
from driver.devices import faces
from driver.devices import mig as partition
from driver.kubeletplugin.plan import claim_mps, exclusive, mig, mps, steps, time_slicing
from driver.resources.sharing import compatibility


@dataclass(frozen=True, slots=True)
class Plan:
    """A claim's plan on this node: hardware steps in order, devices with their edits.

    `pod_claim` is the pod's own name for a claim made from a template, used by its containers.
    """

    devices: tuple[steps.PlannedDevice, ...]
    steps: tuple[steps.Step, ...]
    pod_claim: str = ""

    @property
    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the GPUs it uses, each once, in locking order."""
        return device_gpus(self.devices)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Hardware already held by `holders` in the node's records: `gpu`, or its `placement`.

    With a `conflict`, both share the GPU and disagree on its settings; `excess` tells how much more
    than the GPU has would be given out.
    """

    gpu: ids.GpuUuid
    holders: tuple[str, ...]
    placement: partition.Placement | None = None
    conflict: compatibility.Conflict | None = None
    excess: str = ""

    def __str__(self) -> str:
        if self.placement is None:
            return self.gpu
        last = self.placement.start + self.placement.size - 1
        return f"a part of memory slices {self.placement.start} to {last} of {self.gpu}"


def make_plan(
    uid: ids.ClaimUid,
    kind: str,
    granted: Sequence[tuple[steps.Grant, v1alpha1.Config]],
    on_for_us: frozenset[ids.GpuUuid] = frozenset(),
) -> Plan:
    """Return the plan for a claim's grants with their configuration; `kind` is the CDI kind.

    `on_for_us` are the GPUs with MIG on because of other claims of this node. Raises BadInput for
    what `plan.config` refuses.
    """
    cdi_names = _cdi_ids(kind, uid, [grant.face.name for grant, _ in granted])
    parts = [
        _plan_grant(uid, grant, config, name, on_for_us)
        for (grant, config), name in zip(granted, cdi_names, strict=True)
    ]
    plans = claim_mps.add_daemon(parts, granted, uid)
    return Plan(
        devices=tuple(part.device for part in plans),
        steps=tuple(step for part in plans for step in part.steps),
    )


def cdi_id(kind: str, uid: ids.ClaimUid, device: ids.DeviceName) -> str:
    """Return `<vendor>/<class>=<claim uid>-<device>`, unique per claim."""
    return f"{kind}={uid}-{device}"


def _cdi_ids(kind: str, uid: ids.ClaimUid, devices: Iterable[ids.DeviceName]) -> Iterator[str]:
    """Yield a name for each grant: two shares of one GPU are two, with separate limits."""
    counts: Counter[ids.DeviceName] = Counter()
    for device in devices:
        suffix = f"-{counts[device]}" if counts[device] else ""
        yield f"{cdi_id(kind, uid, device)}{suffix}"
        counts[device] += 1


def device_gpus(devices: Iterable[steps.PlannedDevice]) -> tuple[ids.GpuUuid, ...]:
    """Return the GPUs of devices, each once, sorted."""
    return tuple(sorted({device.gpu for device in devices}))


def multi_user_gpus(held: Iterable[steps.PlannedDevice]) -> dict[ids.GpuUuid, bool]:
    """Return whether the server is multi-user, for each GPU already shared by MPS."""
    shared = (
        (device.gpu, device.terms) for device in held if device.terms and _is_exclusive_use(device)
    )
    return {gpu: terms.multi_user for gpu, terms in shared if terms.sharing == names.SHARING_MPS}


def find_overlap(
    plan: Plan, claim_uid: str, other_claims: Iterable[tuple[str, Sequence[steps.PlannedDevice]]]
) -> Overlap | None:
    """Return the first device of the plan that another claim, or the claim itself, already holds.

    Counted in hardware, by GPU and memory slices, and shares by their amounts: a force-deleted pod
    may still hold a device that the API no longer counts. Admin access neither takes nor is refused
    anything.
    """
    held = [
        (device, claim)
        for claim, devices in other_claims
        for device in devices
        if _is_exclusive_use(device)
    ]
    for device in plan.devices:
        if not _is_exclusive_use(device):
            continue
        conflicts = ((other, holder) for other, holder in held if _is_conflicting(device, other))
        for other, holder in conflicts:
            return Overlap(device.gpu, (holder,), _placement(device), _conflict(device, other))
        held.append((device, claim_uid))
    shared = sorted(
        {planned.gpu for planned in plan.devices if planned.terms and _is_exclusive_use(planned)}
    )
    return next(filter(None, (_find_excess(gpu, claim_uid, held) for gpu in shared)), None)


def _find_excess(
    gpu: ids.GpuUuid, claim_uid: str, held: Iterable[tuple[steps.PlannedDevice, str]]
) -> Overlap | None:
    """Return the overlap if a GPU's shares together exceed the GPU."""
    on_gpu = [(device, claim) for device, claim in held if device.gpu == gpu]
    terms = [device.terms for device, _ in on_gpu if device.terms]
    compute = sum(device.compute_percent for device in terms)
    memory, total = (
        sum(device.memory_bytes for device in terms),
        max(device.shared_bytes for device, _ in on_gpu),
    )
    if compute <= faces.FULL_COMPUTE_PERCENT and (memory <= total or not total):
        return None
    text = f"{compute} percent of its compute and {memory} of {total} bytes of its memory"
    other_claims = tuple(sorted({claim for _, claim in on_gpu} - {claim_uid}))
    return Overlap(gpu, other_claims or (claim_uid,), excess=text)


def _is_exclusive_use(device: steps.PlannedDevice) -> bool:
    return not device.admin_access


def _share_hardware(first: steps.PlannedDevice, second: steps.PlannedDevice) -> bool:
    if first.gpu != second.gpu:
        return False
    first_placement, second_placement = _placement(first), _placement(second)
    return (
        first_placement is None
        or second_placement is None
        or first_placement.overlaps(second_placement)
    )


def _is_conflicting(first: steps.PlannedDevice, second: steps.PlannedDevice) -> bool:
    """Return whether both use the same hardware on terms that cannot be shared."""
    shared = first.terms is not None and second.terms is not None
    return _share_hardware(first, second) and (not shared or _conflict(first, second) is not None)


def _conflict(
    first: steps.PlannedDevice, second: steps.PlannedDevice
) -> compatibility.Conflict | None:
    if first.terms is None or second.terms is None:
        return None
    return compatibility.find_conflict(first.terms, second.terms)


def _placement(device: steps.PlannedDevice) -> partition.Placement | None:
    """Return the part of the GPU; None for all of it."""
    return device.edits.instance.placement if device.edits.instance else None


def _plan_grant(
    uid: ids.ClaimUid,
    grant: steps.Grant,
    config: v1alpha1.Config,
    cdi_id: str,
    on_for_us: frozenset[ids.GpuUuid],
) -> steps.GrantPlan:
    match grant.face:
        case faces.WholeFace() | faces.MonitorFace() as face:
            return time_slicing.with_time_slicing(
                exclusive.plan_whole(grant, face, cdi_id), uid, config
            )
        case faces.MigFace() as face:
            return mig.plan_instance(grant, face, cdi_id, on_for_us=face.gpu.uuid in on_for_us)
        case faces.ShareFace(sharing=faces.Sharing.TIME_SLICING) as face:
            return time_slicing.plan_share(grant, face, cdi_id, uid)
        case faces.ShareFace() as face:
            return mps.plan_share(grant, face, cdi_id, uid, config)
        case _:
            assert_never(grant.face)
