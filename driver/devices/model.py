"""What a GPU is, as discovered. Facts only; what is published of it is decided in `faces`."""

from dataclasses import dataclass

from driver import ids


@dataclass(frozen=True, slots=True)
class Gpu:
    """One physical GPU.

    `memory_bytes` is None on unified-memory parts (NVML says NOT_SUPPORTED there). `numa_node` and
    `pcie_root` come from sysfs; None where the machine does not tell. `nvlink_peers` are the GPUs
    of this node that NVLink reaches, directly or through a switch.
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
    memory_bytes: int | None = None
    numa_node: int | None = None
    pcie_root: str | None = None
    nvlink_peers: frozenset[ids.PciAddress] = frozenset()


@dataclass(frozen=True, slots=True)
class BrokenGpu:
    """A GPU that is counted but cannot be read: `where` is its index or PCI address."""

    where: str
    problem: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """All GPUs of a node, in PCI order, and those that could not be read."""

    gpus: tuple[Gpu, ...] = ()
    broken: tuple[BrokenGpu, ...] = ()

    def by_uuid(self, uuid: str) -> Gpu | None:
        """The GPU of that UUID."""
        return next((gpu for gpu in self.gpus if gpu.uuid == uuid), None)


def in_pci_order(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """GPUs by PCI address: the only order that does not move (minors and indices do)."""
    return tuple(sorted(gpus, key=lambda gpu: gpu.pci))
