"""Vocabularies: how drivers describe GPUs in their slices, one adapter each. Pure.

A device of a driver without a vocabulary is allocated by the API's rules alone and is no GPU to
policies and queues. Sources, as read in November 2026: dra-driver-nvidia-gpu 0.5
(cmd/gpu-kubelet-plugin/deviceinfo.go, partitions.go), ROCm/k8s-gpu-dra-driver
(cmd/gpu-kubeletplugin/deviceinfo.go), intel-resource-drivers-for-kubernetes
(cmd/kubelet-gpu-plugin/node_state.go).
"""

from collections.abc import Mapping
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
    there. `modes` are those of devices other than whole GPUs. Devices of `ignored_types` are no
    part of a GPU's capacity. A taint whose key begins with one of `fault_taints` says that the
    device failed.
    """

    product: str = names.ATTR_PRODUCT
    profile: str = names.ATTR_PROFILE
    gpu_keys: tuple[str, ...] = ()
    modes: Mapping[Mode, str] = field(default_factory=dict)
    ignored_types: frozenset[str] = frozenset()
    fault_taints: tuple[str, ...] = ()


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
    modes={("amdgpu-partition", None): base.MIG},
)
INTEL = Vocabulary(
    product="model", gpu_keys=(names.ATTR_PCI_BUS_ID,), fault_taints=("HealthIssues-",)
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
    keys = _BY_DRIVER[driver].gpu_keys if driver in _BY_DRIVER else ()
    values = (device.attributes.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str)), device.name)
