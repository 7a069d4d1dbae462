"""Grants and configuration to a plan. Pure: values in, values out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from driver import ids
from driver.api import v1alpha1
from driver.kubeletplugin import steps
from driver.kubeletplugin.sharing import exclusive


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a claim needs on this node: hardware steps in order, devices with their edits."""

    devices: tuple[steps.PlannedDevice, ...]
    steps: tuple[steps.Step, ...]

    @property
    def gpus(self) -> tuple[ids.GpuUuid, ...]:
        """The GPUs it touches, each once, in the order in which they are locked."""
        return gpus_of(self.devices)


@dataclass(frozen=True, slots=True)
class Overlap:
    """`gpu` is held already: by claim `holder`, on the node's records."""

    gpu: ids.GpuUuid
    holder: str


def make_plan(
    uid: ids.ClaimUid, kind: str, granted: Sequence[tuple[steps.Grant, v1alpha1.Config]]
) -> Plan:
    """The plan for a claim's grants, each with its configuration; `kind` is the CDI kind."""
    parts = [_part(grant, config, cdi_id(kind, uid, grant.device)) for grant, config in granted]
    return Plan(
        devices=tuple(part.device for part in parts),
        steps=tuple(step for part in parts for step in part.steps),
    )


def cdi_id(kind: str, uid: ids.ClaimUid, device: ids.DeviceName) -> str:
    """`<vendor>/<class>=<claim uid>-<device>`: never the same for two claims."""
    return f"{kind}={uid}-{device}"


def gpus_of(devices: Iterable[steps.PlannedDevice]) -> tuple[ids.GpuUuid, ...]:
    """The GPUs of devices, each once, sorted."""
    return tuple(sorted({device.gpu for device in devices}))


def overlap(
    plan: Plan, own: str, others: Iterable[tuple[str, Sequence[steps.PlannedDevice]]]
) -> Overlap | None:
    """The first GPU of the plan that another claim, or the claim `own` itself, holds already.

    Counted in hardware, by GPU UUID; administrative access neither takes a GPU nor is refused one.
    """
    holders = {
        device.gpu: claim for claim, devices in others for device in devices if _takes(device)
    }
    for device in plan.devices:
        if not _takes(device):
            continue
        if device.gpu in holders:
            return Overlap(device.gpu, holders[device.gpu])
        holders[device.gpu] = own
    return None


def _takes(device: steps.PlannedDevice) -> bool:
    return not device.admin_access


def _part(grant: steps.Grant, config: v1alpha1.Config, cdi: str) -> steps.Part:
    match config:
        case v1alpha1.GpuConfig():
            return exclusive.part(grant, cdi)
        case _:
            assert_never(config)
