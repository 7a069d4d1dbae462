"""Figures of each GPU of a node: capacity, allocated amounts, health. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from driver import ids, names
from driver.devices import faces, health, model
from driver.kubeletplugin.collectors import device_usage
from driver.runtime.metrics.families import Family, Figures

INFO: Final = Family(
    "dra_gpu_info",
    "1 for each known GPU of the node, readable or not. UUID, gpu, device, pci_bus_id and "
    "modelName are as dcgm-exporter writes them; the device is that of the whole GPU.",
    (
        "UUID",
        "gpu",
        "device",
        "pci_bus_id",
        "modelName",
        "driver_version",
        "dra_driver_name",
        "dra_pool_name",
        "dra_device_name",
    ),
)
HEALTHY: Final = Family(
    "dra_gpu_healthy",
    "1 while no health or quarantine taint excludes the GPU or a part of it from new claims.",
    ("UUID",),
)
AILMENT: Final = Family(
    "dra_gpu_ailment",
    "1 while the GPU has a taint with this key, whatever its effect.",
    ("UUID", "key"),
)
MEMORY: Final = Family(
    "dra_gpu_memory_capacity_bytes", "Memory of the GPU; absent if it is not reported.", ("UUID",)
)
COMPUTE: Final = Family(
    "dra_gpu_compute_capacity_ratio",
    "Compute of the GPU in GPUs: 1, or 0 while it is unreadable.",
    ("UUID",),
)
SHARES: Final = Family(
    "dra_gpu_shares_capacity",
    "Shares that the GPU is published as; 0 if it is not shared in this mode.",
    ("UUID", "mode"),
)
MEMORY_GIVEN: Final = Family(
    "dra_gpu_memory_allocated_bytes",
    "Memory of the GPU allocated to prepared claims, by mode.",
    ("UUID", "mode"),
)
COMPUTE_GIVEN: Final = Family(
    "dra_gpu_compute_allocated_ratio",
    "Compute of the GPU allocated to prepared claims, by mode; 1 is all of it.",
    ("UUID", "mode"),
)
SHARES_GIVEN: Final = Family(
    "dra_gpu_shares_allocated",
    "Devices of prepared claims on the GPU, by mode: the whole GPU, MIG instances, shares.",
    ("UUID", "mode"),
)
INSTANCES: Final = Family(
    "dra_gpu_mig_instances",
    "MIG instances on the GPU, created for claims (ration) or by another agent (other).",
    ("UUID", "owner"),
)
POWER: Final = Family(
    "dra_gpu_power_watts",
    "Power draw of the GPU, read while a claim uses it or a part of it.",
    ("UUID",),
)
FAMILIES: Final = (
    *(INFO, HEALTHY, AILMENT, MEMORY, COMPUTE, SHARES),
    *(MEMORY_GIVEN, COMPUTE_GIVEN, SHARES_GIVEN, INSTANCES, POWER),
)
AILMENTS: Final = (
    names.TAINT_LOST,
    names.TAINT_XID,
    names.TAINT_RECOVERY,
    names.TAINT_ROW_REMAP,
    names.TAINT_ECC,
    names.TAINT_QUARANTINE,
    names.TAINT_UNMONITORED,
)


Ailments = Mapping[ids.GpuUuid, Sequence[health.Ailment]]
_Series = dict[str, dict[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """GPUs of a node. `shares`: published shares per GPU, by mode; `watts` as last read."""

    driver: str
    pool: str
    gpus: tuple[model.Gpu, ...] = ()
    ailments: Ailments = field(default_factory=dict)
    shares: Mapping[ids.GpuUuid, Mapping[str, int]] = field(default_factory=dict)
    watts: Mapping[ids.GpuUuid, float] = field(default_factory=dict)


def gpu_figures(node: NodeGpus, uses: Iterable[device_usage.DeviceUse]) -> Figures:
    """Return the figures of every GPU, with what claims take of them."""
    series: _Series = {item.name: {} for item in FAMILIES}
    for gpu in node.gpus:
        _add_identity(node, gpu, series)
        _add_health(node, gpu, series)
    uuids = {gpu.uuid for gpu in node.gpus}
    for item in uses:
        if item.gpu in uuids:
            labels = item.gpu, item.mode
            series[MEMORY_GIVEN.name][labels] += item.memory or 0
            series[COMPUTE_GIVEN.name][labels] += item.compute or 0.0
            series[SHARES_GIVEN.name][labels] += 1
    return series


def _add_identity(node: NodeGpus, gpu: model.Gpu, series: _Series) -> None:
    whole = faces.device_name(gpu.pci)
    card = str(gpu.index), f"nvidia{gpu.minor}", gpu.pci, gpu.product, gpu.driver_version
    series[INFO.name][gpu.uuid, *card, node.driver, node.pool, whole] = 1
    if gpu.memory_bytes is not None:
        series[MEMORY.name][gpu.uuid,] = gpu.memory_bytes
    ailments = node.ailments.get(gpu.uuid, ())
    series[COMPUTE.name][gpu.uuid,] = all(ailment.key != names.TAINT_LOST for ailment in ailments)
    for mode in (device_usage.MPS, device_usage.TIME_SLICING):
        series[SHARES.name][gpu.uuid, mode] = node.shares.get(gpu.uuid, {}).get(mode, 0)
    for mode in device_usage.MODES:
        for family in (MEMORY_GIVEN, COMPUTE_GIVEN, SHARES_GIVEN):
            series[family.name][gpu.uuid, mode] = 0


def _add_health(node: NodeGpus, gpu: model.Gpu, series: _Series) -> None:
    ailments = node.ailments.get(gpu.uuid, ())
    series[HEALTHY.name][gpu.uuid,] = all(item.effect == "None" for item in ailments)
    keys = {item.key for item in ailments}
    for key in AILMENTS:
        series[AILMENT.name][gpu.uuid, key] = key in keys
    instances = gpu.mig.instances if gpu.mig else ()
    own_count = sum(item.ours for item in instances)
    series[INSTANCES.name][gpu.uuid, "ration"] = own_count
    series[INSTANCES.name][gpu.uuid, "other"] = len(instances) - own_count
    if gpu.uuid in node.watts:
        series[POWER.name][gpu.uuid,] = node.watts[gpu.uuid]
