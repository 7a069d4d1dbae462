"""Pods, as far as it takes to allocate for one and to know where it fits (D5)."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from driver import ids, names
from driver.api import crd
from driver.resources import fields
from driver.resources.core import (
    interpod_affinity,
    node_selectors,
    pod_requests,
    pod_volumes,
    topology_spread,
)
from driver.resources.core import tolerations as core_tolerations

_ASKS = (
    *(names.GANG_TIMEOUT, names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED),
    names.PLACEHOLDER_FOR,
)
_NO_ANNOTATIONS: Mapping[str, str] = {}
LONGEST_WAIT = 1024
"""Characters of the message of `Waits`, as of an event's."""
DEFAULT_SCHEDULER = "default-scheduler"
_TERMINAL = frozenset({"Succeeded", "Failed"})
_SCHEDULED_FIELD = 'k:{"type":"PodScheduled"}'
"""The condition in managedFields."""


class HostPort(NamedTuple):
    """A port of the node itself; an empty address means all of them."""

    protocol: str
    address: str
    port: int


_NO_PORTS: frozenset[HostPort] = frozenset()


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An entry of `spec.resourceClaims`.

    `claim` is the ResourceClaim's name: None until a template's claim has been made, "" where
    none is needed (`status.resourceClaimStatuses`).
    """

    name: str
    claim: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """kube-scheduler's last result: the condition PodScheduled. "" without one.

    `written` is the second of the write that holds a refusal, in RFC 3339; "" if unknown:
    lastTransitionTime does not change while the status stays False.
    """

    status: str = ""
    reason: str = ""
    message: str = ""
    written: str = ""

    @property
    def refused(self) -> bool:
        """Return whether the scheduler found no node."""
        return self.status == "False" and self.reason == "Unschedulable"

    @property
    def was_passed_over(self) -> bool:
        """Return whether the scheduler tried and did not place the pod, its own errors included."""
        return self.status == "False" and self.reason in {"Unschedulable", "SchedulerError"}


_SCHEDULED_TEXTS = ("True", "", "")
_SCHEDULED = Verdict(*_SCHEDULED_TEXTS)


@dataclass(frozen=True, slots=True)
class PendingCondition:
    """Condition `names.CONDITION_ALLOCATED`: the controller's reason that a pod is pending."""

    reason: str
    message: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that a pod belongs to (`ownerReferences`): a ReplicaSet, a Job."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Container:
    """Claims of the pod that a container uses: their names in the pod, each with a request.

    A request of "" is all of the claim.
    """

    name: str
    claims: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NodePreference:
    """A preferred term of node affinity and its weight, 1 to 100."""

    weight: int
    term: node_selectors.Term


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. `requests` are its effective requests, init containers and overhead included.

    `resized` is what it takes of its node, where its status says something else (KEP-1287).

    `asked_again` is what the annotation `names.PREPARE_AGAIN` says, "" without one; `movable` says
    whether `names.DEFRAG` is true, `preemptible` whether `names.PREEMPTIBLE` is. `preempts`: not by
    its preemptionPolicy Never. `scheduler` is its schedulerName. `gang` is the name of its gang or
    PodGroup, `gang_size` how large it says that is, unread, as are `scheduling_annotations`.
    `pod_group` is the name of the PodGroup of Kubernetes' own that it belongs to
    (`spec.schedulingGroup`). `max_runtime_s` is how long it says it runs at most, `started` when it
    did.
    """

    namespace: str
    name: str
    uid: ids.PodUid
    created: str = ""
    priority: int = 0
    node: ids.NodeName | None = None
    nominated: ids.NodeName | None = None
    phase: str = "Pending"
    deleting: bool = False
    gates: tuple[str, ...] = ()
    claims: tuple[PodClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: node_selectors.NodeSelector | None = None
    node_preferences: tuple[NodePreference, ...] = ()
    pod_affinity: interpod_affinity.PodAffinity = interpod_affinity.NONE
    spread_constraints: tuple[topology_spread.Constraint, ...] = ()
    tolerations: tuple[core_tolerations.Toleration, ...] = ()
    requests: Mapping[str, int] = field(default_factory=dict)
    resized: Mapping[str, int] | None = None
    host_ports: frozenset[HostPort] = frozenset()
    volume_claims: tuple[str, ...] = ()
    ephemeral_claims: frozenset[str] = frozenset()
    disks: tuple[pod_volumes.Disk, ...] = ()
    verdict: Verdict = Verdict()
    owner: Owner | None = None
    asked_again: str = ""
    movable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    preempts: bool = True
    scheduler: str = DEFAULT_SCHEDULER
    preemptible: bool = False
    gang: str = ""
    gang_size: str = ""
    pod_group: str = ""
    max_runtime_s: float | None = None
    started: str = ""
    on_fault: str = ""
    scheduling_annotations: Mapping[str, str] = field(default_factory=dict)
    pending: PendingCondition | None = None

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")

    @property
    def claim_keys(self) -> tuple[ids.Key, ...]:
        """The keys of the claims that it names, as far as they are known yet.

        A claim that it has under two names counts once.
        """
        claims = dict.fromkeys(pod_claim.claim for pod_claim in self.claims if pod_claim.claim)
        return tuple(ids.Key(f"{self.namespace}/{claim}") for claim in claims)

    @property
    def finished(self) -> bool:
        """Return whether it has ended for good."""
        return self.phase in _TERMINAL


def parse(obj: fields.Raw) -> Pod:
    """Read a Pod."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    status = fields.mapping(obj, "status")
    node = fields.common_text(spec, "nodeName", "spec")
    nominated = fields.text(status, "nominatedNodeName", "status")
    annotations = fields.mapping(meta, "annotations", "metadata")
    labels = fields.text_map(meta, "labels", "metadata")
    requests = pod_requests.effective_requests(spec)
    mounted = pod_volumes.parse(spec, fields.text(meta, "name"))
    return Pod(
        namespace=fields.common_text(meta, "namespace", "metadata"),
        name=fields.required_text(meta, "name", "metadata"),
        uid=ids.PodUid(fields.text(meta, "uid", "metadata")),
        created=fields.common_text(meta, "creationTimestamp", "metadata"),
        priority=fields.integer(spec, "priority", "spec"),
        node=ids.NodeName(node) if node else None,
        nominated=ids.NodeName(nominated) if nominated else None,
        phase=fields.common_text(status, "phase", "status", "Pending"),
        deleting=bool(meta.get("deletionTimestamp")),
        gates=tuple(
            fields.common_text(item, "name", path)
            for path, item in fields.objects(spec, "schedulingGates")
        ),
        claims=_claims(spec, status),
        containers=tuple(_containers(spec)),
        node_selector=fields.text_map(spec, "nodeSelector", "spec"),
        affinity=_required_affinity(spec),
        node_preferences=tuple(_node_preferences(spec)),
        pod_affinity=interpod_affinity.parse(spec, fields.text(meta, "namespace", "metadata")),
        spread_constraints=topology_spread.parse(spec, labels),
        tolerations=core_tolerations.parse(spec, "tolerations", "spec"),
        requests=requests,
        resized=pod_requests.placed_requests(spec, status, requests),
        host_ports=frozenset(_host_ports(spec)) or _NO_PORTS,
        volume_claims=mounted.claims,
        ephemeral_claims=mounted.ephemeral,
        disks=mounted.disks,
        verdict=_verdict(meta, status),
        owner=_owner(meta),
        asked_again=fields.text(annotations, names.PREPARE_AGAIN),
        movable=annotations.get(names.DEFRAG) == "true",
        labels=labels,
        preempts=spec.get("preemptionPolicy") != "Never",
        scheduler=fields.common_text(spec, "schedulerName", "spec", DEFAULT_SCHEDULER),
        preemptible=annotations.get(names.PREEMPTIBLE) == "true",
        gang=_gang(spec, labels),
        pod_group=_pod_group(spec),
        gang_size=str(annotations.get(names.GANG_SIZE) or labels.get(names.GANG_SIZE, "")),
        max_runtime_s=_most_s(spec, annotations),
        started=fields.common_text(status, "startTime", "status"),
        on_fault=str(annotations.get(names.ON_FAULT, "")),
        scheduling_annotations=_scheduling_annotations(annotations),
        pending=_waits(status),
    )


