"""What is said of each GPU of a node: what it has, what of it is given out, its health. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from driver import ids, names
from driver.devices import faces, health, model
from driver.kubeletplugin.collectors import device_usage
from driver.runtime.metrics.families import Family, Figures

INFO: Final = Family(
    "dra_gpu_info",
    "1 for each GPU of the node that is known, readable now or not. UUID, gpu, device, pci_bus_id "
    "and modelName are as dcgm-exporter writes them; the device is the GPU's whole face.",
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
    "1 while no taint of its health or quarantine keeps new claims from the GPU or a part of it.",
    ("UUID",),
)
AILMENT: Final = Family(
    "dra_gpu_ailment",
    "1 while the GPU has the taint of that key, of whatever effect.",
    ("UUID", "key"),
)
MEMORY: Final = Family(
    "dra_gpu_memory_capacity_bytes", "Memory of the GPU; none where it does not tell.", ("UUID",)
)
COMPUTE: Final = Family(
    "dra_gpu_compute_capacity_ratio",
    "Compute of the GPU in GPUs: 1, or 0 while it cannot be read.",
    ("UUID",),
)
SHARES: Final = Family(
    "dra_gpu_shares_capacity",
    "Shares that the GPU is offered in; 0 where it is not shared so.",
    ("UUID", "mode"),
)
MEMORY_GIVEN: Final = Family(
    "dra_gpu_memory_allocated_bytes",
    "Memory of the GPU that prepared claims were given, by mode.",
    ("UUID", "mode"),
)
COMPUTE_GIVEN: Final = Family(
    "dra_gpu_compute_allocated_ratio",
    "Compute of the GPU, 1 is all of it, that prepared claims were given, by mode.",
    ("UUID", "mode"),
)
SHARES_GIVEN: Final = Family(
    "dra_gpu_shares_allocated",
    "Devices of prepared claims on the GPU, by mode: the GPU itself, MIG instances, shares.",
    ("UUID", "mode"),
)
INSTANCES: Final = Family(
    "dra_gpu_mig_instances",
    "MIG instances that lie on the GPU, made for claims (ration) or by somebody else (other).",
    ("UUID", "owner"),
)
POWER: Final = Family(
    "dra_gpu_power_watts",
    "What the GPU draws, read while a claim has it or a part of it.",
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
    """The GPUs of a node. `shares`: what each is offered in, by mode; `watts` as last read."""

    driver: str
    pool: str
    gpus: tuple[model.Gpu, ...] = ()
    ailments: Ailments = field(default_factory=dict)
    shares: Mapping[ids.GpuUuid, Mapping[str, int]] = field(default_factory=dict)
    watts: Mapping[ids.GpuUuid, float] = field(default_factory=dict)


def gpu_figures(node: NodeGpus, given: Iterable[device_usage.DeviceUse]) -> Figures:
    """The figures of every GPU, by what claims take of them."""
    found: _Series = {one.name: {} for one in FAMILIES}
    for gpu in node.gpus:
        _add_identity(node, gpu, found)
        _add_health(node, gpu, found)
    known = {gpu.uuid for gpu in node.gpus}
    for one in given:
        if one.gpu in known:
            labels = one.gpu, one.mode
            found[MEMORY_GIVEN.name][labels] += one.memory or 0
            found[COMPUTE_GIVEN.name][labels] += one.compute or 0.0
            found[SHARES_GIVEN.name][labels] += 1
    return found


def _add_identity(node: NodeGpus, gpu: model.Gpu, found: _Series) -> None:
    whole = faces.device_name(gpu.pci)
    card = str(gpu.index), f"nvidia{gpu.minor}", gpu.pci, gpu.product, gpu.driver_version
    found[INFO.name][gpu.uuid, *card, node.driver, node.pool, whole] = 1
    if gpu.memory_bytes is not None:
        found[MEMORY.name][gpu.uuid,] = gpu.memory_bytes
    ails = node.ailments.get(gpu.uuid, ())
    found[COMPUTE.name][gpu.uuid,] = all(one.key != names.TAINT_LOST for one in ails)
    for mode in (device_usage.MPS, device_usage.TIME_SLICING):
        found[SHARES.name][gpu.uuid, mode] = node.shares.get(gpu.uuid, {}).get(mode, 0)
    for mode in device_usage.MODES:
        for family in (MEMORY_GIVEN, COMPUTE_GIVEN, SHARES_GIVEN):
            found[family.name][gpu.uuid, mode] = 0


def _add_health(node: NodeGpus, gpu: model.Gpu, found: _Series) -> None:
    ails = node.ailments.get(gpu.uuid, ())
    found[HEALTHY.name][gpu.uuid,] = all(one.effect == "None" for one in ails)
    keys = {one.key for one in ails}
    for key in AILMENTS:
        found[AILMENT.name][gpu.uuid, key] = key in keys
    instances = gpu.mig.instances if gpu.mig else ()
    ours = sum(one.ours for one in instances)
    found[INSTANCES.name][gpu.uuid, "ration"] = ours
    found[INSTANCES.name][gpu.uuid, "other"] = len(instances) - ours
    if gpu.uuid in node.watts:
        found[POWER.name][gpu.uuid,] = node.watts[gpu.uuid]
