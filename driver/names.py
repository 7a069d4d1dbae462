"""Every string that crosses a process: to Kubernetes, to the kubelet, to users (D21)."""

from typing import Final

DRIVER = "gpu.ration.dev"
"""Default driver name; a value of both processes (`--driver-name`)."""

GROUP = "ration.dev"

ALLOCATOR_TAINT = "ration.dev/allocator"
"""Device taint that only our controller disregards (D2); its value is `controller`."""
HANDOVER_TAINT = "ration.dev/handover"
"""Device taint that nobody disregards, while a node changes its allocator (D2)."""
MONITOR_TAINT = "ration.dev/monitor"
"""Device taint of monitor faces: only claims of administrators tolerate it (D1)."""
WITHDRAWN_TAINT = "ration.dev/withdrawn"
"""Device taint of a face that is no longer offered and stays until its last claim is gone."""
OWN_TAINTS = frozenset({ALLOCATOR_TAINT, HANDOVER_TAINT, MONITOR_TAINT})
"""Device taints that say who may allocate, not what is wrong."""
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

NODE_CONDITION = "ration.dev/GPUsHealthy"
"""Node condition, written by the controller: the health of the node's GPUs in one line."""

CONDITION_READY = "Ready"
"""Condition of a claim's devices, by the plugin: they are prepared on their node, or why not."""
CONDITION_STALLED = "Stalled"
"""Condition of a claim's devices, by the plugin: Ready is False and will not change by waiting.

It is there only while it is True (the convention of kstatus).
"""
CONDITION_WITHIN_SHARE = "WithinShare"
"""Condition of a claim's devices, by the plugin: its processes use no more than it was given."""
PLUGIN_CONDITIONS = frozenset({CONDITION_READY, CONDITION_STALLED, CONDITION_WITHIN_SHARE})
"""What the plugin owns of an entry in `status.devices`; every other type is another's."""
PREPARE_AGAIN = "ration.dev/prepare-again"
"""Annotation on a pod, by the controller: the kubelet tries again at once when it changes.

Its value is the time at which the refusal was cleared, RFC 3339.
"""
DEFRAG = "ration.dev/defrag"
"""Annotation on a pod, by its owner: with `true` it may be moved to make room (`ration defrag`)."""

GATE_LABEL = "ration.dev/gate"
"""Namespace label: with `true` its pods with claims are made with ALLOCATION_GATE (D2)."""
ALLOCATION_GATE = "ration.dev/allocate"
"""Scheduling gate (KEP-3521), removed by the controller once a pod's claims are allocated (D2)."""

UNINSTALL = "ration.dev/uninstall"
"""Annotation on the kubelet plugin's DaemonSet: `force` uninstalls while claims are in use."""
FORCE = "force"

POLICIES_ANNOTATION = "ration.dev/policies"
"""On a DeviceClass: the placement policies for what asks it, `spread` or `topology,pack`."""

CLASS_GPU = "gpu.ration.dev"
CLASS_TIMESLICE = "gpu-timeslice.ration.dev"
CLASS_MIG = "gpu-mig.ration.dev"
CLASS_SLICE = "gpu-slice.ration.dev"

CONVERT_LABEL = "ration.dev/convert"
"""Namespace label: `false` leaves pods that ask for device plugins' resources as they are (D21)."""
CONVERTED = "ration.dev/converted"
"""Label on pods that were converted, and on the templates and claims made for them."""
CONVERTED_FROM = "ration.dev/converted-from"
"""Annotation on a converted pod: what its containers asked, `main: nvidia.com/gpu=2`."""
LAST_USED = "ration.dev/last-used"
"""Annotation on a template of ours: when a pod was last given it, RFC 3339, now and then."""

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""On claims made of a template: their name in the pod (k8s.io/api/resource/v1)."""
CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
"""kube-controller-manager deallocates a claim that carries it when its last pod goes (D3)."""
HOLD_RESOURCE = "holds"
"""`resource` of the reservedFor entry, in GROUP, that keeps an allocation in place (D5)."""

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
ATTR_NVLINK_DOMAIN = "nvlinkDomain"
"""`<cluster uuid>.<clique>` of a multi-node NVLink fabric; absent where there is none."""
ATTR_ADDRESSING = "addressingMode"
ATTR_MODULE = "gpuModuleID"
ATTR_PARENT_UUID = "parentUUID"
ATTR_PROFILE = "profile"
ATTR_SHARING = "sharing"
ATTR_INTERVAL = "timeSliceInterval"
"""On time-sliced faces: whether the GPU lets its time slice be set."""
ATTR_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
ATTR_PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
ATTR_NUMA_NODE = "resource.kubernetes.io/numaNode"

CAP_MEMORY = "memory"
CAP_COMPUTE = "compute"
CAP_SHARES = "shares"
CAP_MULTIPROCESSORS = "multiprocessors"
CAP_COPY_ENGINES = "copyEngines"
CAP_DECODERS = "decoders"
CAP_ENCODERS = "encoders"
CAP_JPEG_ENGINES = "jpegEngines"
CAP_OFA_ENGINES = "ofaEngines"

TYPE_GPU = "gpu"
"""Value of `type` on whole faces only (D1)."""
TYPE_MIG = "mig"
TYPE_SHARE = "gpu-share"
TYPE_MONITOR = "gpu-monitor"
SHARING_MPS = "mps"
SHARING_TIME_SLICING = "time-slicing"

CONFIG_VERSION: Final = "resource.ration.dev/v1alpha1"
