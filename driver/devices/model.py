"""What a GPU is, as discovered. Facts only; what is published of it is decided in `faces`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from driver import ids
from driver.devices import mig as partition


@dataclass(frozen=True, slots=True)
class Gpu:
    """One physical GPU.

    `index` is NVML's, of now: it and `minor` move. `memory_bytes` is None on unified-memory parts
    (NVML says NOT_SUPPORTED there). `numa_node` and `pcie_root` come from sysfs; None where the
    machine does not tell. `nvlink_peers` are the GPUs of this node that NVLink reaches, directly
    or through a switch; `nvlink_domain` is the fabric across nodes, `<cluster uuid>.<clique>`.
    `mig` is None where the GPU has none, or where it is another's to manage (`virtual`: a vGPU
    guest).
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
    """A GPU that is counted but cannot be read: `where` is its index or PCI address."""

    location: str
    problem: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """All GPUs of a node, in PCI order, and those that could not be read.

    `lost` are GPUs that were read before and are not readable now, as they were last.
    """

    gpus: tuple[Gpu, ...] = ()
    broken: tuple[BrokenGpu, ...] = ()
    lost: tuple[Gpu, ...] = ()

    @property
    def known(self) -> tuple[Gpu, ...]:
        """Every GPU that can be described, in PCI order, readable now or not."""
        return sort_by_pci((*self.gpus, *self.lost))

    def by_uuid(self, uuid: str) -> Gpu | None:
        """The GPU of that UUID."""
        return next((gpu for gpu in self.gpus if gpu.uuid == uuid), None)


def mark_own(gpu: Gpu, ours: Iterable[partition.InstanceRef]) -> Gpu:
    """The same GPU, its MIG instances at `ours` (places of any GPU) known as ours."""
    if gpu.mig is None:
        return gpu
    here = (place for place in ours if place.gpu == gpu.uuid)
    return replace(gpu, mig=partition.mark_own(gpu.mig, here))


def sort_by_pci(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """GPUs by PCI address: the only order that does not move (minors and indices do)."""
    return tuple(sorted(gpus, key=lambda gpu: gpu.pci))


def retain_lost(before: Inventory, now: Inventory) -> Inventory:
    """`now`, with the GPUs of `before` that still count among the node's but cannot be read.

    NVML may not tell which GPU it cannot read, so every one that is missing while something is
    broken is lost; a GPU that is missing while nothing is broken has been taken out. The others
    stay linked to one that is lost: nothing of them changes with it.
    """
    if not now.broken:
        return now
    read = {gpu.uuid for gpu in now.gpus}
    missing = sort_by_pci(tuple(gpu for gpu in before.known if gpu.uuid not in read))
    away = frozenset(gpu.pci for gpu in missing)
    linked = {gpu.uuid: gpu.nvlink_peers & away for gpu in before.known}
    gpus = tuple(
        replace(gpu, nvlink_peers=gpu.nvlink_peers | linked.get(gpu.uuid, frozenset()))
        for gpu in now.gpus
    )
    return Inventory(gpus, now.broken, missing)


def without_gpu(inventory: Inventory, gpu: Gpu, problem: str) -> Inventory:
    """The inventory, where one GPU of it cannot be read just now."""
    broken = BrokenGpu(gpu.uuid, problem)
    return Inventory(
        tuple(other for other in inventory.gpus if other.uuid != gpu.uuid),
        (*(other for other in inventory.broken if other.location != gpu.uuid), broken),
        sort_by_pci((*inventory.lost, gpu)),
    )


def with_gpu(inventory: Inventory, gpu: Gpu) -> Inventory:
    """The inventory, with one GPU as it was just read: in its place, or back among the others."""
    gpus = (gpu, *(other for other in inventory.gpus if other.uuid != gpu.uuid))
    lost = tuple(other for other in inventory.lost if other.uuid != gpu.uuid)
    broken = tuple(other for other in inventory.broken if other.location != gpu.uuid)
    return Inventory(sort_by_pci(gpus), broken, lost)
