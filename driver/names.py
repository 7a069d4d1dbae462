"""Every string that crosses a process: to Kubernetes, to the kubelet, to users (D21)."""

from typing import Final

DRIVER = "gpu.ration.dev"
"""Default driver name; a value of both processes (`--driver-name`)."""

GROUP = "ration.dev"

ALLOCATOR_TAINT = "ration.dev/allocator"
"""Device taint that only our controller disregards (D2); its value is `controller`."""
HANDOVER_TAINT = "ration.dev/handover"
"""Device taint that nobody disregards, while a node changes its allocator (D2)."""
TAINT_LOST = "ration.dev/gpu-lost"
"""Device taint: NVML cannot reach the GPU. These and the following tell a GPU's health."""
TAINT_XID = "ration.dev/xid"
"""Device taint; its value is the Xid."""
TAINT_RECOVERY = "ration.dev/recovery"
"""Device taint; its value is what the GPU asks for, as NVML names it: `GPU_RESET`."""
TAINT_ROW_REMAP = "ration.dev/row-remap"
"""Device taint: a repair of memory is `pending` or has `failed`."""
TAINT_ECC = "ration.dev/ecc"
"""Device taint: memory is beyond repair, `sram-threshold` or `unrepairable`."""
TAINT_UNMONITORED = "ration.dev/unmonitored"
"""Device taint of effect None: the GPU's events cannot be had."""
ALLOCATOR_LABEL = "ration.dev/allocator"
"""Node label that overrides the plugin's `--allocator`."""
ALLOCATION_GATE = "ration.dev/allocate"
"""The one scheduling gate our controller removes (D2)."""

CLASS_GPU = "gpu.ration.dev"

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
"""kube-controller-manager deallocates a claim that carries it when its last pod goes (D3)."""
HOLD_RESOURCE = "holds"
"""`resource` of the reservedFor entry, in GROUP, that keeps an allocation in place (D5)."""

LEASE = "ration-controller"
FIELD_MANAGER = "ration-controller"
"""First part of the fenced field manager `ration-controller/<holder>/<transitions>` (D22)."""
PLUGIN_FIELD_MANAGER = "ration-kubeletplugin"

# Attributes follow NVIDIA's names where it has one (D13), then Kubernetes', then ours.
ATTR_TYPE = "type"
ATTR_UUID = "uuid"
ATTR_PRODUCT = "productName"
ATTR_BRAND = "brand"
ATTR_ARCHITECTURE = "architecture"
ATTR_CUDA_CAPABILITY = "cudaComputeCapability"
ATTR_DRIVER_VERSION = "driverVersion"
ATTR_CUDA_DRIVER_VERSION = "cudaDriverVersion"
ATTR_ALLOCATOR = "allocator"
ATTR_NVLINK_PEERS = "nvlinkPeers"
"""Int bitmask over the node's GPUs in PCI order: bit i set, GPU i is reached by NVLink."""
ATTR_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
ATTR_PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
ATTR_NUMA_NODE = "resource.kubernetes.io/numaNode"

CAP_MEMORY = "memory"
CAP_COMPUTE = "compute"

TYPE_GPU = "gpu"
"""Value of `type` on whole faces only (D1)."""

CONFIG_GROUP = "resource.ration.dev"
CONFIG_VERSION: Final = "resource.ration.dev/v1alpha1"
