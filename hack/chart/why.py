"""Why each rule of each role is there: the one place where it is said. Pure."""

from typing import NamedTuple

LABELS = ("controller.labelNodes=true",)
NODES = ("controller.nodes.enabled=true",)
PODGROUPS = ("controller.podGroups=true",)
_CORE, _DRA, _APPS = "", "resource.k8s.io", "apps"
_OWN, _BUDGETS = "ration.dev", "policy"
_GROUPS, _OTHER_GROUPS = "scheduling.k8s.io", "scheduling.x-k8s.io"
PAGE = ("controller.web.exposed=true",)
_WHO, _MAY = "authentication.k8s.io", "authorization.k8s.io"
_EVENTS, _LEASES, _HOOKS = "events.k8s.io", "coordination.k8s.io", "admissionregistration.k8s.io"


class Rule(NamedTuple):
    """One resource of one rule, as rendered; `named` says whether it is limited to some objects."""

    component: str
    group: str
    resource: str
    verbs: str
    named: bool = False


class Why(NamedTuple):
    """The reason, and the values that the rule is rendered with, each alone (none: by default)."""

    reason: str
    only: tuple[str, ...] = ()


_EVENT = "An event for what users should know; one that happens again is counted on."
_LEASE_MADE = "Its Lease, where somebody has deleted it; a create cannot be limited by name."
_LEASE = "Its Lease: who of the replicas acts."
_GANG_SIZES = "How many pods a gang has: "
_PLACING = "What placing a pod takes: "