def _scheduling_annotations(annotations: fields.Raw) -> Mapping[str, str]:
    if annotations.keys().isdisjoint(_ASKS):
        return _NO_ANNOTATIONS
    return {key: str(annotations[key]) for key in _ASKS if key in annotations}


def takes_nominations(pod: Pod) -> bool:
    """Return whether its scheduler is sure to withdraw a nomination of a node that it refuses.

    kube-scheduler does, unless the pod may not preempt or is scheduled with its PodGroup; of
    another scheduler nothing is known.
    """
    return pod.preempts and not pod.pod_group and pod.scheduler == DEFAULT_SCHEDULER


def build_pending(reason: str, message: str, since: str) -> PendingCondition:
    """Return the condition; the message is cut to LONGEST_WAIT characters."""
    return PendingCondition(reason, message[:LONGEST_WAIT], since)


def render_pending(pod: Pod, pending_condition: PendingCondition | None) -> dict[str, object]:
    """A status patch (strategic merge: conditions merge by type); None takes it away."""
    condition: dict[str, object] = {"type": names.CONDITION_ALLOCATED}
    if pending_condition is None:
        condition["$patch"] = "delete"
    else:
        condition |= {
            "status": "False",
            "reason": pending_condition.reason,
            "message": pending_condition.message,
            "lastTransitionTime": pending_condition.since,
        }
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}


def _gang(spec: fields.Raw, labels: Mapping[str, str]) -> str:
    """The gang that a pod names; a PodGroup of Kubernetes' own (KEP-4671) counts as one."""
    for label in (names.GANG_LABEL, *names.POD_GROUP_LABELS):
        if labels.get(label):
            return labels[label]
    return _pod_group(spec)


def _pod_group(spec: fields.Raw) -> str:
    group = fields.mapping(spec, "schedulingGroup", "spec")
    return fields.text(group, "podGroupName", "spec.schedulingGroup")


