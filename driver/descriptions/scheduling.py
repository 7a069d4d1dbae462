"""Meanings of the reasons that the controller gives: of waiting, placing and making room."""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    # What happened to a claim or a pod.
    "Allocated": "The claim got its devices; the message says which, where and why.",
    "NoFit": (
        "No node has what the pod's claims ask; the message says per node how many devices fit "
        "and what was lacking, then the nearest fit: how much is missing there, and which pods "
        "are in the way."
    ),
    "AllocationCleared": (
        "The scheduler refused the pod on the node of its devices, so they were freed; the "
        "message quotes the scheduler."
    ),
    "PodBoundToOtherNode": (
        "The pod is bound to a node on which its claim cannot be allocated; the message says why."
    ),
    "NodeNotFound": "The pod names a node (spec.nodeName) that does not exist.",
    "AllocationFailed": (
        "The devices were chosen but the API server refused the write; it is tried again."
    ),
    "QueueLimitExceeded": (
        "The pod's queue, or a queue above it, may not have more; the message says of what."
    ),
    "PodEvicted": (
        "The pod's claim can never be prepared, or is used beyond its share; the pod's owner "
        "makes another pod. The message says which."
    ),
    "EvictionNotAllowed": (
        "The pod's claim is used beyond its share, and nobody would make the pod again: it stays."
    ),
    "GangPending": "The pod's gang is not complete yet, or one of its pods has a scheduling gate.",
    "GangInvalid": (
        "What the pods of a gang say of it makes no gang; the message names the annotation. None "
        "of them is placed until it is put right."
    ),
    "GangReleased": (
        "The gang could not start as a whole, so the devices of its pods were freed; it is "
        "placed again when all of it fits."
    ),
    # What becomes of a Reservation.
    "ReservationPending": "No devices were found for the Reservation yet.",
    "ReservationRefused": (
        "What the Reservation asks cannot be had as it is; the message names the field."
    ),
    "ReservationHeld": "Devices are held for the holder.",
    "ReservationUsed": "The holder has the devices.",
    "ReservationExpired": "Nobody came for the devices in time: they were given back.",
    # Nodes that are asked for.
    "NodesRequested": (
        "Nothing that is there has room, so nodes were asked of the autoscaler; the message says "
        "how many of which shape, and how long that takes as a rule."
    ),
    "NoNodeShapeFits": (
        "No node that an autoscaler can bring would have room either, so none is asked for; the "
        "message says what each shape lacks."
    ),
    "NodeArrived": "A node that was asked for is there with all its GPUs.",
    "NodeNotArrived": (
        "A node that was asked for did not come in time, or came without its GPUs: it is not "
        "waited for any more, and none of its shape is asked for a while."
    ),
    "NodeShapeMismatch": (
        "A node is not as the document of shapes says of its shape; the message names the field. "
        "What the node is counts."
    ),
    "NodeArriving": "The node was asked for something else and is not complete yet.",
    "NodeInterrupted": "The node is about to be taken away (a spot interruption, a taint says so).",
    # Who goes for whom.
    "Preempting": (
        "Pods are evicted so that this one, or its gang, can be placed; the message names them, "
        "what is lost, and where it goes."
    ),
    "PreemptionNotHelpful": (
        "Evicting all who may go would not make room; the message counts who may not, and why."
    ),
    "Preempted": (
        "The pod was evicted so that another could be placed, or so that it is placed on GPUs "
        "that work; the message says for which, by what right, and which device it had."
    ),
    "Idle": "The GPUs of the pod did nothing for longer than its queue allows.",
    "IdleEvicted": (
        "The pod's GPUs did nothing for longer than its queue allows, so it was evicted."
    ),
    "FaultEvictionNotAllowed": (
        "A GPU of the pod, or of its gang, failed, and it stays where it is: nobody would make "
        "it again elsewhere."
    ),
    # Why a pod waits without an answer of the controller's.
    "NotEvaluated": (
        "Nobody has answered the pod: no controller leads, it has yet to look, or the devices "
        "that would do are kube-scheduler's; the message has kube-scheduler's words."
    ),
    "SchedulingGated": (
        "Another's scheduling gate is on the pod: nothing is allocated before it goes."
    ),
    "ClaimNotFound": (
        "A claim that the pod names is not there, is not made yet, or is being deleted."
    ),
    "RejectedByScheduler": (
        "The pod's devices are allocated, and kube-scheduler refuses it on their node."
    ),
    # Why a running pod or gang may not go for another, whatever that would free.
    "Terminating": "It is being deleted, or has ended: it goes by itself.",
    "NoController": (
        "Nobody would make the pod again elsewhere: it has no owner, or one that makes it for "
        'the same node. A bare pod may go where `ration.dev/preemptible` is "true".'
    ),
    "PriorityNotLower": "Its priority is not below that of who waits.",
    "QueueNotPreemptible": "Pods of its queue are not evicted for others.",
    "ReclaimNever": "Other queues do not take back what its queue has borrowed.",
    "WithinFairShare": "Its queue has no more than its fair share.",
    "BeyondFairShare": "With what waits, the waiting queue would have more than its fair share.",
    "MinRuntimeNotReached": "It has not run as long as its queue's minRunTime.",
    "DisruptionBudget": (
        "A PodDisruptionBudget has too few disruptions left; or more than one guards a pod, "
        "which the API server never evicts then."
    ),
    "NotConverted": (
        "The pod waits for a device plugin's resource, and the label `ration.dev/convert: "
        '"false"` of its namespace keeps it from being converted to a claim.'
    ),
    # What a Queue's conditions say.
    "QueueAccepted": "The queue counts.",
    "QueueInvalid": (
        "The queue does not go with the others and is left out: its pods are as those of no "
        "queue. The message names the field."
    ),
    "QueueBorrowing": "The queue has more than it deserves, while others do not.",
    "QueueWithinDeserved": "The queue has no more than it deserves.",
    # What a Node's condition says of its GPUs.
    "GPUsHealthy": "Every GPU of the node can be given to claims.",
    "GPUsUnhealthy": "The message says which GPUs are tainted, and by what.",
    # Why a claim cannot be allocated by the controller, whatever the node.
    "DeviceClassNotFound": "A request names a DeviceClass that does not exist.",
    "SelectorInvalid": (
        "A CEL selector does not compile, or uses a function that is not provided yet."
    ),
    "NotSupported": "The claim uses a field of the API that the controller does not weigh yet.",
    "ForeignDevices": "The claim mixes devices of this driver with another driver's.",
    "TooManyDevices": "The claim asks more than 32 devices.",
    "ConfigInvalid": "Opaque configuration cannot be read.",
    # Why a node does not fit the pod.
    "NodeNotReady": "The node is not ready.",
    "NodeCordoned": "The node is cordoned and the pod does not tolerate it.",
    "NodeTainted": "The node has a taint that the pod does not tolerate.",
    "NodeMismatch": "The pod's nodeSelector or required affinity excludes it.",
    "NodeFull": "The node lacks CPU, memory, pods or another resource.",
    "NodePortTaken": "A host port of the pod is taken on the node.",
    "NodeVolume": (
        "A volume of the pod cannot be reached from the node, or is not bound and cannot be "
        "bound or made for it."
    ),
    "NodeVolumeLimit": (
        "A storage driver attaches no more volumes to the node (its CSINode says how many)."
    ),
    "NodeVolumeInUse": "A volume that one pod alone may use is in use by another.",
    "NodePodAffinity": (
        "The pod wants to be near others by its required affinity, and none is near the node."
    ),
    "NodePodAntiAffinity": (
        "A required anti-affinity, the pod's own or that of a placed one, keeps it away from a "
        "pod near the node."
    ),
    "NodeTopologySpread": "The pod's topology spread constraint would be broken there.",
    "NodePinned": "Another claim of the pod is allocated on another node.",
    "SearchBudgetExceeded": (
        "The search for devices took too many steps and ended; something may fit there. Fewer "
        "devices a claim, or fewer constraints, make it shorter."
    ),
    "AllocatorError": (
        "An error ended the search on the node: a selector that fails on a device, or All where "
        "a pool is incomplete or a constraint keeps a device out."
    ),
    "NodeBackedOff": "The scheduler refused this pod on the node a short while ago.",
    # Why a device does not fit a request.
    "MultipleMpsDaemons": (
        "A container may use one MPS daemon, and no GPU outside it: the device would be another "
        "GPU of a container that has one."
    ),
    "DeviceInUse": (
        "The device is allocated to another claim, or kept for somebody by a Reservation or by "
        "backfill: the message says by whom, and until when."
    ),
    "CountersExhausted": (
        "Another face of the same GPU is in use, or kept for somebody, and what is left of the "
        "GPU is too little: the message says by whom."
    ),
    "DeviceTainted": "The device has a taint that the request does not tolerate.",
    "DeviceCordoned": (
        "Somebody took the GPU, or all of the node, out of use: `ration uncordon` brings it back."
    ),
    "DeviceNotManaged": (
        "The device is kube-scheduler's to allocate: its slice carries no allocator taint."
    ),
    "SelectorMismatch": "A selector is false for the device.",
    "SelectorFailed": "A selector failed on the device at run time.",
    "ConstraintNotSatisfied": (
        "A constraint of the claim keeps the device from going with those chosen before it."
    ),
    "InsufficientCapacity": "The device has less of a capacity than is asked.",
    "UnsupportedDeviceFields": (
        "The device uses a field of the API that the controller does not support yet."
    ),
    "PoolIncomplete": "Slices of the device's pool are missing or invalid.",
}