WHY: dict[Rule, Why] = {
    Rule("kubeletplugin", _DRA, "resourceslices", "list, watch, create, update, delete"): Why(
        "What it publishes of its node, compared with what is there; left-overs go."
    ),
    Rule("kubeletplugin", _DRA, "resourceclaims", "get"): Why(
        "A claim, when the kubelet asks to have it prepared."
    ),
    Rule("kubeletplugin", _DRA, "resourceclaims/status", "patch"): Why(
        "Conditions of the devices that it prepared, or why it could not."
    ),
    Rule("kubeletplugin", _DRA, "resourceclaims/driver", "associated-node:patch", named=True): Why(
        "From 1.36 the API server asks for it before `status.devices` changes: only of this "
        "driver's devices, only of claims allocated on the node that the token names."
    ),
    Rule("kubeletplugin", _CORE, "nodes", "get"): Why(
        "Its Node's UID: slices and events belong to that Node."
    ),
    Rule("kubeletplugin", _EVENTS, "events", "create, patch"): Why(_EVENT),
    Rule("controller", _CORE, "pods", "list, watch"): Why(
        _PLACING + "which wait, and where others are."
    ),
    Rule("controller", _CORE, "nodes", "list, watch"): Why(
        _PLACING + "labels, taints and room of nodes."
    ),
    Rule("controller", _CORE, "persistentvolumeclaims", "list, watch"): Why(
        _PLACING + "volumes tie a pod to nodes."
    ),
    Rule("controller", _CORE, "persistentvolumes", "list, watch"): Why(
        _PLACING + "the nodes that a volume is reached from."
    ),
    Rule("controller", _CORE, "namespaces", "get, list, watch"): Why(
        "The labels by which affinity chooses, and the one that keeps pods from being converted."
    ),
    Rule("controller", "storage.k8s.io", "storageclasses", "list, watch"): Why(
        _PLACING + "where volumes that are not bound yet can be."
    ),
    Rule("controller", "storage.k8s.io", "csinodes", "list, watch"): Why(
        _PLACING + "how many volumes a node takes."
    ),
    Rule("controller", "storage.k8s.io", "csidrivers", "list, watch"): Why(
        _PLACING + "whether a storage driver says how much room it has."
    ),
    Rule("controller", "storage.k8s.io", "csistoragecapacities", "list, watch"): Why(
        _PLACING + "how large a volume can be made for a node."
    ),
    Rule("controller", "storage.k8s.io", "volumeattachments", "list, watch"): Why(
        _PLACING + "how many volumes a node has."
    ),
    Rule("controller", _CORE, "pods", "get, patch"): Why(
        "Whether a pod is bound, before devices are taken from it; the annotation at which the "
        "kubelet tries a pod again, and the scheduling gate that goes when its claims are "
        "allocated; narrowed by the policy `pods`."
    ),
    Rule("controller", _CORE, "pods/status", "patch"): Why(
        "The condition `ration.dev/Allocated`: why a pod waits; narrowed by a policy."
    ),
    Rule("controller", _CORE, "pods/eviction", "create"): Why(
        "A pod that can never be prepared, or uses more than its share, goes; fenced."
    ),
    Rule("controller", _CORE, "nodes/status", "patch"): Why(
        "The condition `ration.dev/GPUsHealthy`."
    ),
    Rule("controller", _CORE, "nodes", "patch"): Why(
        "Labels under `nvidia.com`; with nodes on demand the label that all of a node's GPUs are "
        "published, and the annotations that keep an autoscaler from taking a node whose GPUs "
        "somebody has; narrowed by the policy `nodes`.",
        LABELS + NODES,
    ),
    Rule("controller", _CORE, "pods", "create, delete"): Why(
        "The pods by which nodes are asked for, in its namespace: they do nothing; narrowed by the "
        "policy `placeholders`, creating is fenced.",
        NODES,
    ),
    Rule("controller", _CORE, "configmaps", "create"): Why(
        "What nodes of each shape were seen to have; a create cannot be limited by name, but by "
        "the policy `seenshapes`; fenced.",
        NODES,
    ),
    Rule("controller", _CORE, "configmaps", "get, patch", named=True): Why(
        "What nodes of each shape were seen to have, for when there are none; fenced.", NODES
    ),
    Rule("controller", _DRA, "resourceslices", "list, watch"): Why("The devices that there are."),
    Rule("controller", _DRA, "deviceclasses", "list, watch"): Why("What a claim's classes mean."),
    Rule("controller", _DRA, "devicetaintrules", "list, watch"): Why(
        "Taints that administrators put on devices; without effect where the API server has none."
    ),
    Rule("controller", _DRA, "resourceclaims", "get, list, watch, patch, update"): Why(
        "Claims that wait and that hold devices; the finalizer that has them let go; update, "
        "where no patch can be made of a claim."
    ),
    Rule("controller", _DRA, "resourceclaims/status", "patch"): Why(
        "Allocations, holds, and taking them back; fenced."
    ),
    Rule("controller", _DRA, "resourceclaims/binding", "patch"): Why(
        "From 1.36 the API server asks for it before `allocation` or `reservedFor` change."
    ),
    Rule("controller", _DRA, "resourceclaims/driver", "arbitrary-node:patch", named=True): Why(
        "From 1.36 the API server asks for it before `status.devices` changes: the condition that "
        "lets a gang's pods be bound, of this driver's devices."
    ),
    Rule("controller", _OWN, "queues", "list, watch"): Why(
        "The order of queues, and their limits."
    ),
    Rule("controller", _OWN, "queues/status", "patch"): Why(
        "What each queue has, deserves and waits for; fenced."
    ),
    Rule("controller", _OWN, "reservations", "list, watch, create, delete"): Why(
        "Devices that are held for work that is coming; its own for pods that others go for, which "
        "it deletes when they are used or void; fenced."
    ),
    Rule("controller", _OWN, "reservations/status", "patch"): Why(
        "What is held, and whether it was used; fenced."
    ),
    Rule("controller", _BUDGETS, "poddisruptionbudgets", "list, watch"): Why(
        "Which pods may go for others: no plan is made that a budget would refuse."
    ),
    Rule("controller", _GROUPS, "podgroups", "list, watch"): Why(
        _GANG_SIZES + "Kubernetes' own, where it is served.", PODGROUPS
    ),
    Rule("controller", _OTHER_GROUPS, "podgroups", "list, watch"): Why(
        _GANG_SIZES + "the coscheduling plugin's, where it is installed."
    ),
    Rule("controller", _WHO, "tokenreviews", "create"): Why(
        "Whose token a reader of the page shows.", PAGE
    ),
    Rule("controller", _MAY, "subjectaccessreviews", "create"): Why(
        "Whether a reader of the page may list claims and pods in all namespaces.", PAGE
    ),
    Rule("controller", _CORE, "pods", "get"): Why(
        "The address of the replica that leads: the others ask it for the page.", PAGE
    ),
    Rule("controller", _EVENTS, "events", "create, patch"): Why(_EVENT),
    Rule("controller", _LEASES, "leases", "create"): Why(_LEASE_MADE),
    Rule("controller", _LEASES, "leases", "get, update", named=True): Why(_LEASE),
    Rule("admission", _CORE, "namespaces", "list, watch"): Why(
        "The label that keeps a namespace's pods from being converted."
    ),
    Rule("admission", _CORE, "pods", "list"): Why(
        "Which templates converted pods still name, before one that is old is deleted."
    ),
    Rule("admission", _DRA, "deviceclasses", "list, watch"): Why("What a request's class allows."),
    Rule("admission", _DRA, "resourceslices", "list, watch"): Why(
        "The largest hardware there is: limits beyond it are warned of."
    ),
    Rule("admission", _DRA, "resourceclaims", "get"): Why("The claims that a new pod names."),
    Rule("admission", _DRA, "resourceclaimtemplates", "get, list, create, patch, delete"): Why(
        "The templates that a new pod names, and those of converted pods: made, marked, deleted."
    ),
    Rule("admission", _HOOKS, "validatingwebhookconfigurations", "get, patch", named=True): Why(
        "The authority of its own certificate, in its own configuration."
    ),
    Rule("admission", _HOOKS, "mutatingwebhookconfigurations", "get, patch", named=True): Why(
        "The authority of its own certificate, in its own configuration."
    ),
    Rule("admission", _LEASES, "leases", "create"): Why(_LEASE_MADE),
    Rule("admission", _LEASES, "leases", "get, update", named=True): Why(_LEASE),
    Rule("admission", _LEASES, "leases", "get", named=True): Why(
        "Whether a controller leads: without one no new pod is gated."
    ),
    Rule("admission", _CORE, "secrets", "create"): Why(
        "Its certificate; a create cannot be limited by name."
    ),
    Rule("admission", _CORE, "secrets", "get, update", named=True): Why(
        "Its certificate, which the replicas share and the leader renews."
    ),
    Rule("leave", _CORE, "pods", "list"): Why(
        "Whose pods use claims, and whether the release's own have ended."
    ),
    Rule("leave", _CORE, "nodes", "list"): Why("The Nodes that carry the controller's condition."),
    Rule("leave", _CORE, "nodes", "patch"): Why("The controller's marks of nodes go.", NODES),
    Rule("leave", _CORE, "pods", "delete"): Why("Pods by which nodes were asked for go.", NODES),
    Rule("leave", _CORE, "configmaps", "delete", named=True): Why(
        "What nodes of each shape were seen to have goes.", NODES
    ),
    Rule("leave", _CORE, "nodes/status", "patch"): Why("The controller's condition goes."),
    Rule("leave", _CORE, "pods/status", "patch"): Why(
        "The controller's condition goes from pods that wait."
    ),
    Rule("leave", _DRA, "resourceclaims", "list"): Why(
        "Which claims are in use, and which are held."
    ),
    Rule("leave", _DRA, "resourceclaims/status", "patch"): Why(
        "Holds go, and allocations that nobody was bound with."
    ),
    Rule("leave", _DRA, "resourceclaims/binding", "patch"): Why(
        "From 1.36 the API server asks for it before `allocation` or `reservedFor` change."
    ),
    Rule("leave", _DRA, "resourceslices", "list, delete"): Why("The driver's slices go."),
    Rule("leave", _DRA, "resourceclaimtemplates", "list, delete"): Why(
        "Templates of converted pods go, where no pod names them."
    ),
    Rule("leave", _OWN, "reservations", "list, delete"): Why(
        "Reservations that the controller made, for pods that others went for, go."
    ),
    Rule("leave", _APPS, "daemonsets", "get", named=True): Why(
        "Whether uninstalling was forced, and whether every node is cleared."
    ),
    Rule("leave", _APPS, "deployments", "get", named=True): Why("How many controllers there were."),
    Rule("leave", _APPS, "deployments/scale", "patch", named=True): Why(
        "The controller is stopped first."
    ),
    Rule("leave", _LEASES, "leases", "delete", named=True): Why("The webhook's Lease goes."),
    Rule("leave", _CORE, "secrets", "delete", named=True): Why("The webhook's certificate goes."),
}