def _most_s(spec: fields.Raw, annotations: fields.Raw) -> float | None:
    """The less of what it declares; a declaration that cannot be read declares nothing."""
    result = []
    deadline = fields.integer(spec, "activeDeadlineSeconds", "spec")
    if deadline > 0:
        result.append(float(deadline))
    declared = annotations.get(names.MAX_RUN_TIME)
    with contextlib.suppress(ValueError):
        if isinstance(declared, str) and declared:
            result.append(crd.seconds(declared))
    return min(result, default=None)


def _owner(meta: fields.Raw) -> Owner | None:
    for path, item in fields.objects(meta, "ownerReferences", "metadata"):
        if fields.flag(item, "controller", path):
            texts = (fields.common_text(item, key, path) for key in ("kind", "name", "uid"))
            return Owner(*texts)
    return None


def _claims(spec: fields.Raw, status: fields.Raw) -> tuple[PodClaim, ...]:
    claims: dict[str, str | None] = {}
    for path, item in fields.objects(status, "resourceClaimStatuses", "status"):
        claims[fields.text(item, "name", path)] = fields.text(item, "resourceClaimName", path)
    result = []
    for path, item in fields.objects(spec, "resourceClaims", "spec"):
        name = sys.intern(fields.required_text(item, "name", path))
        named = fields.text(item, "resourceClaimName", path)
        result.append(PodClaim(name, named or claims.get(name)))
    return tuple(result)


def _containers(spec: fields.Raw) -> Iterator[Container]:
    """Yield the containers that use a claim."""
    for kind in ("initContainers", "containers"):
        for field_path, item in fields.objects(spec, kind, "spec"):
            resources = fields.mapping(item, "resources", field_path)
            used = tuple(
                (
                    fields.common_text(entry, "name", path),
                    fields.common_text(entry, "request", path),
                )
                for path, entry in fields.objects(resources, "claims", f"{field_path}.resources")
            )
            if used:
                yield Container(fields.common_text(item, "name", field_path), used)


def _required_affinity(spec: fields.Raw) -> node_selectors.NodeSelector | None:
    path = "spec.affinity.nodeAffinity"
    node = fields.mapping(fields.mapping(spec, "affinity", "spec"), "nodeAffinity", path)
    required = fields.mapping(node, "requiredDuringSchedulingIgnoredDuringExecution", path)
    return node_selectors.parse(required, path) if required else None


def _node_preferences(spec: fields.Raw) -> Iterator[NodePreference]:
    base = "spec.affinity.nodeAffinity"
    node = fields.mapping(fields.mapping(spec, "affinity", "spec"), "nodeAffinity", base)
    for path, entry in fields.objects(
        node, "preferredDuringSchedulingIgnoredDuringExecution", base
    ):
        term = fields.mapping(entry, "preference", path)
        weight = fields.integer(entry, "weight", path)
        yield NodePreference(weight, node_selectors.parse_term(term, f"{path}.preference"))


def _host_ports(spec: fields.Raw) -> list[HostPort]:
    """Return the host ports of containers and sidecars, which run while the pod does."""
    result = []
    sidecars = (
        (field_path, container)
        for field_path, container in fields.objects(spec, "initContainers", "spec")
        if container.get("restartPolicy") == "Always"
    )
    for field_path, container in (*fields.objects(spec, "containers", "spec"), *sidecars):
        for path, item in fields.objects(container, "ports", field_path):
            port = fields.integer(item, "hostPort", path)
            if port > 0:
                protocol = fields.text(item, "protocol", path, "TCP")
                result.append(HostPort(protocol, fields.text(item, "hostIP", path), port))
    return result


def _verdict(meta: fields.Raw, status: fields.Raw) -> Verdict:
    texts = _condition(status, "PodScheduled", ("status", "reason", "message"))
    if texts == _SCHEDULED_TEXTS:
        return _SCHEDULED
    verdict = Verdict(*texts)
    return replace(verdict, written=_scheduled_written(meta)) if verdict.refused else verdict


def _scheduled_written(meta: fields.Raw) -> str:
    """The latest time of a manager of PodScheduled's message (KEP-555)."""
    times = [""]
    for path, entry in fields.objects(meta, "managedFields", "metadata"):
        tree = fields.mapping(entry, "fieldsV1", path)
        for key in ("f:status", "f:conditions", _SCHEDULED_FIELD):
            tree = fields.mapping(tree, key, path)
        if "f:message" in tree:
            times.append(fields.text(entry, "time", path))
    return max(times)


def _waits(status: fields.Raw) -> PendingCondition | None:
    message = ("status", "reason", "message", "lastTransitionTime")
    result = _condition(status, names.CONDITION_ALLOCATED, message)
    return PendingCondition(*result[1:]) if result and result[0] == "False" else None


def _condition(status: fields.Raw, kind: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The texts of a condition; () where there is none of the type."""
    for path, item in fields.objects(status, "conditions", "status"):
        if item.get("type") == kind:
            return tuple(fields.common_text(item, key, path) for key in keys)
    return ()
