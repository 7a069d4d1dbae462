"""Reasons for each rule of each role, for the page on rights. Pure."""

from typing import NamedTuple

LABELS = ("controller.labelNodes=true",)
NODES = ("controller.nodes.enabled=true",)
PODGROUPS = ("controller.podGroups=true",)
MANAGED = ("controller.managedDrivers[0].name=gpu.example.com",)
_CORE, _DRA, _APPS = "", "resource.k8s.io", "apps"
_OWN, _BUDGETS = "ration.dev", "policy"
_GROUPS, _OTHER_GROUPS = "scheduling.k8s.io", "scheduling.x-k8s.io"
PAGE = ("controller.web.exposed=true",)
_WHO, _MAY = "authentication.k8s.io", "authorization.k8s.io"
_EVENTS, _LEASES, _HOOKS = "events.k8s.io", "coordination.k8s.io", "admissionregistration.k8s.io"


class Rule(NamedTuple):
    """One resource of one rule, as rendered; `named` if it is limited to some objects."""

    component: str
    group: str
    resource: str
    verbs: str
    named: bool = False


class Why(NamedTuple):
    """The reason, and the values that the rule is rendered with, each alone (none: by default)."""

    reason: str
    only: tuple[str, ...] = ()


_EVENT = "Emits events; a repeated event increases the count."
_LEASE_MADE = "Its Lease, if it was deleted; a create cannot be limited by name."
_LEASE = "Its Lease, which elects the active replica."
_GANG_SIZES = "The number of pods of a gang: "
_PLACING = "To place a pod: "

