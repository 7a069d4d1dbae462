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
    POD_BOUND_TO_OTHER_NODE = "PodBoundToOtherNode"
    NODE_NOT_FOUND = "NodeNotFound"
    ALLOCATION_FAILED = "AllocationFailed"
    QUEUE_LIMIT_EXCEEDED = "QueueLimitExceeded"
    POD_EVICTED = "PodEvicted"
    EVICTION_NOT_ALLOWED = "EvictionNotAllowed"
    GANG_PENDING = "GangPending"
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
    NODE_SHAPE_MISMATCH = "NodeShapeMismatch"
    NODE_ARRIVING = "NodeArriving"
    NODE_INTERRUPTED = "NodeInterrupted"

    # Preemption.
    PREEMPTING = "Preempting"
    PREEMPTION_NOT_HELPFUL = "PreemptionNotHelpful"
    PREEMPTED = "Preempted"
    IDLE = "Idle"
    IDLE_EVICTED = "IdleEvicted"
    FAULT_EVICTION_NOT_ALLOWED = "FaultEvictionNotAllowed"

    # Why a pod waits without an answer of the controller's.
    NOT_EVALUATED = "NotEvaluated"
    SCHEDULING_GATED = "SchedulingGated"
    CLAIM_NOT_FOUND = "ClaimNotFound"
    REJECTED_BY_SCHEDULER = "RejectedByScheduler"

    # Why a running pod or gang may not go for another, whatever that would free.
    TERMINATING = "Terminating"
    NO_CONTROLLER = "NoController"
    PRIORITY_NOT_LOWER = "PriorityNotLower"
    QUEUE_NOT_PREEMPTIBLE = "QueueNotPreemptible"
    RECLAIM_NEVER = "ReclaimNever"
    WITHIN_FAIR_SHARE = "WithinFairShare"
    BEYOND_FAIR_SHARE = "BeyondFairShare"
    MIN_RUNTIME_NOT_REACHED = "MinRuntimeNotReached"
    DISRUPTION_BUDGET = "DisruptionBudget"
    NOT_CONVERTED = "NotConverted"

    # Conditions of a Queue.
    QUEUE_ACCEPTED = "QueueAccepted"
    QUEUE_INVALID = "QueueInvalid"
    QUEUE_BORROWING = "QueueBorrowing"
    QUEUE_WITHIN_DESERVED = "QueueWithinDeserved"

    # Condition of a Node about its GPUs.
    GPUS_HEALTHY = "GPUsHealthy"
    GPUS_UNHEALTHY = "GPUsUnhealthy"

    # Why a claim cannot be allocated by the controller, whatever the node.
    DEVICE_CLASS_NOT_FOUND = "DeviceClassNotFound"
    SELECTOR_INVALID = "SelectorInvalid"
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
    SEARCH_BUDGET_EXCEEDED = "SearchBudgetExceeded"
    ALLOCATOR_ERROR = "AllocatorError"
    NODE_BACKED_OFF = "NodeBackedOff"
    OTHER_CLAIM_UNSATISFIED = "OtherClaimUnsatisfied"

    # Why a device does not fit a request.
    MULTIPLE_MPS_DAEMONS = "MultipleMpsDaemons"
    DEVICE_IN_USE = "DeviceInUse"
    COUNTERS_EXHAUSTED = "CountersExhausted"
    INCOMPATIBLE_GROUPS = "IncompatibleGroups"
    DEVICE_TAINTED = "DeviceTainted"
    DEVICE_CORDONED = "DeviceCordoned"
    DEVICE_NOT_MANAGED = "DeviceNotManaged"
    SELECTOR_MISMATCH = "SelectorMismatch"
    SELECTOR_FAILED = "SelectorFailed"
    CONSTRAINT_NOT_SATISFIED = "ConstraintNotSatisfied"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    UNSUPPORTED_DEVICE_FIELDS = "UnsupportedDeviceFields"
    POOL_INCOMPLETE = "PoolIncomplete"

    # How a claim's devices are on their node.
    PREPARED = "Prepared"
    REFUSAL_CLEARED = "RefusalCleared"

    # Why a node refuses to prepare a claim.
    CLAIM_REPLACED = "ClaimReplaced"
    CLAIM_NOT_ALLOCATED = "ClaimNotAllocated"
    CLAIM_ALREADY_UNPREPARED = "ClaimAlreadyUnprepared"
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
    DEVICE_TAINT_RULES_DISABLED = "DeviceTaintRulesDisabled"
    GPU_UNREADABLE = "GpuUnreadable"
    SHARING_DISABLED = "SharingDisabled"
    CROSS_NAMESPACE_SHARING = "CrossNamespaceSharing"
    ISOLATION_TOO_WEAK = "IsolationTooWeak"
    SHARING_CONFLICT = "SharingConflict"
    ADMIN_ACCESS_REQUIRED = "AdminAccessRequired"
    MPS_FAILED = "MpsFailed"
    MPS_RECOVERED = "MpsRecovered"
    MPS_CLIENT_BLOCKED = "MpsClientBlocked"
    MPS_CONTROL_HELD = "MpsControlHeld"
    MPS_CONTROL_FREED = "MpsControlFreed"
    SHARE_EXCEEDED = "ShareExceeded"
    USAGE_WITHIN_SHARE = "UsageWithinShare"
    DRIVER_NOT_READY = "DriverNotReady"

    # Reasons for not publishing a node's devices: another agent may give out the same GPUs.
    DRIVER_NAME_CONFLICT = "DriverNameConflict"
    DEVICE_PLUGIN_PRESENT = "DevicePluginPresent"
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


