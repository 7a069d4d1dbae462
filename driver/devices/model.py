"""A GPU as discovered. Facts only; `faces` decides what is published of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from driver import ids
from driver.devices import mig as partition


@dataclass(frozen=True, slots=True)
class Gpu:
    """One physical GPU.

    `index` is NVML's current one: it and `minor` may change. `memory_bytes` is None on
    unified-memory parts (NVML reports NOT_SUPPORTED). `numa_node` and `pcie_root` come from sysfs;
    None if the machine does not report them. `nvlink_peers` are the GPUs of this node that NVLink
    reaches, directly or through a switch; `nvlink_domain` is the fabric across nodes, `<cluster
    uuid>.<clique>`. `mig` is None if the GPU has none, or if another system manages it (`virtual`:
    a vGPU guest).
    """

    uuid: ids.GpuUuid
    pci: ids.PciAddress
    minor: int
    product: str
    brand: str
    architecture: str
    cuda_capability: tuple[int, int]
    driver_version: str
    cuda_driver_version: tuple[int, int]
    index: int = 0
    memory_bytes: int | None = None
    numa_node: int | None = None
    pcie_root: str | None = None
    nvlink_peers: frozenset[ids.PciAddress] = frozenset()
    nvlink_domain: str | None = None
    module: int | None = None
    addressing: str | None = None
    virtual: bool = False
    mig: partition.Mig | None = None


@dataclass(frozen=True, slots=True)
class BrokenGpu:
    """A GPU that is counted but cannot be read: `location` is its index or PCI address."""

    location: str
    problem: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """All GPUs of a node, in PCI order, and those that could not be read.

    `lost` are GPUs that were read before and are not readable now, as last read.
    """

    gpus: tuple[Gpu, ...] = ()
    broken: tuple[BrokenGpu, ...] = ()
    lost: tuple[Gpu, ...] = ()

    @property
    def all_gpus(self) -> tuple[Gpu, ...]:
        """Return every GPU that can be described, in PCI order, readable now or not."""
        return sort_by_pci((*self.gpus, *self.lost))

    def by_uuid(self, uuid: str) -> Gpu | None:
        """Return the GPU of that UUID."""
        return next((gpu for gpu in self.gpus if gpu.uuid == uuid), None)


def mark_own(gpu: Gpu, own_refs: Iterable[partition.InstanceRef]) -> Gpu:
    """Return the GPU, its MIG instances at `own_refs` (references of any GPU) marked as ours."""
    if gpu.mig is None:
        return gpu
    refs = (ref for ref in own_refs if ref.gpu == gpu.uuid)
    return replace(gpu, mig=partition.mark_own(gpu.mig, refs))


def is_same_mig(first: Gpu, second: Gpu) -> bool:
    """Return whether two readings of a GPU have the same minor, MIG mode and instances."""

    def fields(gpu: Gpu) -> tuple[object, ...]:
        if gpu.mig is None:
            return (gpu.minor,)
        instances = (replace(instance, ours=False) for instance in gpu.mig.instances)
        return (gpu.minor, gpu.mig.enabled, frozenset(instances))

    return fields(first) == fields(second)


def with_mig(gpu: Gpu, instances: tuple[partition.Instance, ...], *, enabled: bool) -> Gpu:
    """Return the GPU with another MIG mode and other instances; as it is if it has no MIG."""
    if gpu.mig is None:
        return gpu
    return replace(gpu, mig=replace(gpu.mig, enabled=enabled, instances=instances))


def with_instance(gpu: Gpu, instance: partition.Instance) -> Gpu:
    """Return the GPU with an instance just created, which NVML allows beside no overlapping one."""
    others = gpu.mig.instances if gpu.mig else ()
    beside = (other for other in others if not other.placement.overlaps(instance.placement))
    return with_mig(gpu, (*beside, instance), enabled=True)


def without_instance(gpu: Gpu, ref: partition.InstanceRef) -> Gpu:
    """Return the GPU without the instance of a reference."""
    if gpu.mig is None:
        return gpu
    others = (other for other in gpu.mig.instances if not ref.matches(other))
    return with_mig(gpu, tuple(others), enabled=gpu.mig.enabled)


def sort_by_pci(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return GPUs by PCI address: the only stable order (minors and indices change)."""
    return tuple(sorted(gpus, key=lambda gpu: gpu.pci))


def retain_lost(previous: Inventory, current: Inventory) -> Inventory:
    """Return `current`, with the GPUs of `previous` that are still counted but cannot be read.

    NVML may not tell which GPU it cannot read, so every missing one is lost while something is
    broken; a GPU missing while nothing is broken was removed. The others keep their links to lost
    ones.
    """
    if not current.broken:
        return current
    read = {gpu.uuid for gpu in current.gpus}
    missing = sort_by_pci(tuple(gpu for gpu in previous.all_gpus if gpu.uuid not in read))
    away = frozenset(gpu.pci for gpu in missing)
    linked = {gpu.uuid: gpu.nvlink_peers & away for gpu in previous.all_gpus}
    gpus = tuple(
        replace(gpu, nvlink_peers=gpu.nvlink_peers | linked.get(gpu.uuid, frozenset()))
        for gpu in current.gpus
    )
    return Inventory(gpus, current.broken, missing)


def without_gpu(inventory: Inventory, gpu: Gpu, problem: str) -> Inventory:
    """Return the inventory, with one of its GPUs unreadable."""
    broken = BrokenGpu(gpu.uuid, problem)
    return Inventory(
        tuple(other for other in inventory.gpus if other.uuid != gpu.uuid),
        (*(other for other in inventory.broken if other.location != gpu.uuid), broken),
        sort_by_pci((*inventory.lost, gpu)),
    )


def with_gpu(inventory: Inventory, gpu: Gpu) -> Inventory:
    """Return the inventory, with one GPU as just read: in its place, or restored."""
    gpus = (gpu, *(other for other in inventory.gpus if other.uuid != gpu.uuid))
    lost = tuple(other for other in inventory.lost if other.uuid != gpu.uuid)
    broken = tuple(other for other in inventory.broken if other.location != gpu.uuid)
    return Inventory(sort_by_pci(gpus), broken, lost)
