"""Every reason we give, once: events, refusals, the reference page and the CLI use these (D19).

A reason's value is what a user sees; its `meaning` is the line of docs/reference/reasons.md.
"""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why something happened or did not."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """A string with its meaning beside it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    # What happened to a claim or a pod.
    ALLOCATED = ("Allocated", "The claim got its devices; the message says which, where and why.")
    NO_FIT = (
        "NoFit",
        (
            "No node has what the pod's claims ask; the message says per node how many devices fit "
            "and what was lacking, then the nearest fit: how much is missing there, and which pods "
            "are in the way."
        ),
    )
    ALLOCATION_CLEARED = (
        "AllocationCleared",
        (
            "The scheduler refused the pod on the node of its devices, so they were freed; the "
            "message quotes the scheduler."
        ),
    )
    BOUND_AWAY = (
        "BoundAwayFromClaim",
        "The pod is bound to a node on which its claim cannot be allocated; the message says why.",
    )
    NODE_NOT_FOUND = ("NodeNotFound", "The pod names a node (spec.nodeName) that does not exist.")
    ALLOCATION_FAILED = (
        "AllocationFailed",
        "The devices were chosen but the API server refused the write; it is tried again.",
    )
    QUEUE_LIMIT = (
        "QueueLimit",
        "The pod's queue, or a queue above it, may not have more; the message says of what.",
    )
    POD_EVICTED = (
        "PodEvicted",
        (
            "The pod's claim can never be prepared, or is used beyond its share; the pod's owner "
            "makes another pod. The message says which."
        ),
    )
    POD_KEPT = (
        "PodKept",
        "The pod's claim is used beyond its share, and nobody would make the pod again: it stays.",
    )
    GANG_WAITS = (
        "GangWaits",
        "The pod's gang is not complete yet, or one of its pods has a scheduling gate.",
    )
    GANG_INVALID = (
        "GangInvalid",
        (
            "What the pods of a gang say of it makes no gang; the message names the annotation. "
            "None of them is placed until it is put right."
        ),
    )
    GANG_RELEASED = (
        "GangReleased",
        (
            "The gang could not start as a whole, so the devices of its pods were freed; it is "
            "placed again when all of it fits."
        ),
    )

    # What becomes of a Reservation.
    RESERVATION_PENDING = ("ReservationPending", "No devices were found for the Reservation yet.")
    RESERVATION_REFUSED = (
        "ReservationRefused",
        "What the Reservation asks cannot be had as it is; the message names the field.",
    )
    RESERVATION_HELD = ("ReservationHeld", "Devices are held for the holder.")
    RESERVATION_USED = ("ReservationUsed", "The holder has the devices.")
    RESERVATION_EXPIRED = (
        "ReservationExpired",
        "Nobody came for the devices in time: they were given back.",
    )

    # Nodes that are asked for.
    NODES_REQUESTED = (
        "NodesRequested",
        (
            "Nothing that is there has room, so nodes were asked of the autoscaler; the message "
            "says how many of which shape, and how long that takes as a rule."
        ),
    )
    NO_NODE_SHAPE_FITS = (
        "NoNodeShapeFits",
        (
            "No node that an autoscaler can bring would have room either, so none is asked for; "
            "the message says what each shape lacks."
        ),
    )
    NODE_ARRIVED = ("NodeArrived", "A node that was asked for is there with all its GPUs.")
    NODE_NOT_ARRIVED = (
        "NodeNotArrived",
        (
            "A node that was asked for did not come in time, or came without its GPUs: it is not "
            "waited for any more, and none of its shape is asked for a while."
        ),
    )
    NODE_SHAPE_CONTRADICTED = (
        "NodeShapeContradicted",
        (
            "A node is not as the document of shapes says of its shape; the message names the "
            "field. What the node is counts."
        ),
    )
    NODE_ARRIVING = (
        "NodeArriving",
        "The node was asked for something else and is not complete yet.",
    )
    NODE_INTERRUPTED = (
        "NodeInterrupted",
        "The node is about to be taken away (a spot interruption, a taint says so).",
    )

    # Who goes for whom.
    PREEMPTING = (
        "Preempting",
        (
            "Pods are evicted so that this one, or its gang, can be placed; the message names "
            "them, what is lost, and where it goes."
        ),
    )
    PREEMPTION_IN_VAIN = (
        "PreemptionInVain",
        "Evicting all who may go would not make room; the message counts who may not, and why.",
    )
    PREEMPTED = (
        "Preempted",
        (
            "The pod was evicted so that another could be placed, or so that it is placed on GPUs "
            "that work; the message says for which, by what right, and which device it had."
        ),
    )
    IDLE = ("Idle", "The GPUs of the pod did nothing for longer than its queue allows.")
    IDLE_EVICTED = (
        "IdleEvicted",
        "The pod's GPUs did nothing for longer than its queue allows, so it was evicted.",
    )
    FAULT_KEPT = (
        "FaultKept",
        (
            "A GPU of the pod, or of its gang, failed, and it stays where it is: nobody would make "
            "it again elsewhere."
        ),
    )

    # Why a pod waits without an answer of the controller's.
    NOT_ANSWERED = (
        "NotAnswered",
        (
            "Nobody has answered the pod: no controller leads, it has yet to look, or the devices "
            "that would do are kube-scheduler's; the message has kube-scheduler's words."
        ),
    )
    SCHEDULING_GATED = (
        "SchedulingGated",
        "Another's scheduling gate is on the pod: nothing is allocated before it goes.",
    )
    CLAIM_MISSING = (
        "ClaimMissing",
        "A claim that the pod names is not there, is not made yet, or is being deleted.",
    )
    SCHEDULER_REFUSES = (
        "SchedulerRefuses",
        "The pod's devices are allocated, and kube-scheduler refuses it on their node.",
    )

    # Why a running pod or gang may not go for another, whatever that would free.
    GOING_ALREADY = ("GoingAlready", "It is being deleted, or has ended: it goes by itself.")
    NOT_MADE_AGAIN = (
        "NotMadeAgain",
        (
            "Nobody would make the pod again elsewhere: it has no owner, or one that makes it for "
            'the same node. A bare pod may go where `ration.dev/preemptible` is "true".'
        ),
    )
    PRIORITY_NOT_LOWER = ("PriorityNotLower", "Its priority is not below that of who waits.")
    QUEUE_NOT_PREEMPTIBLE = ("QueueNotPreemptible", "Pods of its queue are not evicted for others.")
    RECLAIM_NEVER = ("ReclaimNever", "Other queues do not take back what its queue has borrowed.")
    WITHIN_FAIR_SHARE = ("WithinFairShare", "Its queue has no more than its fair share.")
    BEYOND_FAIR_SHARE = (
        "BeyondFairShare",
        "With what waits, the waiting queue would have more than its fair share.",
    )
    RAN_TOO_SHORTLY = ("RanTooShortly", "It has not run as long as its queue's minRunTime.")
    DISRUPTION_BUDGET = (
        "DisruptionBudget",
        (
            "A PodDisruptionBudget has too few disruptions left; or more than one guards a pod, "
            "which the API server never evicts then."
        ),
    )
    NOT_CONVERTED = (
        "NotConverted",
        (
            "The pod waits for a device plugin's resource, and the label `ration.dev/convert: "
            '"false"` of its namespace keeps it from being converted to a claim.'
        ),
    )

    # What a Queue's conditions say.
    QUEUE_ACCEPTED = ("QueueAccepted", "The queue counts.")
    QUEUE_REFUSED = (
        "QueueRefused",
        (
            "The queue does not go with the others and is left out: its pods are as those of no "
            "queue. The message names the field."
        ),
    )
    QUEUE_BORROWS = ("QueueBorrows", "The queue has more than it deserves, while others do not.")
    QUEUE_WITHIN_DESERVED = (
        "QueueWithinDeserved",
        "The queue has no more than it deserves.",
    )

    # What a Node's condition says of its GPUs.
    GPUS_HEALTHY = ("GPUsHealthy", "Every GPU of the node can be given to claims.")
    GPUS_UNHEALTHY = ("GPUsUnhealthy", "The message says which GPUs are tainted, and by what.")

    # Why a claim cannot be allocated by the controller, whatever the node.
    CLASS_MISSING = ("ClassMissing", "A request names a DeviceClass that does not exist.")
    SELECTOR_UNUSABLE = (
        "SelectorUnusable",
        "A CEL selector does not compile, or uses a function that is not provided yet.",
    )
    NOT_SUPPORTED = (
        "NotSupported",
        "The claim uses a field of the API that the controller does not weigh yet.",
    )
    FOREIGN_DEVICES = (
        "ForeignDevices",
        "The claim mixes devices of this driver with another driver's.",
    )
    TOO_MANY_DEVICES = ("TooManyDevices", "The claim asks more than 32 devices.")
    CONFIG_INVALID = ("ConfigInvalid", "Opaque configuration cannot be read.")

    # Why a node does not fit the pod.
    NODE_NOT_READY = ("NodeNotReady", "The node is not ready.")
    NODE_CORDONED = ("NodeCordoned", "The node is cordoned and the pod does not tolerate it.")
    NODE_TAINTED = ("NodeTainted", "The node has a taint that the pod does not tolerate.")
    NODE_MISMATCH = ("NodeMismatch", "The pod's nodeSelector or required affinity excludes it.")
    NODE_FULL = ("NodeFull", "The node lacks CPU, memory, pods or another resource.")
    NODE_PORT_TAKEN = ("NodePortTaken", "A host port of the pod is taken on the node.")
    NODE_VOLUME = (
        "NodeVolume",
        (
            "A volume of the pod cannot be reached from the node, or is not bound and cannot be "
            "bound or made for it."
        ),
    )
    NODE_VOLUME_LIMIT = (
        "NodeVolumeLimit",
        "A storage driver attaches no more volumes to the node (its CSINode says how many).",
    )
    NODE_VOLUME_IN_USE = (
        "NodeVolumeInUse",
        "A volume that one pod alone may use is in use by another.",
    )
    NODE_POD_AFFINITY = (
        "NodePodAffinity",
        "The pod wants to be near others by its required affinity, and none is near the node.",
    )
    NODE_POD_ANTI_AFFINITY = (
        "NodePodAntiAffinity",
        (
            "A required anti-affinity, the pod's own or that of a placed one, keeps it away from "
            "a pod near the node."
        ),
    )
    NODE_TOPOLOGY_SPREAD = (
        "NodeTopologySpread",
        "The pod's topology spread constraint would be broken there.",
    )
    NODE_PINNED = ("NodePinned", "Another claim of the pod is allocated on another node.")
    SEARCH_GIVEN_UP = (
        "SearchGivenUp",
        (
            "The search for devices took too many steps and ended; something may fit there. Fewer "
            "devices a claim, or fewer constraints, make it shorter."
        ),
    )
    SEARCH_BROKEN = (
        "SearchBroken",
        (
            "An error ended the search on the node: a selector that fails on a device, or All "
            "where a pool is incomplete or a constraint keeps a device out."
        ),
    )
    NODE_BACKED_OFF = (
        "NodeBackedOff",
        "The scheduler refused this pod on the node a short while ago.",
    )

    # Why a device does not fit a request.
    CONTAINER_DAEMONS = (
        "ContainerDaemons",
        (
            "A container may use one MPS daemon, and no GPU outside it: the device would be "
            "another GPU of a container that has one."
        ),
    )
    DEVICE_TAKEN = (
        "DeviceTaken",
        (
            "The device is allocated to another claim, or kept for somebody by a Reservation or by "
            "backfill: the message says by whom, and until when."
        ),
    )
    COUNTERS_TAKEN = (
        "CountersTaken",
        (
            "Another face of the same GPU is in use, or kept for somebody, and what is left of the "
            "GPU is too little: the message says by whom."
        ),
    )
    DEVICE_TAINTED = ("DeviceTainted", "The device has a taint that the request does not tolerate.")
    DEVICE_CORDONED = (
        "DeviceCordoned",
        "Somebody took the GPU, or all of the node, out of use: `ration uncordon` brings it back.",
    )
    DEVICE_NOT_OURS = (
        "DeviceNotOurs",
        "The device is kube-scheduler's to allocate: its slice carries no allocator taint.",
    )
    SELECTOR_MISMATCH = ("SelectorMismatch", "A selector is false for the device.")
    SELECTOR_FAILED = ("SelectorFailed", "A selector failed on the device at run time.")
    CONSTRAINT_UNMET = (
        "ConstraintUnmet",
        "A constraint of the claim keeps the device from going with those chosen before it.",
    )
    CAPACITY_SHORT = ("CapacityShort", "The device has less of a capacity than is asked.")
    DEVICE_BEYOND = (
        "DeviceBeyond",
        "The device uses a field of the API that the controller does not weigh yet.",
    )
    POOL_INCOMPLETE = ("PoolIncomplete", "Slices of the device's pool are missing or invalid.")

    # How a claim's devices are on their node.
    PREPARED = ("Prepared", "The claim's devices are ready on their node.")
    REFUSAL_CLEARED = (
        "RefusalCleared",
        "What kept the claim from being prepared is over; the kubelet is asked to try again.",
    )

    # Why a node refuses to prepare a claim.
    CLAIM_REPLACED = ("ClaimReplaced", "A claim of that name exists, with another UID.")
    CLAIM_NOT_ALLOCATED = ("ClaimNotAllocated", "The claim has no allocation.")
    CLAIM_LET_GO = (
        "ClaimLetGo",
        "The claim was unprepared on the node just before, and no pod has reserved it since.",
    )
    DEVICE_OVERLAP = (
        "DeviceOverlap",
        "On this node prepared claims hold the GPU, the same part of it, or too much of it.",
    )
    DEVICE_UNKNOWN = ("DeviceUnknown", "The allocated device is not, or no longer, on this node.")
    PREPARE_FAILED = ("PrepareFailed", "A step of preparing the devices failed and was undone.")
    UNPREPARE_FAILED = (
        "UnprepareFailed",
        "Releasing the claim's devices failed; the kubelet tries again.",
    )
    CLAIM_RECLAIMED = (
        "ClaimReclaimed",
        (
            "A claim that is gone was still prepared on the node; its devices were released. The "
            "message says which."
        ),
    )
    STILL_RUNNING = (
        "StillRunning",
        "Preparing or releasing takes longer than a call may; the kubelet's next try joins it.",
    )
    SLICES_INVALID = ("SlicesInvalid", "The node's devices break a limit of the API.")
    FIELDS_DROPPED = (
        "FieldsDropped",
        "The API server dropped fields of the node's slices: a feature is switched off there.",
    )
    ALLOCATOR_CHANGING = (
        "AllocatorChanging",
        "The node's devices pass to another allocator: for a while nobody gives them out.",
    )
    ALLOCATOR_CHANGED = (
        "AllocatorChanged",
        "A handover of the node's devices is over; the message says who gives them out now.",
    )
    ALLOCATOR_LABEL_INVALID = (
        "AllocatorLabelInvalid",
        "The node's label ration.dev/allocator names no allocator; the plugin's flag holds.",
    )
    GPU_UNREADABLE = (
        "GpuUnreadable",
        "A GPU is counted by the driver and cannot be read, or hangs; the others are served.",
    )
    SHARING_OFF = (
        "SharingOff",
        "The cluster lacks what shared and partitioned GPUs need: whole GPUs are published only.",
    )
    NAMESPACES_APART = (
        "NamespacesApart",
        "Claims of two namespaces may share a GPU only where both their classes allow it.",
    )
    ISOLATION_TOO_WEAK = (
        "IsolationTooWeak",
        "The request asks for parts of GPUs that are kept apart better than the device is.",
    )
    SHARING_DISAGREES = (
        "SharingDisagrees",
        "Claims that share a GPU must agree on what is one setting for all of it.",
    )
    ADMIN_ONLY = ("AdminOnly", "The device is for claims with administrative access only.")
    MPS_FAILED = ("MpsFailed", "The claim's MPS daemon is gone or of no use; with its last words.")
    MPS_RECOVERED = ("MpsRecovered", "The MPS daemon serves again; start its containers anew.")
    MPS_CLIENT_WAITS = (
        "MpsClientWaits",
        "A process waits in cuInit behind the MPS server of another user; the message names both.",
    )
    SHARE_EXCEEDED = (
        "ShareExceeded",
        (
            "The claim's processes together use more memory of a GPU than it was given; the "
            "message names them."
        ),
    )
    SHARE_KEPT = ("ShareKept", "The claim's processes use no more memory than it was given.")
    DRIVER_NOT_READY = ("DriverNotReady", "The NVIDIA driver library is absent or not loaded.")

    # Why a node's devices are not published: somebody else may give out the same GPUs.
    OTHER_DRIVER = (
        "OtherDriver",
        (
            "Another driver uses this driver's name on the node; nothing is published beside it. "
            "Remove one of them, or install Ration under another name."
        ),
    )
    DEVICE_PLUGIN_BESIDE = (
        "DevicePluginBeside",
        (
            "A device plugin serves GPUs on the node: they would be given out twice. Take it off "
            "the node; --beside=device-plugin where it serves other GPUs."
        ),
    )
    MIG_CONFIG_PENDING = (
        "MigConfigPending",
        "The GPU Operator's MIG manager is changing the node's GPUs; it is waited for.",
    )

    # What the node's GPUs say of themselves.
    GPU_UNHEALTHY = (
        "GpuUnhealthy",
        "A GPU is tainted; the message says why, and what clears the taint.",
    )
    GPU_RECOVERED = ("GpuRecovered", "A GPU that was tainted is not any more.")
    GPU_QUARANTINED = (
        "GpuQuarantined",
        (
            "A GPU failed again and again and recovered each time: it is kept out until somebody "
            "clears it (explanation/health)."
        ),
    )
    GPU_QUARANTINE_CLEARED = (
        "GpuQuarantineCleared",
        "A GPU that had failed again and again is given out again, as the Node's annotation asked.",
    )
    GPU_RESET = (
        "GpuReset",
        "A GPU that asked for it was reset, or could not be; the message says how that went.",
    )
    GPU_APPLICATION_ERROR = (
        "GpuApplicationError",
        "A program on the GPU failed (an Xid of class application); the GPU is fine.",
    )
    GPU_NOTICE = (
        "GpuNotice",
        "The GPU driver reported something that asks for nothing now, or cannot report.",
    )


KNOWN = {one.value: one for one in Reason}
"""Every reason by its spelling."""