KNOWN = {reason.value: reason for reason in Reason}
"""Every reason by its spelling."""

RENAMED: Final[Mapping[str, Reason]] = {
    "PodKept": Reason.EVICTION_NOT_ALLOWED,
    "FaultKept": Reason.FAULT_EVICTION_NOT_ALLOWED,
    "GangWaits": Reason.GANG_PENDING,
    "PreemptionInVain": Reason.PREEMPTION_NOT_HELPFUL,
    "NotAnswered": Reason.NOT_EVALUATED,
    "SchedulerRefuses": Reason.REJECTED_BY_SCHEDULER,
    "GoingAlready": Reason.TERMINATING,
    "NotMadeAgain": Reason.NO_CONTROLLER,
    "RanTooShortly": Reason.MIN_RUNTIME_NOT_REACHED,
    "ClassMissing": Reason.DEVICE_CLASS_NOT_FOUND,
    "ClaimMissing": Reason.CLAIM_NOT_FOUND,
    "SelectorUnusable": Reason.SELECTOR_INVALID,
    "SearchGivenUp": Reason.SEARCH_BUDGET_EXCEEDED,
    "SearchBroken": Reason.ALLOCATOR_ERROR,
    "ContainerDaemons": Reason.MULTIPLE_MPS_DAEMONS,
    "DeviceTaken": Reason.DEVICE_IN_USE,
    "CountersTaken": Reason.COUNTERS_EXHAUSTED,
    "DeviceNotOurs": Reason.DEVICE_NOT_MANAGED,
    "ConstraintUnmet": Reason.CONSTRAINT_NOT_SATISFIED,
    "CapacityShort": Reason.INSUFFICIENT_CAPACITY,
    "DeviceBeyond": Reason.UNSUPPORTED_DEVICE_FIELDS,
    "ClaimLetGo": Reason.CLAIM_ALREADY_UNPREPARED,
    "SharingOff": Reason.SHARING_DISABLED,
    "NamespacesApart": Reason.CROSS_NAMESPACE_SHARING,
    "SharingDisagrees": Reason.SHARING_CONFLICT,
    "AdminOnly": Reason.ADMIN_ACCESS_REQUIRED,
    "MpsClientWaits": Reason.MPS_CLIENT_BLOCKED,
    "ShareKept": Reason.USAGE_WITHIN_SHARE,
    "DevicePluginBeside": Reason.DEVICE_PLUGIN_PRESENT,
    "OtherDriver": Reason.DRIVER_NAME_CONFLICT,
    "QueueBorrows": Reason.QUEUE_BORROWING,
    "QueueRefused": Reason.QUEUE_INVALID,
    "NodeShapeContradicted": Reason.NODE_SHAPE_MISMATCH,
    "BoundAwayFromClaim": Reason.POD_BOUND_TO_OTHER_NODE,
    "QueueLimit": Reason.QUEUE_LIMIT_EXCEEDED,
}
"""Reasons by their former names, which conditions of an earlier version may still have."""


def current_name(name: str) -> str:
    """Return the present name of a reason that was read; a name that is not renamed stays."""
    renamed = RENAMED.get(name)
    return name if renamed is None else renamed.value
