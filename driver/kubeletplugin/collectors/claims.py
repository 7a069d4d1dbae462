"""What is said of each claim that is prepared on a node, device by device. Pure.

The labels are dcgm-exporter's, so that series of both are joined by them. There are as many series
as claims have devices, and `MOST` at most: a claim's end with its record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from driver import ids
from driver.kubeletplugin.collectors import device_usage, power
from driver.runtime.metrics.families import NO_LABELS, Family, Figures

MAX_DEVICES: Final = 512
"""Devices of claims with series; a GPU is in 48 shares at most, and a node has 16."""
LABELS: Final = (
    "dra_claim_namespace",
    "dra_claim_name",
    "dra_driver_name",
    "dra_pool_name",
    "dra_device_name",
    "dra_mig_profile",
    "dra_mig_device_uuid",
    "UUID",
)
INFO: Final = Family(
    "dra_gpu_claim_info",
    "1 for each device of a prepared claim; UUID is the GPU's.",
    (*LABELS, "mode"),
)
MEMORY: Final = Family(
    "dra_gpu_claim_memory_allocated_bytes", "Memory of the device that the claim was given.", LABELS
)
COMPUTE: Final = Family(
    "dra_gpu_claim_compute_allocated_ratio",
    "Compute that the claim was given, as a part of the GPU's.",
    LABELS,
)
PART: Final = Family(
    "dra_gpu_claim_allocated_ratio",
    "The part of the GPU that the claim was given: of memory or compute, whichever is more.",
    LABELS,
)
LIMIT: Final = Family(
    "dra_gpu_claim_memory_limit_bytes",
    "Memory that the claim's processes cannot exceed, by the GPU, MIG or MPS; time-slicing holds "
    "nobody to what was given, and has none.",
    LABELS,
)
USED: Final = Family(
    "dra_gpu_claim_memory_used_bytes",
    "Memory that the claim's processes use, as far as the GPU tells.",
    LABELS,
)
BUSY: Final = Family(
    "dra_gpu_claim_utilization_ratio",
    "The part of the GPU's multiprocessors that the claim's processes kept busy at the last look; "
    "none of MIG devices, of which NVML does not tell, and none while a process is nobody's.",
    LABELS,
)
POWER: Final = Family(
    "dra_gpu_claim_power_watts",
    "The GPU's power that is put down to the claim: all of a GPU that it has alone, else the "
    "claim's part of the utilization of all claims there, or while none works, of the compute "
    "that they were given. None where utilization is not known, as of MIG devices.",
    LABELS,
)
HELD: Final = Family("dra_gpu_plugin_claims", "Prepared claims, by mode.", ("mode",))
LEFT_OUT: Final = Family(
    "dra_gpu_plugin_claim_devices_left_out",
    f"Devices of claims without series of their own, because there are more than {MAX_DEVICES}.",
)
FAMILIES: Final = (INFO, MEMORY, COMPUTE, PART, LIMIT, USED, BUSY, POWER, HELD, LEFT_OUT)
UseKey = tuple[ids.ClaimUid, str]
"""A claim and a device by its name: of shares that a claim has of one it is not told which."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a look found of a device of a claim: `busy` 0 to 1, `used` in bytes; None: not known."""

    busy: float | None = None
    used: int | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """What the last look found: of devices of claims, and what GPUs draw, in watts."""

    devices: Mapping[UseKey, Reading] = field(default_factory=dict)
    watts: Mapping[ids.GpuUuid, float] = field(default_factory=dict)


def claim_figures(driver: str, given: Iterable[device_usage.DeviceUse], read: Readings) -> Figures:
    """The figures of every device; of shares that a claim has of one device, the sums."""
    devices = sorted(given, key=lambda one: (one.claim.namespace, one.claim.name, *one.key))
    watts = _attribute_power(devices, read)
    found: dict[str, dict[tuple[str, ...], float]] = {one.name: {} for one in FAMILIES}
    shown: set[tuple[str, ...]] = set()
    left_out = 0
    for one in devices:
        labels = _labels(driver, one)
        if labels not in shown and len(shown) >= MAX_DEVICES:
            left_out += 1
            continue
        shown.add(labels)
        found[INFO.name][*labels, one.mode] = 1
        for family, value in _allocation_values(one):
            if value is not None:
                found[family.name][labels] = found[family.name].get(labels, 0.0) + value
        for family, value in _reading_values(one, read, watts):
            if value is not None:
                found[family.name][labels] = value
    found[HELD.name] = {(mode,): _count_claims(devices, mode) for mode in device_usage.MODES}
    found[LEFT_OUT.name] = {NO_LABELS: left_out}
    return found


def _count_claims(devices: Iterable[device_usage.DeviceUse], mode: str) -> int:
    return len({one.claim.uid for one in devices if one.mode == mode})


def _labels(driver: str, one: device_usage.DeviceUse) -> tuple[str, ...]:
    of_claim = one.claim.namespace, one.claim.name
    return *of_claim, driver, one.pool, one.key.device, one.profile, one.mig_uuid, one.gpu


def _allocation_values(one: device_usage.DeviceUse) -> Iterable[tuple[Family, float | None]]:
    return (MEMORY, one.memory), (COMPUTE, one.compute), (PART, one.part), (LIMIT, one.limit)


def _reading_values(
    one: device_usage.DeviceUse, read: Readings, watts: Mapping[UseKey, float]
) -> Iterable[tuple[Family, float | None]]:
    seen = read.devices.get(_use_key(one), Reading())
    return (USED, seen.used), (BUSY, seen.busy), (POWER, watts.get(_use_key(one)))


def _attribute_power(
    devices: Iterable[device_usage.DeviceUse], read: Readings
) -> dict[UseKey, float]:
    on: dict[ids.GpuUuid, list[device_usage.DeviceUse]] = {}
    for one in devices:
        on.setdefault(one.gpu, []).append(one)
    found: dict[UseKey, float] = {}
    for gpu, there in on.items():
        if gpu in read.watts and not any(one.mode == device_usage.MIG for one in there):
            busy = {_use_key(one): read.devices.get(_use_key(one), Reading()).busy for one in there}
            given: dict[UseKey, float] = {}
            for one in there:
                given[_use_key(one)] = given.get(_use_key(one), 0.0) + (one.compute or 0.0)
            alone = len(there) == 1 and there[0].mode == device_usage.WHOLE
            whole: dict[UseKey, float | None] = dict.fromkeys(busy, 1.0)
            found |= power.attribute_power(read.watts[gpu], whole if alone else busy, given)
    return found


def _use_key(one: device_usage.DeviceUse) -> UseKey:
    return one.claim.uid, one.key.device