WHY: dict[Rule, Why] = {
    Rule("kubeletplugin", _DRA, "resourceslices", "list, watch, create, update, delete"): Why(
        "Publishes the devices of its node, and deletes slices that are out of date."
    ),
    Rule("kubeletplugin", _DRA, "resourceclaims", "get"): Why(
        "Reads a claim when the kubelet requests its preparation."
    ),
    Rule("kubeletplugin", _DRA, "resourceclaims/status", "patch"): Why(
        "Conditions of the prepared devices, or the reason of the failure."
    ),
    Rule("kubeletplugin", _DRA, "resourceclaims/driver", "associated-node:patch", named=True): Why(
        "Required by the API server from 1.36 on to change `status.devices`: only of this "
        "driver's devices, only of claims allocated on the node in the token."
    ),
    Rule("kubeletplugin", _CORE, "nodes", "get"): Why(
        "Its Node's UID: slices and events belong to that Node."
    ),
    Rule("kubeletplugin", _EVENTS, "events", "create, patch"): Why(_EVENT),
    Rule("controller", _CORE, "pods", "list, watch"): Why(
        _PLACING + "pending pods, and the nodes of the others."
    ),
    Rule("controller", _CORE, "nodes", "list, watch"): Why(
        _PLACING + "labels, taints and free resources of nodes."
    ),
    Rule("controller", _CORE, "persistentvolumeclaims", "list, watch"): Why(
        _PLACING + "volumes tie a pod to nodes."
    ),
    Rule("controller", _CORE, "persistentvolumes", "list, watch"): Why(
        _PLACING + "the nodes that can reach a volume."
    ),
    Rule("controller", _CORE, "namespaces", "get, list, watch"): Why(
        "The labels that affinity selects by, and the label that disables conversion of pods."
    ),
    Rule("controller", "storage.k8s.io", "storageclasses", "list, watch"): Why(
        _PLACING + "where unbound volumes can be provisioned."
    ),
    Rule("controller", "storage.k8s.io", "csinodes", "list, watch"): Why(
        _PLACING + "the volume limits of a node."
    ),
    Rule("controller", "storage.k8s.io", "csidrivers", "list, watch"): Why(
        _PLACING + "whether a storage driver publishes its capacity."
    ),
    Rule("controller", "storage.k8s.io", "csistoragecapacities", "list, watch"): Why(
        _PLACING + "the storage capacity available to a node."
    ),
    Rule("controller", "storage.k8s.io", "volumeattachments", "list, watch"): Why(
        _PLACING + "the number of volumes of a node."
    ),
    Rule("controller", _CORE, "pods", "get, patch"): Why(
        "Checks whether a pod is bound before its claims are deallocated; sets the annotation that "
        "makes the kubelet retry a pod, and removes the scheduling gate when its claims are "
        "allocated; restricted by the policy `pods`."
    ),
    Rule("controller", _CORE, "pods/status", "patch"): Why(
        "The condition `ration.dev/Allocated`: why a pod is pending; the nominated node of a pod "
        "that waits behind the scheduling gate; restricted by a policy."
    ),
    Rule("controller", _CORE, "pods/eviction", "create"): Why(
        "Evicts pods that can never be prepared, or use more than their share; fenced."
    ),
    Rule("controller", _CORE, "nodes/status", "patch"): Why(
        "The condition `ration.dev/GPUsHealthy`."
    ),
    Rule("controller", _CORE, "nodes", "patch"): Why(
        "Labels under `nvidia.com`; with nodes on demand the label that all of a node's GPUs are "
        "published, and the annotations that keep an autoscaler from deleting a node whose GPUs "
        "are in use; restricted by the policy `nodes`.",
        LABELS + NODES,
    ),
    Rule("controller", _CORE, "pods", "create, delete"): Why(
        "Placeholder pods that request nodes, in its namespace: they do nothing; restricted by the "
        "policy `placeholders`, creating is fenced.",
        NODES,
    ),
    Rule("controller", _CORE, "configmaps", "create"): Why(
        "The observed properties of each node shape; a create cannot be limited by name, but is by "
        "the policy `seenshapes`; fenced.",
        NODES,
    ),
    Rule("controller", _CORE, "configmaps", "get, patch", named=True): Why(
        "The observed properties of each node shape, used while it has no node; fenced.", NODES
    ),
    Rule("controller", _DRA, "resourceslices", "list, watch"): Why("The published devices."),
    Rule("controller", _DRA, "deviceclasses", "list, watch"): Why("The classes of a claim."),
    Rule("controller", _DRA, "devicetaintrules", "list, watch"): Why(
        "Device taints of administrators; without effect if the API server does not serve them."
    ),
    Rule("controller", _DRA, "devicetaintrules", "create, patch, delete"): Why(
        "Rules that make it the allocator of other drivers' devices; restricted by the policies "
        "`taintrules` and `fencerules`; fenced.",
        MANAGED,
    ),
    Rule("controller", _DRA, "resourceclaims", "get, list, watch, patch, update"): Why(
        "Pending and allocated claims; the finalizer by which they are deallocated; update, if a "
        "claim cannot be patched."
    ),
    Rule("controller", _DRA, "resourceclaims/status", "patch"): Why(
        "Writes and removes allocations and holds; fenced."
    ),
    Rule("controller", _DRA, "resourceclaims/binding", "patch"): Why(
        "Required by the API server from 1.36 on to change `allocation` or `reservedFor`."
    ),
    Rule("controller", _DRA, "resourceclaims/driver", "arbitrary-node:patch", named=True): Why(
        "Required by the API server from 1.36 on to change `status.devices`: the condition that "
        "lets a gang's pods be bound, of devices that it allocates."
    ),
    Rule("controller", _OWN, "queues", "list, watch"): Why(
        "The order of queues, and their limits."
    ),
    Rule("controller", _OWN, "queues/status", "patch"): Why(
        "The use, the deserved share and the pending workloads of each queue; fenced."
    ),
    Rule("controller", _OWN, "reservations", "list, watch, create, delete"): Why(
        "Devices that are reserved for announced workloads; its own for preemptors, which "
        "it deletes when they are used or void; fenced."
    ),
    Rule("controller", _OWN, "reservations/status", "patch"): Why(
        "The reserved devices, and whether they were used; fenced."
    ),
    Rule("controller", _BUDGETS, "poddisruptionbudgets", "list, watch"): Why(
        "Which pods can be preempted: no plan includes an eviction that a budget would refuse."
    ),
    Rule("controller", _GROUPS, "podgroups", "list, watch"): Why(
        "PodGroups of Kubernetes, if served: minimum count, priority, topology and disruption mode "
        "of a gang.",
        PODGROUPS,
    ),
    Rule("controller", _OTHER_GROUPS, "podgroups", "list, watch"): Why(
        _GANG_SIZES + "PodGroups of the coscheduling plugin, if installed."
    ),
    Rule("controller", _WHO, "tokenreviews", "create"): Why(
        "Authenticates the token of a reader of the page.", PAGE
    ),
    Rule("controller", _MAY, "subjectaccessreviews", "create"): Why(
        "Checks that a reader of the page can list claims and pods in all namespaces.", PAGE
    ),
    Rule("controller", _CORE, "pods", "get"): Why(
        "The address of the leading replica: the others fetch the page from it.", PAGE
    ),
    Rule("controller", _EVENTS, "events", "create, patch"): Why(_EVENT),
    Rule("controller", _LEASES, "leases", "create"): Why(_LEASE_MADE),
    Rule("controller", _LEASES, "leases", "get, update", named=True): Why(_LEASE),
    Rule("admission", _CORE, "namespaces", "list, watch"): Why(
        "The label that disables conversion in a namespace."
    ),
    Rule("admission", _CORE, "pods", "list"): Why(
        "Checks which templates converted pods still name, before an old one is deleted."
    ),
    Rule("admission", _DRA, "deviceclasses", "list, watch"): Why(
        "The devices that a request's class allows."
    ),
    Rule("admission", _DRA, "resourceslices", "list, watch"): Why(
        "The largest published device: higher limits result in a warning."
    ),
    Rule("admission", _DRA, "resourceclaims", "get"): Why("The claims that a new pod names."),
    Rule("admission", _DRA, "resourceclaimtemplates", "get, list, create, patch, delete"): Why(
        "The templates that a new pod names, and those of converted pods, which it creates, marks "
        "and deletes."
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
        "Checks that a controller leads: without one no new pod is gated."
    ),
    Rule("admission", _CORE, "secrets", "create"): Why(
        "Its certificate; a create cannot be limited by name."
    ),
    Rule("admission", _CORE, "secrets", "get, update", named=True): Why(
        "Its certificate, which the replicas share and the leader renews."
    ),
    Rule("leave", _CORE, "pods", "list"): Why(
        "Finds the pods that use claims, and checks that the release's own have ended."
    ),
    Rule("leave", _CORE, "nodes", "list"): Why("The Nodes that carry the controller's condition."),
    Rule("leave", _CORE, "nodes", "patch"): Why(
        "Removes the controller's label and annotations.", NODES
    ),
    Rule("leave", _CORE, "pods", "delete"): Why("Deletes placeholder pods.", NODES),
    Rule("leave", _CORE, "configmaps", "delete", named=True): Why(
        "Deletes the observed properties of node shapes.", NODES
    ),
    Rule("leave", _CORE, "nodes/status", "patch"): Why("Removes the controller's condition."),
    Rule("leave", _CORE, "pods/status", "patch"): Why(
        "Removes the controller's condition from pending pods."
    ),
    Rule("leave", _DRA, "resourceclaims", "list"): Why(
        "Finds the claims in use, and those with a hold."
    ),
    Rule("leave", _DRA, "resourceclaims/status", "patch"): Why(
        "Removes holds, and allocations without a bound pod."
    ),
    Rule("leave", _DRA, "resourceclaims/binding", "patch"): Why(
        "Required by the API server from 1.36 on to change `allocation` or `reservedFor`."
    ),
    Rule("leave", _DRA, "resourceslices", "list, delete"): Why("Deletes the driver's slices."),
    Rule("leave", _DRA, "resourceclaimtemplates", "list, delete"): Why(
        "Deletes templates of converted pods that no pod names."
    ),
    Rule("leave", _DRA, "devicetaintrules", "list, delete"): Why(
        "Deletes the rules that the controller created, 30 s after it has ended.", MANAGED
    ),
    Rule("leave", _OWN, "reservations", "list, delete"): Why(
        "Deletes the Reservations that the controller created for preemptors."
    ),
    Rule("leave", _APPS, "daemonsets", "get", named=True): Why(
        "Checks whether uninstalling was forced, and whether every node is cleared."
    ),
    Rule("leave", _APPS, "deployments", "get", named=True): Why("The number of controllers."),
    Rule("leave", _APPS, "deployments/scale", "patch", named=True): Why(
        "Stops the controller first."
    ),
    Rule("leave", _LEASES, "leases", "delete", named=True): Why("Deletes the webhook's Lease."),
    Rule("leave", _CORE, "secrets", "delete", named=True): Why(
        "Deletes the webhook's certificate."
    ),
}
