"""Every reason we give, once: events, refusals, the reference page and the CLI use these (D19).

A reason's value is what a user sees; its `meaning` is its line of docs/reference/reasons.md, which
`driver.descriptions` holds: one module for the controller's reasons, one for the node's.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from driver.descriptions import node, scheduling

MEANINGS: Final[Mapping[str, str]] = {**scheduling.MEANINGS, **node.MEANINGS}
"""Meanings by the reason's name."""


class Reason(StrEnum):
    """Reason of an event, condition or refusal."""

    # Claims and pods.
    ALLOCATED = "Allocated"
    NO_FIT = "NoFit"
    ALLOCATION_CLEARED = "AllocationCleared"
    BOUND_AWAY = "BoundAwayFromClaim"
    NODE_NOT_FOUND = "NodeNotFound"
    ALLOCATION_FAILED = "AllocationFailed"
    QUEUE_LIMIT = "QueueLimit"
    POD_EVICTED = "PodEvicted"
    POD_KEPT = "PodKept"
    GANG_WAITS = "GangWaits"
    GANG_INVALID = "GangInvalid"
    GANG_RELEASED = "GangReleased"

    # Reservations.
    RESERVATION_PENDING = "ReservationPending"
    RESERVATION_REFUSED = "ReservationRefused"
    RESERVATION_HELD = "ReservationHeld"
    RESERVATION_USED = "ReservationUsed"
    RESERVATION_EXPIRED = "ReservationExpired"

    # Provisioned nodes.
    NODES_REQUESTED = "NodesRequested"
    NO_NODE_SHAPE_FITS = "NoNodeShapeFits"
    NODE_ARRIVED = "NodeArrived"
    NODE_NOT_ARRIVED = "NodeNotArrived"
    NODE_SHAPE_CONTRADICTED = "NodeShapeContradicted"
    NODE_ARRIVING = "NodeArriving"
    NODE_INTERRUPTED = "NodeInterrupted"

    # Preemption.
    PREEMPTING = "Preempting"
    PREEMPTION_IN_VAIN = "PreemptionInVain"
    PREEMPTED = "Preempted"
    IDLE = "Idle"
    IDLE_EVICTED = "IdleEvicted"
    FAULT_KEPT = "FaultKept"

    # Why a pod waits without an answer of the controller's.
    NOT_ANSWERED = "NotAnswered"
    SCHEDULING_GATED = "SchedulingGated"
    CLAIM_MISSING = "ClaimMissing"
    SCHEDULER_REFUSES = "SchedulerRefuses"

    # Why a running pod or gang may not go for another, whatever that would free.
    GOING_ALREADY = "GoingAlready"
    NOT_MADE_AGAIN = "NotMadeAgain"
    PRIORITY_NOT_LOWER = "PriorityNotLower"
    QUEUE_NOT_PREEMPTIBLE = "QueueNotPreemptible"
    RECLAIM_NEVER = "ReclaimNever"
    WITHIN_FAIR_SHARE = "WithinFairShare"
    BEYOND_FAIR_SHARE = "BeyondFairShare"
    RAN_TOO_SHORTLY = "RanTooShortly"
    DISRUPTION_BUDGET = "DisruptionBudget"
    NOT_CONVERTED = "NotConverted"

    # Conditions of a Queue.
    QUEUE_ACCEPTED = "QueueAccepted"
    QUEUE_REFUSED = "QueueRefused"
    QUEUE_BORROWS = "QueueBorrows"
    QUEUE_WITHIN_DESERVED = "QueueWithinDeserved"

    # Condition of a Node about its GPUs.
    GPUS_HEALTHY = "GPUsHealthy"
    GPUS_UNHEALTHY = "GPUsUnhealthy"

    # Why a claim cannot be allocated by the controller, whatever the node.
    CLASS_MISSING = "ClassMissing"
    SELECTOR_UNUSABLE = "SelectorUnusable"
    NOT_SUPPORTED = "NotSupported"
    FOREIGN_DEVICES = "ForeignDevices"
    TOO_MANY_DEVICES = "TooManyDevices"
    CONFIG_INVALID = "ConfigInvalid"

    # Why a node does not fit the pod.
    NODE_NOT_READY = "NodeNotReady"
    NODE_CORDONED = "NodeCordoned"
    NODE_TAINTED = "NodeTainted"
    NODE_MISMATCH = "NodeMismatch"
    NODE_FULL = "NodeFull"
    NODE_PORT_TAKEN = "NodePortTaken"
    NODE_VOLUME = "NodeVolume"
    NODE_VOLUME_LIMIT = "NodeVolumeLimit"
    NODE_VOLUME_IN_USE = "NodeVolumeInUse"
    NODE_POD_AFFINITY = "NodePodAffinity"
    NODE_POD_ANTI_AFFINITY = "NodePodAntiAffinity"
    NODE_TOPOLOGY_SPREAD = "NodeTopologySpread"
    NODE_PINNED = "NodePinned"
    SEARCH_GIVEN_UP = "SearchGivenUp"
    SEARCH_BROKEN = "SearchBroken"
    NODE_BACKED_OFF = "NodeBackedOff"

    # Why a device does not fit a request.
    CONTAINER_DAEMONS = "ContainerDaemons"
    DEVICE_TAKEN = "DeviceTaken"
    COUNTERS_TAKEN = "CountersTaken"
    DEVICE_TAINTED = "DeviceTainted"
    DEVICE_CORDONED = "DeviceCordoned"
    DEVICE_NOT_OURS = "DeviceNotOurs"
    SELECTOR_MISMATCH = "SelectorMismatch"
    SELECTOR_FAILED = "SelectorFailed"
    CONSTRAINT_UNMET = "ConstraintUnmet"
    CAPACITY_SHORT = "CapacityShort"
    DEVICE_BEYOND = "DeviceBeyond"
    POOL_INCOMPLETE = "PoolIncomplete"

    # How a claim's devices are on their node.
    PREPARED = "Prepared"
    REFUSAL_CLEARED = "RefusalCleared"

    # Why a node refuses to prepare a claim.
    CLAIM_REPLACED = "ClaimReplaced"
    CLAIM_NOT_ALLOCATED = "ClaimNotAllocated"
    CLAIM_LET_GO = "ClaimLetGo"
    DEVICE_OVERLAP = "DeviceOverlap"
    DEVICE_UNKNOWN = "DeviceUnknown"
    PREPARE_FAILED = "PrepareFailed"
    UNPREPARE_FAILED = "UnprepareFailed"
    CLAIM_RECLAIMED = "ClaimReclaimed"
    STILL_RUNNING = "StillRunning"
    SLICES_INVALID = "SlicesInvalid"
    FIELDS_DROPPED = "FieldsDropped"
    ALLOCATOR_CHANGING = "AllocatorChanging"
    ALLOCATOR_CHANGED = "AllocatorChanged"
    ALLOCATOR_LABEL_INVALID = "AllocatorLabelInvalid"
    GPU_UNREADABLE = "GpuUnreadable"
    SHARING_OFF = "SharingOff"
    NAMESPACES_APART = "NamespacesApart"
    ISOLATION_TOO_WEAK = "IsolationTooWeak"
    SHARING_DISAGREES = "SharingDisagrees"
    ADMIN_ONLY = "AdminOnly"
    MPS_FAILED = "MpsFailed"
    MPS_RECOVERED = "MpsRecovered"
    MPS_CLIENT_WAITS = "MpsClientWaits"
    MPS_CONTROL_HELD = "MpsControlHeld"
    MPS_CONTROL_FREED = "MpsControlFreed"
    SHARE_EXCEEDED = "ShareExceeded"
    SHARE_KEPT = "ShareKept"
    DRIVER_NOT_READY = "DriverNotReady"

    # Reasons for not publishing a node's devices: another agent may give out the same GPUs.
    OTHER_DRIVER = "OtherDriver"
    DEVICE_PLUGIN_BESIDE = "DevicePluginBeside"
    MIG_CONFIG_PENDING = "MigConfigPending"

    # Health of the node's GPUs.
    GPU_UNHEALTHY = "GpuUnhealthy"
    GPU_RECOVERED = "GpuRecovered"
    GPU_QUARANTINED = "GpuQuarantined"
    GPU_QUARANTINE_CLEARED = "GpuQuarantineCleared"
    GPU_RESET = "GpuReset"
    GPU_APPLICATION_ERROR = "GpuApplicationError"
    GPU_NOTICE = "GpuNotice"

    @property
    def meaning(self) -> str:
        """Return its meaning, in a sentence or two."""
        return MEANINGS[self.value]


KNOWN = {one.value: one for one in Reason}
"""Every reason by its spelling."""
