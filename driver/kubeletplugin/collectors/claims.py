"""Figures of each prepared claim on a node, per device. Pure.

The labels are dcgm-exporter's, so that series can be joined. There is a series per claim device, at
most `MAX_DEVICES`: a claim's series end with its record.
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
    "dra_gpu_claim_memory_allocated_bytes", "Memory of the device allocated to the claim.", LABELS
)
COMPUTE: Final = Family(
    "dra_gpu_claim_compute_allocated_ratio",
    "Fraction of the GPU's compute allocated to the claim.",
    LABELS,
)
PART: Final = Family(
    "dra_gpu_claim_allocated_ratio",
    "Fraction of the GPU allocated to the claim: of memory or compute, whichever is larger.",
    LABELS,
)
LIMIT: Final = Family(
    "dra_gpu_claim_memory_limit_bytes",
    "Memory limit that the GPU, MIG or MPS enforces for the claim's processes; absent for "
    "time-slicing, which enforces none.",
    LABELS,
)
USED: Final = Family(
    "dra_gpu_claim_memory_used_bytes",
    "Memory used by the claim's processes, as reported by the GPU.",
    LABELS,
)
BUSY: Final = Family(
    "dra_gpu_claim_utilization_ratio",
    "Fraction of the GPU's multiprocessors that the claim's processes kept busy in the "
    "last interval. Absent for MIG devices, which NVML does not report, and while a "
    "process belongs to no known claim.",
    LABELS,
)
POWER: Final = Family(
    "dra_gpu_claim_power_watts",
    "GPU power attributed to the claim: all of an exclusive GPU; otherwise in proportion "
    "to the utilization of all claims there, or to their allocated compute while none is "
    "active. Absent if utilization is unknown, as for MIG devices.",
    LABELS,
)
PREPARED: Final = Family("dra_gpu_plugin_claims", "Prepared claims, by mode.", ("mode",))
OMITTED: Final = Family(
    "dra_gpu_plugin_claim_devices_left_out",
    f"Devices of claims without series of their own, because of the limit of {MAX_DEVICES}.",
)
FAMILIES: Final = (INFO, MEMORY, COMPUTE, PART, LIMIT, USED, BUSY, POWER, PREPARED, OMITTED)
UseKey = tuple[ids.ClaimUid, str]
"""A claim and a device name: several shares of one device cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Last reading of a claim's device: `busy` 0 to 1, `used` in bytes; None: unknown."""

    busy: float | None = None
    used: int | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """Last readings: of claims' devices, and the power draw of GPUs in watts."""

    devices: Mapping[UseKey, Reading] = field(default_factory=dict)
    watts: Mapping[ids.GpuUuid, float] = field(default_factory=dict)


def claim_figures(
    driver: str, uses: Iterable[device_usage.DeviceUse], readings: Readings
) -> Figures:
    """Return the figures of every device; for several shares of one device, the sums."""
    devices = sorted(uses, key=lambda item: (item.claim.namespace, item.claim.name, *item.key))
    watts = _attribute_power(devices, readings)
    figures: dict[str, dict[tuple[str, ...], float]] = {item.name: {} for item in FAMILIES}
    exported: set[tuple[str, ...]] = set()
    left_out = 0
    for item in devices:
        labels = _labels(driver, item)
        if labels not in exported and len(exported) >= MAX_DEVICES:
            left_out += 1
            continue
        exported.add(labels)
        figures[INFO.name][*labels, item.mode] = 1
        for family, value in _allocation_values(item):
            if value is not None:
                figures[family.name][labels] = figures[family.name].get(labels, 0.0) + value
        for family, value in _reading_values(item, readings, watts):
            if value is not None:
                figures[family.name][labels] = value
    figures[PREPARED.name] = {(mode,): _count_claims(devices, mode) for mode in device_usage.MODES}
    figures[OMITTED.name] = {NO_LABELS: left_out}
    return figures


def _count_claims(devices: Iterable[device_usage.DeviceUse], mode: str) -> int:
    return len({use.claim.uid for use in devices if use.mode == mode})


def _labels(driver: str, use: device_usage.DeviceUse) -> tuple[str, ...]:
    claim_labels = use.claim.namespace, use.claim.name
    return *claim_labels, driver, use.pool, use.key.device, use.profile, use.mig_uuid, use.gpu


def _allocation_values(use: device_usage.DeviceUse) -> Iterable[tuple[Family, float | None]]:
    return (MEMORY, use.memory), (COMPUTE, use.compute), (PART, use.part), (LIMIT, use.limit)


def _reading_values(
    use: device_usage.DeviceUse, readings: Readings, watts: Mapping[UseKey, float]
) -> Iterable[tuple[Family, float | None]]:
    reading = readings.devices.get(_use_key(use), Reading())
    return (USED, reading.used), (BUSY, reading.busy), (POWER, watts.get(_use_key(use)))


def _attribute_power(
    devices: Iterable[device_usage.DeviceUse], readings: Readings
) -> dict[UseKey, float]:
    by_gpu: dict[ids.GpuUuid, list[device_usage.DeviceUse]] = {}
    for use in devices:
        by_gpu.setdefault(use.gpu, []).append(use)
    result: dict[UseKey, float] = {}
    for gpu, gpu_uses in by_gpu.items():
        if gpu in readings.watts and not any(use.mode == device_usage.MIG for use in gpu_uses):
            busy = {
                _use_key(use): readings.devices.get(_use_key(use), Reading()).busy
                for use in gpu_uses
            }
            weights: dict[UseKey, float] = {}
            for use in gpu_uses:
                weights[_use_key(use)] = weights.get(_use_key(use), 0.0) + (use.compute or 0.0)
            alone = len(gpu_uses) == 1 and gpu_uses[0].mode == device_usage.WHOLE
            whole: dict[UseKey, float | None] = dict.fromkeys(busy, 1.0)
            result |= power.attribute_power(readings.watts[gpu], whole if alone else busy, weights)
    return result


def _use_key(use: device_usage.DeviceUse) -> UseKey:
    return use.claim.uid, use.key.device
