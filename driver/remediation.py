"""Remedies for each reason and condition: shown by `ration explain` and the troubleshooting page.

One line each, for a person who has just met it; `kubectl` and `ration` commands are as they are
typed. A new reason without its line fails a test.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from driver import names, reasons

R = reasons.Reason
_NOTHING = "Nothing: this is normal."
_BY_ITSELF = "Nothing: it is temporary."
_OTHER_NODE = "Change the pod or the node, or use another node."


class Condition(NamedTuple):
    """A condition that we write: its object, its meaning, and its remedy."""

    on: str
    meaning: str
    remedy: str


_WAITING: Mapping[R, str] = {
    R.ALLOCATED: _NOTHING,
    R.NO_FIT: (
        "Read the nearest fit at the end of the message: request less, free what it names, or add "
        "a node. `ration explain pod` counts what each node lacks; `ration defrag` plans moves."
    ),
    R.ALLOCATION_CLEARED: (
        "Read kube-scheduler's message and free what was insufficient there, such as CPU or a "
        "volume. The node is excluded for the pod for some time; other nodes are tried at once."
    ),
    R.POD_BOUND_TO_OTHER_NODE: (
        "Free what the message names on the pod's node, or delete the pod: kube-scheduler selects "
        "a node for its replacement, unless the pod sets spec.nodeName."
    ),
    R.NODE_NOT_FOUND: "Delete the pod, and set spec.nodeName to an existing node or leave it out.",
    R.ALLOCATION_FAILED: (
        "Nothing at first: the write is retried. If it persists, the message quotes the API "
        "server: missing rights (`ration doctor`), an admission policy, or an unreachable server."
    ),
    R.QUEUE_LIMIT_EXCEEDED: (
        "Wait until the queue uses less (`ration queues`), request less, or have the limit of the "
        "queue that the message names raised."
    ),
    R.NOT_EVALUATED: (
        "Check that a controller leads: `ration doctor`. If kube-scheduler allocates the matching "
        "devices, see its message in the pod's events."
    ),
    R.SCHEDULING_GATED: (
        "Ask the owner of the gate. Kueue's gate means that its queue has not admitted the pod "
        "yet (`kubectl get workloads`)."
    ),
    R.CLAIM_NOT_FOUND: (
        "Check that the ResourceClaim or ResourceClaimTemplate exists in the pod's namespace "
        "under that name; kube-controller-manager creates claims from templates."
    ),
    R.REJECTED_BY_SCHEDULER: (
        "Read kube-scheduler's message and free what is insufficient; after half a minute the "
        "devices are freed and other nodes are tried."
    ),
    R.NOT_CONVERTED: (
        "Remove the label `ration.dev/convert` from the namespace, or set it to `true` on the "
        "DeviceClass, and recreate the pod; or write a claim for the class: `ration generate "
        "claim`."
    ),
    R.POD_EVICTED: "Correct the claim template as the message says; replacement pods use it.",
    R.EVICTION_NOT_ALLOWED: (
        "Delete the pod yourself, with the PodGroup if that shares the claim, or reduce its memory "
        "use to its share."
    ),
}
_GANGS: Mapping[R, str] = {
    R.GANG_PENDING: (
        "Create the missing members, or correct the size of the gang: `ration.dev/gang-size`."
    ),
    R.GANG_INVALID: "Correct the annotation that the message names on every pod of the gang.",
    R.GANG_RELEASED: (
        "Nothing: it is placed again when all of it fits. If it recurs, the message names the "
        "member that could not start; a longer `ration.dev/gang-timeout` helps slow nodes."
    ),
}
_MAKING_ROOM: Mapping[R, str] = {
    R.NODES_REQUESTED: (
        "Wait. If no node appears: `kubectl describe pod -l ration.dev/placeholder -A` shows the "
        "autoscaler's events on the placeholder pods."
    ),
    R.NO_NODE_SHAPE_FITS: (
        "Request what one of the shapes has, or add a shape (how-to/karpenter); the message "
        "states what each lacks."
    ),
    R.NODE_ARRIVED: _NOTHING,
    R.NODE_NOT_ARRIVED: (
        "Check the autoscaler's events and NodeClaims or, if the node exists, its plugin (`ration "
        "doctor --node NODE`). The shape is requested again after some time."
    ),
    R.NODE_SHAPE_MISMATCH: "Correct that field of `controller.nodes.shapes`.",
    R.NODE_ARRIVING: _BY_ITSELF,
    R.NODE_INTERRUPTED: _BY_ITSELF,
    R.RESERVATION_PENDING: "Wait, or request less: the message has the nearest fit.",
    R.RESERVATION_REFUSED: "Correct the field that the message names and recreate the object.",
    R.RESERVATION_HELD: _NOTHING,
    R.RESERVATION_USED: _NOTHING,
    R.RESERVATION_EXPIRED: (
        "Recreate it with a longer `ttl` if the work is still to come; check why its pods did not "
        "use it."
    ),
    R.PREEMPTING: "Nothing: the pod is placed once the evicted pods have terminated.",
    R.PREEMPTION_NOT_HELPFUL: (
        "Read which pods are ineligible and why. A higher priority, another queue, `reclaim: Any` "
        "on the borrowing queue, or a smaller request changes it."
    ),
    R.PREEMPTED: (
        "Nothing: its controller recreates it and it waits in its queue. To avoid preemption, "
        "stay within the queue's deserved share, or use a queue with `preemptible: false`."
    ),
    R.IDLE: "Use the GPUs or delete the pod; `ration idle` shows its request and its use.",
    R.IDLE_EVICTED: (
        "Let the pod end when its work is done; `idleReclaim` of the queue sets the time."
    ),
    R.FAULT_EVICTION_NOT_ALLOWED: (
        "Delete the pod so that it is placed on healthy GPUs, or wait for the GPU's recovery; "
        "pods with a controller (Job, ReplicaSet) are moved."
    ),
    R.TERMINATING: _BY_ITSELF,
    R.NO_CONTROLLER: (
        'Give the pod a controller, or the annotation `ration.dev/preemptible: "true"`.'
    ),
    R.PRIORITY_NOT_LOWER: "Give the pending pod a higher PriorityClass.",
    R.QUEUE_NOT_PREEMPTIBLE: "Set `preemptible: true` on that queue.",
    R.RECLAIM_NEVER: "Set `reclaim` of that queue to LowerPriority or Any.",
    R.WITHIN_FAIR_SHARE: (
        "Nothing: a fair share is not reclaimed. `ration queues` shows the shares."
    ),
    R.BEYOND_FAIR_SHARE: (
        "Wait: the queue uses its share already. `ration queues` shows the shares."
    ),
    R.MIN_RUNTIME_NOT_REACHED: "Wait until it has run as long as its queue's `minRunTime`.",
    R.DISRUPTION_BUDGET: (
        "Relax the PodDisruptionBudget, or wait until it allows a disruption; check that only one "
        "matches the pod."
    ),
}
_QUEUES: Mapping[R, str] = {
    R.QUEUE_ACCEPTED: _NOTHING,
    R.QUEUE_INVALID: "Correct the field that the message names.",
    R.QUEUE_BORROWING: (
        "Nothing: the surplus is reclaimed when other queues need their deserved share."
    ),
    R.QUEUE_WITHIN_DESERVED: _NOTHING,
}
_ASKED: Mapping[R, str] = {
    R.DEVICE_CLASS_NOT_FOUND: (
        "See `kubectl get deviceclasses` and correct the claim's deviceClassName."
    ),
    R.SELECTOR_INVALID: "Correct the CEL expression: `ration validate -f` shows where it fails.",
    R.NOT_SUPPORTED: "Remove the field that the message names.",
    R.FOREIGN_DEVICES: (
        "List the other driver under controller.managedDrivers, or request its devices in a "
        "separate claim."
    ),
    R.TOO_MANY_DEVICES: "Request at most 32 devices per claim; use several claims for more.",
    R.CONFIG_INVALID: "Correct the configuration: `ration validate -f` names the field.",
}
_NODES: Mapping[R, str] = {
    R.NODE_NOT_READY: "See the node: `kubectl describe node`.",
    R.NODE_CORDONED: "`kubectl uncordon` the node when its maintenance is over.",
    R.NODE_TAINTED: "Tolerate the taint in the pod, or remove it from the node.",
    R.NODE_MISMATCH: "Change the pod's nodeSelector or affinity, or the node's labels.",
    R.NODE_FULL: "Request less of what the message names, or free it there.",
    R.NODE_PORT_TAKEN: "Use another host port, or none.",
    R.NODE_VOLUME: (
        "See the claim: `kubectl describe pvc`. Bound elsewhere: " + _OTHER_NODE.lower()
    ),
    R.NODE_VOLUME_LIMIT: "Use fewer volumes of that driver on the node, or add a node.",
    R.NODE_VOLUME_IN_USE: "Wait for the pod that uses the volume, or use another access mode.",
    R.NODE_POD_AFFINITY: "Change the pod's affinity, or place a matching pod there.",
    R.NODE_POD_ANTI_AFFINITY: (
        "Add a node (or a zone), or change the anti-affinity of the pod or of the existing pods."
    ),
    R.NODE_TOPOLOGY_SPREAD: (
        "Add a node to the domain with the fewest pods, or allow a larger maxSkew."
    ),
    R.NODE_PINNED: (
        "Nothing on this node: another claim of the pod is allocated on the node it names."
    ),
    R.SEARCH_BUDGET_EXCEEDED: "Request fewer devices per claim, or fewer constraints.",
    R.ALLOCATOR_ERROR: (
        "Correct the failing selector: test optional attributes with `has(...)`; or check why the "
        "pool is incomplete."
    ),
    R.NODE_BACKED_OFF: "Wait: the message states why kube-scheduler rejected the pod there.",
    R.OTHER_CLAIM_UNSATISFIED: (
        "Wait until devices for the named claim are free there, or change that claim."
    ),
}
_DEVICES: Mapping[R, str] = {
    R.MULTIPLE_MPS_DAEMONS: "Request one MPS share per container and no other GPU.",
    R.DEVICE_IN_USE: "Wait, or see which pod uses it: `ration who`.",
    R.COUNTERS_EXHAUSTED: "Wait, or see which claims use parts of the GPU: `ration devices`.",
    R.INCOMPATIBLE_GROUPS: "Wait, or see which claims use parts of the device: `ration devices`.",
    R.DEVICE_TAINTED: "See the GPU's fault or the taint's origin: `ration devices -o wide`.",
    R.DEVICE_CORDONED: "Wait, or end the cordon: `ration uncordon NODE` or `NODE/GPU`.",
    R.DEVICE_NOT_MANAGED: (
        "kube-scheduler allocates these devices; the node label `ration.dev/allocator` changes "
        "that."
    ),
    R.SELECTOR_MISMATCH: "See the attributes of the devices: `ration devices -o json`.",
    R.SELECTOR_FAILED: "Guard the attribute with `has(...)` in the selector.",
    R.CONSTRAINT_NOT_SATISFIED: "Request fewer devices, or remove the constraint.",
    R.INSUFFICIENT_CAPACITY: "Request less, or a larger GPU.",
    R.UNSUPPORTED_DEVICE_FIELDS: (
        "Configure the driver not to publish the field, or leave its devices to kube-scheduler."
    ),
    R.POOL_INCOMPLETE: "Wait a few seconds; if it persists, see the plugin's log on that node.",
    R.CROSS_NAMESPACE_SHARING: (
        "Use one namespace, MIG devices, or a DeviceClass whose configuration sets "
        "`crossNamespace: true`."
    ),
    R.ISOLATION_TOO_WEAK: "Request `isolation: limits` or `none`, or wait for a MIG device.",
    R.SHARING_CONFLICT: (
        "Use the same setting as the claims that share the GPU, or request another GPU."
    ),
    R.ADMIN_ACCESS_REQUIRED: "Request it with adminAccess, from a namespace that is allowed to.",
}
_PREPARING: Mapping[R, str] = {
    R.PREPARED: _NOTHING,
    R.REFUSAL_CLEARED: _BY_ITSELF,
    R.CLAIM_REPLACED: "Delete the pod: it references a deleted claim.",
    R.CLAIM_NOT_ALLOCATED: "Delete the pod: its claim lost its allocation after it was bound.",
    R.CLAIM_ALREADY_UNPREPARED: _BY_ITSELF,
    R.DEVICE_OVERLAP: (
        "Wait until the claim that the message names is released; if it does not exist, see "
        "explanation/records."
    ),
    R.DEVICE_UNKNOWN: "Delete the pod: the GPU, or the part of it, no longer exists.",
    R.PREPARE_FAILED: (
        "Read which step failed; the kubelet retries. See the plugin's log for details."
    ),
    R.UNPREPARE_FAILED: "Read which step failed; the kubelet retries until it succeeds.",
    R.CLAIM_RECLAIMED: _NOTHING,
    R.STILL_RUNNING: _BY_ITSELF,
    R.MPS_FAILED: (
        "Read the daemon's last output; see `kubectl -n ration-system logs` of the MPS supervisor "
        "on that node for the rest. The daemon is restarted."
    ),
    R.MPS_RECOVERED: "Restart containers that used the old daemon.",
    R.MPS_CLIENT_BLOCKED: (
        "Give pods that share the GPU the same `runAsUser`, or use driver 580 or newer, whose "
        "server serves several users."
    ),
    R.MPS_CONTROL_HELD: (
        "Stop the process that the message names, or its pod: tenants do not need "
        "`nvidia-cuda-mps-control`. Existing clients continue."
    ),
    R.MPS_CONTROL_FREED: _NOTHING,
    R.SHARE_EXCEEDED: (
        "Reduce the memory use of the processes, or request more memory in the claim."
    ),
    R.USAGE_WITHIN_SHARE: _NOTHING,
}
_PUBLISHING: Mapping[R, str] = {
    R.SLICES_INVALID: "Report it with `ration must-gather`: this is a bug.",
    R.FIELDS_DROPPED: "Enable the feature gates that the message names, or use whole GPUs.",
    R.ALLOCATOR_CHANGING: "Wait half a minute.",
    R.ALLOCATOR_CHANGED: _NOTHING,
    R.ALLOCATOR_LABEL_INVALID: "Set the label to `controller` or `scheduler`, or remove it.",
    R.DEVICE_TAINT_RULES_DISABLED: (
        "Use Kubernetes 1.37, or enable the feature gate and the API version that the message "
        "names."
    ),
    R.GPU_UNREADABLE: "See the kernel log. A hang may pass; otherwise reboot or replace the node.",
    R.SHARING_DISABLED: (
        "Upgrade Kubernetes to 1.36.4 or newer and enable its feature gates: `ration doctor`."
    ),
    R.DRIVER_NOT_READY: (
        "Install or load the NVIDIA driver on the node; `driverRoot` sets where it is searched."
    ),
    R.DRIVER_NAME_CONFLICT: "Remove the other driver, or install Ration with another driverName.",
    R.DEVICE_PLUGIN_PRESENT: "Remove the device plugin from the node: how-to/beside-gpu-operator.",
    R.MIG_CONFIG_PENDING: _BY_ITSELF,
}
_HEALTH: Mapping[R, str] = {
    R.GPUS_HEALTHY: _NOTHING,
    R.GPUS_UNHEALTHY: "See the fault of each GPU: `ration devices -o wide`, reference/xids.",
    R.GPU_UNHEALTHY: (
        "The message states what clears the taint: the end of an application, a reset, a reboot "
        "or a repair. New work is placed elsewhere meanwhile."
    ),
    R.GPU_RECOVERED: _NOTHING,
    R.GPU_QUARANTINED: (
        "Inspect the GPU, then annotate the Node with `ration.dev/clear-quarantine`."
    ),
    R.GPU_QUARANTINE_CLEARED: _NOTHING,
    R.GPU_RESET: "Nothing if it succeeded; otherwise drain the node and reset or reboot it.",
    R.GPU_APPLICATION_ERROR: "See the program's own log: the GPU is healthy.",
    R.GPU_NOTICE: "See the Xid's meaning in reference/xids; no action is required.",
}
REASONS: Final[Mapping[R, str]] = {
    **_WAITING,
    **_GANGS,
    **_MAKING_ROOM,
    **_QUEUES,
    **_ASKED,
    **_NODES,
    **_DEVICES,
    **_PREPARING,
    **_PUBLISHING,
    **_HEALTH,
}
CONDITIONS: Final[Mapping[str, Condition]] = {
    names.CONDITION_ALLOCATED: Condition(
        "Pod",
        "False while the pod waits for devices, with the reason; removed once it has them.",
        "See the remedy of its reason.",
    ),
    names.CONDITION_READY: Condition(
        "ResourceClaim, each device",
        "True: prepared on its node. False: refused or failed. Unknown: to be retried.",
        "See the remedy of its reason; the kubelet retries.",
    ),
    names.CONDITION_STALLED: Condition(
        "ResourceClaim, each device",
        "True together with Ready False if retrying cannot succeed.",
        "Correct the claim or its template, then delete the pod.",
    ),
    names.CONDITION_WITHIN_SHARE: Condition(
        "ResourceClaim, each device",
        "False while the claim's processes use more memory than allocated.",
        "Reduce their memory use, or request more.",
    ),
    names.GANG_READY: Condition(
        "ResourceClaim, each device of a gang",
        "True once every member has its devices; all of them can then be bound.",
        "Wait; GangPending on the pods states what is missing.",
    ),
    names.GANG_FAILED: Condition(
        "ResourceClaim, each device of a gang",
        "True if the gang was given up: no member of it is bound.",
        "Nothing: it is placed again; GangReleased on the pods states why.",
    ),
    names.NODE_CONDITION: Condition(
        "Node",
        "False while a GPU of the node is tainted for its health.",
        "`ration devices --node NODE -o wide` shows the GPUs and their taints.",
    ),
    "Accepted": Condition(
        "Queue, Reservation",
        "False if its specification is invalid: the message names the field.",
        "Correct that field.",
    ),
    "Borrowing": Condition(
        "Queue",
        "True while it uses more than its deserved share, which other queues do not need.",
        _NOTHING,
    ),
}


def remedy(reason: R) -> str:
    """Return the remedy for a reason."""
    return REASONS[reason]
