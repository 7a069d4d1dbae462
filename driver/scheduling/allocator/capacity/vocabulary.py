"""Vocabularies: how drivers describe GPUs in their slices, one adapter each. Pure.

A device of a driver without a vocabulary is allocated by the API's rules alone and is no GPU to
policies and queues. Sources, as read in November 2026: dra-driver-nvidia-gpu 0.5
(cmd/gpu-kubelet-plugin/deviceinfo.go, partitions.go), ROCm/k8s-gpu-dra-driver
(cmd/gpu-kubeletplugin/deviceinfo.go), intel-resource-drivers-for-kubernetes
(cmd/kubelet-gpu-plugin/node_state.go).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver import names
from driver.resources.dra import pools, slices
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot

Mode = tuple[str, str | None]
"""Type of a device, and its sharing if it says so."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Attributes of a driver's devices, by their names in its own domain.

    `gpu_keys` identify the GPU of a device that draws on no counter set, the first one that is
    there. `addresses` hold the PCI address of its GPU. `modes` are those of devices other than
    whole GPUs. Devices of `ignored_types` are no part of a GPU's capacity. Devices of
    `virtual_functions` are SR-IOV functions of the GPU whose PCI address is on their bus. A taint
    whose key begins with one of `fault_taints` says that the device failed.
    """

    product: str = names.ATTR_PRODUCT
    profile: str = names.ATTR_PROFILE
    gpu_keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = (names.ATTR_PCI_BUS_ID,)
    modes: Mapping[Mode, str] = field(default_factory=dict)
    ignored_types: frozenset[str] = frozenset()
    fault_taints: tuple[str, ...] = ()
    virtual_functions: frozenset[str] = frozenset()

    def gpu_key(self, kind: str, keys: Iterable[str | None]) -> str:
        """Return the first key of a device that is there; empty without one.

        `kind` is the device's type, `keys` are the values of `gpu_keys`.
        """
        key = next(filter(None, keys), "")
        return _physical_function(key) if kind in self.virtual_functions else key


OWN = Vocabulary(
    modes={
        (names.TYPE_SHARE, names.SHARING_MPS): base.MPS,
        (names.TYPE_SHARE, names.SHARING_TIME_SLICING): base.TIME_SLICING,
        (names.TYPE_MIG, None): base.MIG,
    },
    ignored_types=frozenset({names.TYPE_MONITOR}),
    fault_taints=(names.TAINT_LOST, names.TAINT_XID, names.TAINT_RECOVERY, names.TAINT_ECC),
)
NVIDIA = Vocabulary(
    gpu_keys=(names.ATTR_PARENT_UUID, names.ATTR_UUID),
    modes={(names.TYPE_MIG, None): base.MIG},
    # A passthrough device is the same GPU again: the driver withdraws one for the other.
    ignored_types=frozenset({"vfio"}),
    fault_taints=("gpu.nvidia.com/xid", "gpu.nvidia.com/gpu-lost"),
)
AMD = Vocabulary(
    profile="partitionProfile",
    gpu_keys=("parentPciAddr", "pciAddr"),
    addresses=("parentPciAddr", "pciAddr"),
    modes={("amdgpu-partition", None): base.MIG},
)
INTEL = Vocabulary(
    product="model",
    gpu_keys=(names.ATTR_PCI_BUS_ID,),
    modes={("vf", None): base.MIG},
    fault_taints=("HealthIssues-",),
    virtual_functions=frozenset({"vf"}),
)
_BY_DRIVER = {"gpu.nvidia.com": NVIDIA, "gpu.amd.com": AMD, "gpu.intel.com": INTEL}


def is_gpu_pool(view: snapshot.Snapshot, pool: pools.Pool) -> bool:
    """Return whether a pool has GPUs that the controller may allocate."""
    return is_gpu_driver(view, pool.driver)


def is_gpu_driver(view: snapshot.Snapshot, driver: str) -> bool:
    """Return whether a managed driver publishes GPUs."""
    return driver == view.driver or (is_described(driver) and driver in view.managed_drivers)


def is_described(driver: str) -> bool:
    """Return whether another driver's GPUs have a vocabulary."""
    return driver in _BY_DRIVER


def vocabulary(pool: pools.Pool) -> Vocabulary:
    """Return the vocabulary of a pool's driver: ours, whatever its name, unless it has its own.

    Installed as `gpu.nvidia.com` our plugin publishes NVIDIA's attributes and ours; its devices
    draw on counter sets and say how they are shared.
    """
    by_name = _BY_DRIVER.get(pool.driver, OWN)
    return OWN if by_name is NVIDIA and _is_published_by_us(pool) else by_name


def _is_published_by_us(pool: pools.Pool) -> bool:
    return any(
        names.ATTR_ALLOCATOR in device.attributes
        for resource_slice in pool.slices
        for device in resource_slice.devices[:1]
    )


def gpu_key(driver: str, device: slices.Device) -> str:
    """Return what identifies the GPU of another driver's device; its name without a vocabulary."""
    words = _BY_DRIVER.get(driver)
    if words is None:
        return device.name
    values = (device.attributes.get(key) for key in words.gpu_keys)
    kind = str(device.attributes.get(names.ATTR_TYPE, ""))
    keys = (value for value in values if isinstance(value, str))
    return words.gpu_key(kind, keys) or device.name


def _physical_function(address: str) -> str:
    """Return the PCI address of the GPU of an SR-IOV function: of a PCIe link it is 00.0.

    The driver does not publish the parent. Functions are on its bus up to the 255th.
    """
    return f"{address.rpartition(':')[0]}:00.0"
