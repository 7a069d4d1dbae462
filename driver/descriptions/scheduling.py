"""Meanings of the reasons that the controller gives: of scheduling, placement and preemption."""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    # Claims and pods.
    "Allocated": "The claim is allocated; the message names the devices, the node and the reason.",
    "NoFit": (
        "No node satisfies the pod's claims. The message states per node how many devices fit and "
        "why the others do not, then the nearest fit: what is missing there, and which pods hold "
        "it."
    ),
    "AllocationCleared": (
        "kube-scheduler rejected the pod on the node of its devices, so the devices were freed; "
        "the message quotes kube-scheduler."
    ),
    "PodBoundToOtherNode": (
        "The pod is bound to a node where its claim cannot be allocated; the message states why."
    ),
    "NodeNotFound": "The pod names a node (spec.nodeName) that does not exist.",
    "AllocationFailed": (
        "Devices were selected but the API server rejected the write; it is retried."
    ),
    "QueueLimitExceeded": (
        "The pod would exceed a limit of its queue or of a parent queue; the message names the "
        "resource."
    ),
    "PodEvicted": (
        "The pod was evicted because its claim can never be prepared or exceeds its share; its "
        "controller creates another pod. The message states which."
    ),
    "EvictionNotAllowed": (
        "The pod's claim exceeds its share, but the pod has no controller that would recreate it, "
        "so it is not evicted."
    ),
    "GangPending": "The pod's gang is incomplete, or one of its pods has a scheduling gate.",
    "GangInvalid": (
        "The gang annotations of the pods contradict each other or are invalid; the message names "
        "the annotation. No pod of the gang is placed until it is corrected."
    ),
    "GangReleased": (
        "The gang could not start as a whole, so the devices of its pods were freed; it is placed "
        "again once all of it fits."
    ),
    # Reservations.
    "ReservationPending": "No devices are available for the Reservation yet.",
    "ReservationRefused": (
        "The Reservation cannot be satisfied as specified; the message names the field."
    ),
    "ReservationHeld": "Devices are held for the holder.",
    "ReservationUsed": "The holder has the devices.",
    "ReservationExpired": "The holder did not use the devices in time; they were released.",
    # Provisioned nodes.
    "NodesRequested": (
        "No existing node has enough free devices, so nodes were requested from the autoscaler; "
        "the message states how many of which shape, and the expected startup time."
    ),
    "NoNodeShapeFits": (
        "No node that an autoscaler can provision would fit either, so none is requested; the "
        "message states what each shape lacks."
    ),
    "NodeArrived": "A requested node is ready with all its GPUs.",
    "NodeNotArrived": (
        "A requested node did not become ready in time, or has no GPUs: it is given up, and none "
        "of its shape is requested for some time."
    ),
    "NodeShapeMismatch": (
        "A node differs from its shape in the NodeShapes document; the message names the field. "
        "The actual node is used."
    ),
    "NodeArriving": "The node was requested for another workload and is not complete yet.",
    "NodeInterrupted": "The node is about to be removed (a spot interruption, shown by a taint).",
    # Preemption.
    "Preempting": (
        "Pods are evicted so that this pod or its gang can be placed; the message names them, the "
        "work that is lost, and the target node."
    ),
    "PreemptionNotHelpful": (
        "Evicting every eligible pod would not free enough devices; the message counts the "
        "ineligible ones by reason."
    ),
    "Preempted": (
        "The pod was evicted for another workload, or to move it to healthy GPUs; the message "
        "states for which, why it was eligible, and its device."
    ),
    "Idle": "The pod's GPUs have been idle for longer than its queue allows.",
    "IdleEvicted": "The pod was evicted: its GPUs were idle for longer than its queue allows.",
    "FaultEvictionNotAllowed": (
        "A GPU of the pod or of its gang failed, but the pod has no controller that would "
        "recreate it elsewhere, so it is not evicted."
    ),
    # Why a pod is pending without a decision of the controller.
    "NotEvaluated": (
        "The controller has not evaluated the pod: no replica leads, it has not reached the pod "
        "yet, or kube-scheduler allocates the matching devices. The message has kube-scheduler's "
        "message."
    ),
    "SchedulingGated": (
        "The pod has a scheduling gate of another controller; nothing is allocated until it is "
        "removed."
    ),
    "ClaimNotFound": (
        "A claim that the pod references does not exist, is not created yet, or is being deleted."
    ),
    "RejectedByScheduler": (
        "The pod's devices are allocated, but kube-scheduler rejects the pod on their node."
    ),
    # Why a running pod or gang is not eligible for preemption.
    "Terminating": "It is being deleted or has finished.",
    "NoController": (
        "The pod has no controller that would recreate it on another node (none, or a DaemonSet). "
        'A bare pod is eligible if its annotation `ration.dev/preemptible` is "true".'
    ),
    "PriorityNotLower": "Its priority is not lower than that of the pending workload.",
    "QueueNotPreemptible": "Its queue is not preemptible.",
    "ReclaimNever": "Its queue does not allow other queues to reclaim what it borrows.",
    "WithinFairShare": "Its queue does not exceed its fair share.",
    "BeyondFairShare": "The pending workload would exceed the fair share of its queue.",
    "MinRuntimeNotReached": "It has run for less than the minRunTime of its queue.",
    "DisruptionBudget": (
        "A PodDisruptionBudget allows no further disruption, or several match a pod, which the "
        "eviction API rejects."
    ),
    "NotConverted": (
        "The pod requests an extended resource that was not converted to a claim: the label "
        '`ration.dev/convert: "false"` of its namespace prevents it, or the resource stands for a '
        "DeviceClass whose devices the controller allocates, and the class had no label "
        '`ration.dev/convert: "true"` or the webhook did not answer when the pod was created.'
    ),
    # Conditions of a Queue.
    "QueueAccepted": "The queue is in use.",
    "QueueInvalid": (
        "The queue contradicts another one and is ignored: its pods are scheduled as pods without "
        "a queue. The message names the field."
    ),
    "QueueBorrowing": "The queue uses more than its deserved share.",
    "QueueWithinDeserved": "The queue uses no more than its deserved share.",
    # Condition of a Node about its GPUs.
    "GPUsHealthy": "Every GPU of the node can be allocated.",
    "GPUsUnhealthy": "Some GPUs are tainted; the message names them and their taints.",
    # Why a claim cannot be allocated by the controller, whatever the node.
    "DeviceClassNotFound": "A request references a DeviceClass that does not exist.",
    "SelectorInvalid": (
        "A CEL selector does not compile, or uses a function that is not supported yet."
    ),
    "NotSupported": "The claim uses an API field that the controller does not support yet.",
    "ForeignDevices": (
        "The claim combines devices that the controller allocates with devices that kube-scheduler "
        "allocates, so neither can allocate all of it."
    ),
    "TooManyDevices": "The claim requests more than 32 devices.",
    "ConfigInvalid": "The opaque configuration is invalid.",
    # Why a node does not fit the pod.
    "NodeNotReady": "The node is not ready.",
    "NodeCordoned": "The node is cordoned and the pod does not tolerate it.",
    "NodeTainted": "The node has a taint that the pod does not tolerate.",
    "NodeMismatch": "The node does not match the pod's nodeSelector or required node affinity.",
    "NodeFull": "The node has insufficient CPU, memory, pods or another resource.",
    "NodePortTaken": "A host port of the pod is in use on the node.",
    "NodeVolume": (
        "A volume of the pod is not accessible from the node, or is unbound and cannot be bound "
        "or provisioned for it."
    ),
    "NodeVolumeLimit": (
        "The node has reached the volume limit of a storage driver, as in its CSINode."
    ),
    "NodeVolumeInUse": "A ReadWriteOncePod volume of the pod is in use by another pod.",
    "NodePodAffinity": "The node does not satisfy the pod's required pod affinity.",
    "NodePodAntiAffinity": (
        "The node does not satisfy the required anti-affinity of the pod or of an existing pod."
    ),
    "NodeTopologySpread": "The node does not satisfy the pod's topology spread constraints.",
    "NodePinned": "Another claim of the pod is allocated on another node.",
    "SearchBudgetExceeded": (
        "The search for devices exceeded its step budget; the claim may still fit there. Fewer "
        "devices per claim, or fewer constraints, make the search shorter."
    ),
    "AllocatorError": (
        "An error ended the search on the node: a selector fails on a device, or allocationMode "
        "All meets an incomplete pool or a constraint that excludes a device."
    ),
    "NodeBackedOff": "kube-scheduler rejected this pod on the node a short time ago.",
    "OtherClaimUnsatisfied": (
        "The node has devices for the pod's claims that the controller allocates, but not also for "
        "those that kube-scheduler allocates."
    ),
    # Why a device does not fit a request.
    "MultipleMpsDaemons": (
        "A container can use one MPS daemon and no GPU outside it; the device would be a second "
        "GPU of a container that uses one."
    ),
    "DeviceInUse": (
        "The device is allocated to another claim, or held by a Reservation or by backfill; the "
        "message states by which, and until when."
    ),
    "CountersExhausted": (
        "Another device of the same GPU is in use or held, and the rest of the GPU is too small; "
        "the message states by which."
    ),
    "IncompatibleGroups": (
        "The device has no compatibility group in common with those that draw on the same counter "
        "set."
    ),
    "DeviceTainted": "The device has a taint that the request does not tolerate.",
    "DeviceCordoned": (
        "An operator cordoned the GPU or the whole node; `ration uncordon` makes it available."
    ),
    "DeviceNotManaged": (
        "kube-scheduler allocates the device: neither its ResourceSlice nor a DeviceTaintRule "
        "gives it the allocator taint."
    ),
    "SelectorMismatch": "A selector does not match the device.",
    "SelectorFailed": "A selector failed on the device at run time.",
    "ConstraintNotSatisfied": (
        "The device does not satisfy a constraint of the claim together with the devices chosen "
        "before it."
    ),
    "InsufficientCapacity": "The device has less of a capacity than requested.",
    "UnsupportedDeviceFields": (
        "The device uses an API field that the controller does not serve; the message names it."
    ),
    "PoolIncomplete": "ResourceSlices of the device's pool are missing or invalid.",
}
