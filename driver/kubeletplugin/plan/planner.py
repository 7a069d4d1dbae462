"""Grants and configuration to a plan. Pure: values in, values out."""

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
    """Everything a claim needs on this node: hardware steps in order, devices with their edits.

    `pod_claim` is the pod's own name for a claim made of a template: its containers know it so.
    """

    devices: tuple[steps.PlannedDevice, ...]
    steps: tuple[steps.Step, ...]
    pod_claim: str = ""

    @property
    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """The GPUs it touches, each once, in the order in which they are locked."""
        return device_gpus(self.devices)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What `holders` have already on the node's records: `gpu`, a part of it, or all its shares.

    With a `conflict`, both are to share the GPU, and cannot agree on how; with `crowd` words, they
    can, but there is not enough of it.
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
    """The plan for a claim's grants, each with its configuration; `kind` is the CDI kind.

    `on_for_us` are the GPUs on which MIG is on because of other claims of this node.
    Raises BadInput for what `configuring` refuses.
    """
    named = _cdi_ids(kind, uid, [grant.face.name for grant, _ in granted])
    parts = [
        _plan_grant(uid, grant, config, name, on_for_us)
        for (grant, config), name in zip(granted, named, strict=True)
    ]
    made = claim_mps.add_daemon(parts, granted, uid)
    return Plan(
        devices=tuple(part.device for part in made),
        steps=tuple(step for part in made for step in part.steps),
    )


def cdi_id(kind: str, uid: ids.ClaimUid, device: ids.DeviceName) -> str:
    """`<vendor>/<class>=<claim uid>-<device>`: never the same for two claims."""
    return f"{kind}={uid}-{device}"


def _cdi_ids(kind: str, uid: ids.ClaimUid, devices: Iterable[ids.DeviceName]) -> Iterator[str]:
    """A name for each grant: two shares of one GPU are two, each with limits of its own."""
    given: Counter[ids.DeviceName] = Counter()
    for device in devices:
        again = f"-{given[device]}" if given[device] else ""
        yield f"{cdi_id(kind, uid, device)}{again}"
        given[device] += 1


def device_gpus(devices: Iterable[steps.PlannedDevice]) -> tuple[ids.GpuUuid, ...]:
    """The GPUs of devices, each once, sorted."""
    return tuple(sorted({device.gpu for device in devices}))


def multi_user_gpus(held: Iterable[steps.PlannedDevice]) -> dict[ids.GpuUuid, bool]:
    """Whether the server serves several users, for each GPU that is shared by MPS already."""
    by_mps = (
        (device.gpu, device.terms) for device in held if device.terms and _is_exclusive_use(device)
    )
    return {gpu: had.multi_user for gpu, had in by_mps if had.sharing == names.SHARING_MPS}


def find_overlap(
    plan: Plan, own: str, others: Iterable[tuple[str, Sequence[steps.PlannedDevice]]]
) -> Overlap | None:
    """The first device of the plan that another claim, or the claim `own` itself, holds already.

    Counted in hardware, by GPU and by memory slices of it, and shares by what they have of it:
    one is left behind by a pod that was force-deleted, and the API counts it no more.
    Administrative access neither takes anything nor is refused it.
    """
    held = [
        (device, claim)
        for claim, devices in others
        for device in devices
        if _is_exclusive_use(device)
    ]
    for device in plan.devices:
        if not _is_exclusive_use(device):
            continue
        met = ((other, holder) for other, holder in held if _is_conflicting(device, other))
        for other, holder in met:
            return Overlap(device.gpu, (holder,), _placement(device), _conflict(device, other))
        held.append((device, own))
    shared = sorted({one.gpu for one in plan.devices if one.terms and _is_exclusive_use(one)})
    return next(filter(None, (_find_excess(gpu, own, held) for gpu in shared)), None)


def _find_excess(
    gpu: ids.GpuUuid, own: str, held: Iterable[tuple[steps.PlannedDevice, str]]
) -> Overlap | None:
    """Whether the shares of a GPU have more of it together than there is."""
    on_it = [(one, claim) for one, claim in held if one.gpu == gpu]
    given = [one.terms for one, _ in on_it if one.terms]
    compute = sum(one.compute_percent for one in given)
    memory, room = sum(one.memory_bytes for one in given), max(one.shared_bytes for one, _ in on_it)
    if compute <= faces.FULL_COMPUTE_PERCENT and (memory <= room or not room):
        return None
    words = f"{compute} percent of its compute and {memory} of {room} bytes of its memory"
    others = tuple(sorted({claim for _, claim in on_it} - {own}))
    return Overlap(gpu, others or (own,), excess=words)


def _is_exclusive_use(device: steps.PlannedDevice) -> bool:
    return not device.admin_access


def _share_hardware(one: steps.PlannedDevice, other: steps.PlannedDevice) -> bool:
    if one.gpu != other.gpu:
        return False
    here, there = _placement(one), _placement(other)
    return here is None or there is None or here.overlaps(there)


def _is_conflicting(one: steps.PlannedDevice, other: steps.PlannedDevice) -> bool:
    """Whether both are of the same hardware, and not on terms that let them have it together."""
    shared = one.terms is not None and other.terms is not None
    return _share_hardware(one, other) and (not shared or _conflict(one, other) is not None)


def _conflict(
    one: steps.PlannedDevice, other: steps.PlannedDevice
) -> compatibility.Conflict | None:
    if one.terms is None or other.terms is None:
        return None
    return compatibility.conflict(one.terms, other.terms)


def _placement(device: steps.PlannedDevice) -> partition.Placement | None:
    """The part of the GPU that it is; None: all of it."""
    return device.edits.instance.placement if device.edits.instance else None


def _plan_grant(
    uid: ids.ClaimUid,
    grant: steps.Grant,
    config: v1alpha1.Config,
    cdi: str,
    on_for_us: frozenset[ids.GpuUuid],
) -> steps.GrantPlan:
    match grant.face:
        case faces.WholeFace() | faces.MonitorFace() as face:
            return time_slicing.with_time_slicing(
                exclusive.plan_whole(grant, face, cdi), uid, config
            )
        case faces.MigFace() as face:
            return mig.plan_instance(grant, face, cdi, on_for_us=face.gpu.uuid in on_for_us)
        case faces.ShareFace(sharing=faces.Sharing.TIME_SLICING) as face:
            return time_slicing.plan_share(grant, face, cdi, uid)
        case faces.ShareFace() as face:
            return mps.plan_share(grant, face, cdi, uid, config)
        case _:
            assert_never(grant.face)
