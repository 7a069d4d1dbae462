"""Applies manifests to a cluster: their objects beside its own, and a task per pod. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from driver import ids
from driver.cli.simulation import dump, manifests, replay
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import cluster_state

_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""Every cluster has these (scheduling/v1)."""
_KINDS = {
    "nodes": "Node",
    "slices": "ResourceSlice",
    "classes": "DeviceClass",
    "pods": "Pod",
    "volume_claims": "PersistentVolumeClaim",
    "rules": "DeviceTaintRule",
    "persistent_volumes": "PersistentVolume",
    "namespace_objects": "Namespace",
    "storage_classes": "StorageClass",
    "csi_nodes": "CSINode",
    "csi_drivers": "CSIDriver",
    "capacities": "CSIStorageCapacity",
    "attachments": "VolumeAttachment",
}


@dataclass(frozen=True, slots=True)
class WorkloadSet:
    """The cluster with what is created in it, and the tasks.

    `missing` names, by pod, the template of which no claim can be made.
    """

    caches: cluster_state.CachedObjects
    tasks: tuple[replay.Task, ...]
    missing: Mapping[ids.Key, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def build_workloads(desired: manifests.Manifests, world: dump.Dump) -> WorkloadSet:
    """Create what is wanted in a cluster.

    Claims that are in the cluster already stay as they are, for they may be in use; of all else
    what is created counts. Pods of a name that is taken are created under another.
    """
    maker = _Maker(desired, world)
    tasks = tuple(maker.task(workload_pod) for workload_pod in desired.workloads)
    caches, notes = _overlaid(world.caches, desired.others.caches)
    return WorkloadSet(caches, tasks, maker.lacking, (*notes, *maker.notes()))


def _overlaid(
    cached_objects: cluster_state.CachedObjects, created: cluster_state.CachedObjects
) -> tuple[cluster_state.CachedObjects, Sequence[str]]:
    both: dict[str, dict[ids.Key, Any]] = {}
    notes: list[str] = []
    for item in fields(cluster_state.CachedObjects):
        old, new = getattr(cached_objects, item.name), getattr(created, item.name)
        twice = sorted(old.keys() & new.keys())
        if item.name == "claims":
            both[item.name] = {**new, **old}
            notes += (f"ResourceClaim {key}: is there already, and counts" for key in twice)
        else:
            both[item.name] = {**old, **new}
            notes += (
                f"{_KINDS[item.name]} {key}: is there already; what is created counts"
                for key in twice
            )
    return cluster_state.CachedObjects(**both), notes


class _Maker:
    def __init__(self, desired: manifests.Manifests, world: dump.Dump) -> None:
        created = desired.others
        self._templates = {**world.templates, **created.templates}
        self._priorities = {**world.priorities, **created.priorities}
        self._claims = {*world.caches.claims, *created.caches.claims}
        self._pods = {*world.caches.pods}
        self._renamed = 0
        self._unknown: dict[str, None] = {}
        self._plugins: dict[str, int] = {}
        self.lacking: dict[ids.Key, str] = {}

    def task(self, workload_pod: manifests.WorkloadPod) -> replay.Task:
        pod = workload_pod.pod
        name = _free(self._pods, pod.namespace, pod.name)
        if name != pod.name:
            self._renamed += 1
            uid = dump.derive_uid(f"Pod/{pod.namespace}/{name}")
            pod = replace(pod, name=name, uid=ids.PodUid(uid))
        resource_claims = [self._claim(pod, *entry) for entry in workload_pod.templates.items()]
        pod_claims = {claim.pod_claim: claim for claim in resource_claims if claim is not None}
        entries = tuple(
            replace(entry, claim=pod_claims[entry.name].name) if entry.name in pod_claims else entry
            for entry in pod.claims
        )
        for name in () if entries else pod.requests:
            if "/" in name:
                self._plugins[name] = self._plugins.get(name, 0) + 1
        priority = self._priority(workload_pod)
        return replay.Task(replace(pod, claims=entries, priority=priority), (*pod_claims.values(),))

    def notes(self) -> list[str]:
        result = [f"PriorityClass {name}: is not there, taken for 0" for name in self._unknown]
        result += (
            f"{count} {'pods ask' if count > 1 else 'pod asks'} {name} without a claim: left out, "
            "but for --convert"
            for name, count in self._plugins.items()
        )
        if self._renamed:
            which = "1 pod's name is" if self._renamed == 1 else f"{self._renamed} pods' names are"
            result.append(f"{which} taken: created under another")
        return result

    def _claim(self, pod: pods.Pod, entry: str, template: str) -> claims.Claim | None:
        key = ids.Key(f"{pod.namespace}/{template}")
        result = self._templates.get(key)
        if result is None:
            self.lacking[pod.key] = f"waits for its claim: no ResourceClaimTemplate {key}"
            return None
        name = _free(self._claims, pod.namespace, f"{pod.name}-{entry}")
        uid = ids.ClaimUid(dump.derive_uid(f"ResourceClaim/{pod.namespace}/{name}"))
        return claims.Claim(pod.namespace, name, uid, "", result.spec, pod_claim=entry)

    def _priority(self, workload_pod: manifests.WorkloadPod) -> int:
        if workload_pod.pod.priority:
            return workload_pod.pod.priority
        if not workload_pod.priority_class:
            usual = (priority.value for priority in self._priorities.values() if priority.usual)
            return next(usual, 0)
        priority = self._priorities.get(ids.Key(workload_pod.priority_class))
        if priority is not None:
            return priority.value
        if workload_pod.priority_class not in _SYSTEM:
            self._unknown[workload_pod.priority_class] = None
        return _SYSTEM.get(workload_pod.priority_class, 0)


def _free(taken: set[ids.Key], namespace: str, desired: str) -> str:
    """A name that none has yet, and that is taken from now on."""
    name, number = desired, 2
    while f"{namespace}/{name}" in taken:
        name, number = f"{desired}-{number}", number + 1
    taken.add(ids.Key(f"{namespace}/{name}"))
    return name
