"""Remedies for each reason and condition: shown by `ration explain` and the troubleshooting page.

One line each, for a person who has just met it; `kubectl` and `ration` commands are as they are
typed. A new reason without its line fails a test.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from driver import names, reasons

R = reasons.Reason
_NOTHING = "Nothing: this is how it should be."
_BY_ITSELF = "Nothing: it passes by itself."
_OTHER_NODE = "Change the pod or the node, or let another node have it."


class Condition(NamedTuple):
    """A condition that we write: its object, its meaning, and its remedy."""

    on: str
    meaning: str
    remedy: str


_WAITING: Mapping[R, str] = {
    R.ALLOCATED: _NOTHING,
    R.NO_FIT: (
        "Read the nearest fit at the end of the message: ask for less, free what it names, or add "
        "a node. `ration explain pod` counts what each node lacks; `ration defrag` plans moves."
    ),
    R.ALLOCATION_CLEARED: (
        "Read the scheduler's words and free what it lacked there, CPU or a volume perhaps. "
        "The node is left out for the pod for a while; other nodes are tried at once."
    ),
    R.POD_BOUND_TO_OTHER_NODE: (
        "Free what the message names on the pod's node, or delete the pod: kube-scheduler chooses "
        "a node for the next one, unless it names its node itself (spec.nodeName)."
    ),
    R.NODE_NOT_FOUND: "Delete the pod; name a node that exists, or none: kube-scheduler chooses.",
    R.ALLOCATION_FAILED: (
        "Nothing at first: it is tried again. If it stays, the message has the server's words: "
        "rights (`ration doctor`), a policy, or a server that is not reached."
    ),
    R.QUEUE_LIMIT_EXCEEDED: (
        "Wait until the queue has less (`ration queues`), ask for less, or have the limit of the "
        "queue that the message names raised."
    ),
    R.NOT_EVALUATED: (
        "See that a controller leads: `ration doctor`. Where the devices that would do are "
        "kube-scheduler's, its words in the pod's events count."
    ),
    R.SCHEDULING_GATED: (
        "Ask whoever set the gate: Kueue's means that its queue has not admitted the pod yet "
        "(`kubectl get workloads`)."
    ),
    R.CLAIM_NOT_FOUND: (
        "See that the ResourceClaim or the ResourceClaimTemplate exists in the pod's namespace "
        "under that name; kube-controller-manager makes claims of templates."
    ),
    R.REJECTED_BY_SCHEDULER: (
        "Read the scheduler's words and free what it lacks; after half a minute the devices are "
        "freed and other nodes are tried."
    ),
    R.NOT_CONVERTED: (
        "Take the label `ration.dev/convert` off the namespace and make the pod again, or write "
        "a claim: `ration generate claim`."
    ),
    R.POD_EVICTED: (
        "Read what the message says is wrong with the claim and put the template right; the next "
        "pod is made of it."
    ),
    R.EVICTION_NOT_ALLOWED: "Delete the pod yourself, or have it use no more than it was given.",
}
_GANGS: Mapping[R, str] = {
    R.GANG_PENDING: (
        "Make the members that are missing, or put the gang's size right: `ration.dev/gang-size`."
    ),
    R.GANG_INVALID: "Put the annotation that the message names right on every pod of the gang.",
    R.GANG_RELEASED: (
        "Nothing: it is placed again when all of it fits. If it happens again and again, the "
        "message says which member could not start; a longer `ration.dev/gang-timeout` helps slow "
        "nodes."
    ),
}
_MAKING_ROOM: Mapping[R, str] = {
    R.NODES_REQUESTED: (
        "Wait. If no node comes: `kubectl describe pod -l ration.dev/placeholder -A` has the "
        "autoscaler's words on the pods that ask for them."
    ),
    R.NO_NODE_SHAPE_FITS: (
        "Ask for what one of the shapes has, or add a shape (how-to/karpenter); the message says "
        "what each lacks."
    ),
    R.NODE_ARRIVED: _NOTHING,
    R.NODE_NOT_ARRIVED: (
        "Look why: the autoscaler's events and NodeClaims, or, where the node is there, its plugin "
        "(`ration doctor --node NODE`). It is asked for again after a while."
    ),
    R.NODE_SHAPE_MISMATCH: "Put that field of `controller.nodes.shapes` right.",
    R.NODE_ARRIVING: _BY_ITSELF,
    R.NODE_INTERRUPTED: _BY_ITSELF,
    R.RESERVATION_PENDING: "Wait, or ask for less: the message has the nearest fit.",
    R.RESERVATION_REFUSED: "Put the field that the message names right; make the object again.",
    R.RESERVATION_HELD: _NOTHING,
    R.RESERVATION_USED: _NOTHING,
    R.RESERVATION_EXPIRED: (
        "Make it again with a longer `ttl` if the work is still to come; see why its pods did not."
    ),
    R.PREEMPTING: "Nothing: the pod is placed as soon as those who go are gone.",
    R.PREEMPTION_NOT_HELPFUL: (
        "Read who may not go and why; a higher priority, another queue or `reclaim: Any` of the "
        "queue that borrows changes it, or ask for less."
    ),
    R.PREEMPTED: (
        "Nothing: its owner makes it again and it waits for its turn. To be spared, run within "
        "the queue's deserved share, or in a queue with `preemptible: false`."
    ),
    R.IDLE: "Use the GPUs, or end the pod; `ration idle` shows what it asked and what it used.",
    R.IDLE_EVICTED: "Have the pod end when it is done; the queue's `idleReclaim` says the time.",
    R.FAULT_EVICTION_NOT_ALLOWED: (
        "Delete the pod, so that it is placed on GPUs that work, or wait for the GPU's recovery; "
        "an owner (Job, ReplicaSet) would have had it moved."
    ),
    R.TERMINATING: _BY_ITSELF,
    R.NO_CONTROLLER: (
        'Give the pod an owner, or the annotation `ration.dev/preemptible: "true"` if it may go.'
    ),
    R.PRIORITY_NOT_LOWER: "Give the waiting pod a higher PriorityClass if it is to go first.",
    R.QUEUE_NOT_PREEMPTIBLE: "Set `preemptible: true` on that queue if its pods may go.",
    R.RECLAIM_NEVER: "Set `reclaim` of that queue to LowerPriority or Any.",
    R.WITHIN_FAIR_SHARE: "Nothing: what is fair is not taken. `ration queues` shows the shares.",
    R.BEYOND_FAIR_SHARE: "Wait: the queue has its share already. `ration queues` shows the shares.",
    R.MIN_RUNTIME_NOT_REACHED: "Wait until it has run as long as its queue's `minRunTime`.",
    R.DISRUPTION_BUDGET: (
        "Loosen the PodDisruptionBudget, or wait until it has disruptions left; see that only one "
        "guards the pod."
    ),
}
_QUEUES: Mapping[R, str] = {
    R.QUEUE_ACCEPTED: _NOTHING,
    R.QUEUE_INVALID: "Put the field that the message names right.",
    R.QUEUE_BORROWING: "Nothing: it goes back when others want what they deserve.",
    R.QUEUE_WITHIN_DESERVED: _NOTHING,
}
_ASKED: Mapping[R, str] = {
    R.DEVICE_CLASS_NOT_FOUND: (
        "See `kubectl get deviceclasses` and correct the claim's deviceClassName."
    ),
    R.SELECTOR_INVALID: "Put the CEL expression right: `ration validate -f` says where it fails.",
    R.NOT_SUPPORTED: "Leave out the field that the message names.",
    R.FOREIGN_DEVICES: "Ask for the other driver's devices in a claim of their own.",
    R.TOO_MANY_DEVICES: "Ask for at most 32 devices in a claim; several claims may have more.",
    R.CONFIG_INVALID: "Put the configuration right: `ration validate -f` names the field.",
}
_NODES: Mapping[R, str] = {
    R.NODE_NOT_READY: "See the node: `kubectl describe node`.",
    R.NODE_CORDONED: "`kubectl uncordon` the node when its maintenance is over.",
    R.NODE_TAINTED: "Tolerate the taint in the pod, or take it off the node.",
    R.NODE_MISMATCH: "Change the pod's nodeSelector or affinity, or the node's labels.",
    R.NODE_FULL: "Ask for less of what the message names, or free it there.",
    R.NODE_PORT_TAKEN: "Use another host port, or none.",
    R.NODE_VOLUME: (
        "See the claim: `kubectl describe pvc`. Bound elsewhere: " + _OTHER_NODE.lower()
    ),
    R.NODE_VOLUME_LIMIT: "Use fewer volumes of that driver on the node, or add a node.",
    R.NODE_VOLUME_IN_USE: "Wait for the pod that uses the volume, or share it by another mode.",
    R.NODE_POD_AFFINITY: "Change the pod's affinity, or place one of those that it names there.",
    R.NODE_POD_ANTI_AFFINITY: (
        "Add a node (or a zone), or change the anti-affinity of the pod or of those there."
    ),
    R.NODE_TOPOLOGY_SPREAD: (
        "Add a node to the domain that has the fewest, or allow a larger maxSkew."
    ),
    R.NODE_PINNED: "Nothing on this node: another claim of the pod is on the one that it names.",
    R.SEARCH_BUDGET_EXCEEDED: "Ask for fewer devices in a claim, or with fewer constraints.",
    R.ALLOCATOR_ERROR: (
        "Put the selector right that fails: `has(...)` before what some devices lack; "
        "or see why the pool is incomplete."
    ),
    R.NODE_BACKED_OFF: "Wait: the message says how the scheduler refused the pod there.",
}
_DEVICES: Mapping[R, str] = {
    R.MULTIPLE_MPS_DAEMONS: "Ask for one MPS share a container and no GPU beside it.",
    R.DEVICE_IN_USE: "Wait, or see who has it: `ration who`.",
    R.COUNTERS_EXHAUSTED: "Wait, or see who has parts of the GPU: `ration devices`.",
    R.DEVICE_TAINTED: (
        "See what is wrong with the GPU, or who tainted it: `ration devices -o wide`."
    ),
    R.DEVICE_CORDONED: "Wait, or end the cordon: `ration uncordon NODE` or `NODE/GPU`.",
    R.DEVICE_NOT_MANAGED: (
        "kube-scheduler gives these devices out; `ration.dev/allocator` on the node changes that."
    ),
    R.SELECTOR_MISMATCH: "See what devices say of themselves: `ration devices -o json`.",
    R.SELECTOR_FAILED: "Guard the attribute with `has(...)` in the selector.",
    R.CONSTRAINT_NOT_SATISFIED: "Ask for fewer devices that agree, or drop the constraint.",
    R.INSUFFICIENT_CAPACITY: "Ask for less, or for a larger GPU.",
    R.UNSUPPORTED_DEVICE_FIELDS: "Upgrade Ration, or leave the device to kube-scheduler.",
    R.POOL_INCOMPLETE: "Wait a few seconds; if it stays, see the plugin's log on that node.",
    R.CROSS_NAMESPACE_SHARING: (
        "Use one namespace, MIG devices, or a DeviceClass whose configuration says "
        "`crossNamespace: true`."
    ),
    R.ISOLATION_TOO_WEAK: "Ask for `isolation: limits` or `none`, or wait for a part of MIG.",
    R.SHARING_CONFLICT: "Ask for the same setting as those who share the GPU, or for another GPU.",
    R.ADMIN_ACCESS_REQUIRED: "Ask with adminAccess, from a namespace that may.",
}
_PREPARING: Mapping[R, str] = {
    R.PREPARED: _NOTHING,
    R.REFUSAL_CLEARED: _BY_ITSELF,
    R.CLAIM_REPLACED: "Delete the pod: it means a claim that is gone.",
    R.CLAIM_NOT_ALLOCATED: "Delete the pod: its claim lost its devices after it was bound.",
    R.CLAIM_ALREADY_UNPREPARED: _BY_ITSELF,
    R.DEVICE_OVERLAP: (
        "Wait until the claim that the message names is released; if that is gone, see "
        "explanation/records."
    ),
    R.DEVICE_UNKNOWN: "Delete the pod: the GPU, or the part of it, is not there any more.",
    R.PREPARE_FAILED: (
        "Read which step failed; the kubelet tries again. The plugin's log has the rest."
    ),
    R.UNPREPARE_FAILED: "Read which step failed; the kubelet tries again until it goes.",
    R.CLAIM_RECLAIMED: _NOTHING,
    R.STILL_RUNNING: _BY_ITSELF,
    R.MPS_FAILED: (
        "Read the daemon's last words; `kubectl -n ration-system logs` of the MPS supervisor on "
        "that node has the rest. The daemon is started again."
    ),
    R.MPS_RECOVERED: "Start containers anew that had the old daemon.",
    R.MPS_CLIENT_BLOCKED: (
        "Give pods that share the GPU the same `runAsUser`, or use a driver from 580 on, whose "
        "server serves several users."
    ),
    R.MPS_CONTROL_HELD: (
        "End the process that the message names, or its pod: tenants have no need of "
        "`nvidia-cuda-mps-control`. Clients that are there already go on."
    ),
    R.MPS_CONTROL_FREED: _NOTHING,
    R.SHARE_EXCEEDED: "Have the processes use less, or ask for more memory in the claim.",
    R.USAGE_WITHIN_SHARE: _NOTHING,
}
_PUBLISHING: Mapping[R, str] = {
    R.SLICES_INVALID: "Report it with `ration must-gather`: this should not happen.",
    R.FIELDS_DROPPED: "Switch the feature gates on that the message names, or use whole GPUs.",
    R.ALLOCATOR_CHANGING: "Wait half a minute.",
    R.ALLOCATOR_CHANGED: _NOTHING,
    R.ALLOCATOR_LABEL_INVALID: "Label the node `controller` or `scheduler`, or take the label off.",
    R.GPU_UNREADABLE: "See the kernel's log. A hang may pass; else reboot the node, or replace it.",
    R.SHARING_DISABLED: (
        "Upgrade Kubernetes to 1.36.4 or newer and enable its feature gates: `ration doctor`."
    ),
    R.DRIVER_NOT_READY: (
        "Install or load the NVIDIA driver on the node; `driverRoot` says where it is looked for."
    ),
    R.DRIVER_NAME_CONFLICT: "Remove the other driver, or install Ration under another name.",
    R.DEVICE_PLUGIN_PRESENT: "Take the device plugin off the node: how-to/beside-gpu-operator.",
    R.MIG_CONFIG_PENDING: _BY_ITSELF,
}
_HEALTH: Mapping[R, str] = {
    R.GPUS_HEALTHY: _NOTHING,
    R.GPUS_UNHEALTHY: "See what ails each GPU: `ration devices -o wide`, reference/xids.",
    R.GPU_UNHEALTHY: (
        "The message says what clears it: an application's end, a reset, a reboot "
        "or a repair. New work goes elsewhere meanwhile."
    ),
    R.GPU_RECOVERED: _NOTHING,
    R.GPU_QUARANTINED: (
        "Have the GPU looked at; annotate the Node with `ration.dev/clear-quarantine` after that."
    ),
    R.GPU_QUARANTINE_CLEARED: _NOTHING,
    R.GPU_RESET: "Nothing where it went well; else drain the node and reset or reboot it.",
    R.GPU_APPLICATION_ERROR: "See the program's own log: the GPU is fine.",
    R.GPU_NOTICE: "Read the Xid's meaning in reference/xids; nothing has to be done now.",
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
        "False while the pod waits for devices, with the reason; it goes when it has them.",
        "What the reason's own line says.",
    ),
    names.CONDITION_READY: Condition(
        "ResourceClaim, each device",
        "True: prepared on its node. False: refused, or failed. Unknown: to be tried again.",
        "What the reason's own line says; the kubelet tries again.",
    ),
    names.CONDITION_STALLED: Condition(
        "ResourceClaim, each device",
        "True, beside Ready False: waiting changes nothing.",
        "Put the claim or its template right, then delete the pod.",
    ),
    names.CONDITION_WITHIN_SHARE: Condition(
        "ResourceClaim, each device",
        "False while the claim's processes use more memory than it was given.",
        "Have them use less, or ask for more.",
    ),
    names.GANG_READY: Condition(
        "ResourceClaim, each device of a gang",
        "True once every member has its devices: then all may be bound.",
        "Wait; GangPending on the pods says what is missing.",
    ),
    names.GANG_FAILED: Condition(
        "ResourceClaim, each device of a gang",
        "True when the gang was given up: nothing of it is bound.",
        "Nothing: it is placed again; GangReleased on the pods says why.",
    ),
    names.NODE_CONDITION: Condition(
        "Node",
        "False while a GPU of the node is tainted for its health.",
        "`ration devices --node NODE -o wide` says which and by what.",
    ),
    "Accepted": Condition(
        "Queue, Reservation",
        "False where what it says cannot be: the message names the field.",
        "Put that field right.",
    ),
    "Borrowing": Condition(
        "Queue",
        "True while it has more than it deserves, which others do not use.",
        _NOTHING,
    ),
}


def remedy(reason: R) -> str:
    """Return the remedy for a reason."""
    return REASONS[reason]
