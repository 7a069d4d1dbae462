"""What manifests make of a cluster: their objects beside its own, and a task a pod. Pure."""

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
class Made:
    """The cluster with what is created in it, and the tasks.

    `lacking` says, by pod, of which template there is no claim to be made.
    """

    caches: cluster_state.CachedObjects
    tasks: tuple[replay.Task, ...]
    lacking: Mapping[ids.Key, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def make(wanted: manifests.Manifests, world: dump.Dump) -> Made:
    """Create what is wanted in a cluster.

    Claims that are in the cluster already stay as they are, for they may be in use; of all else
    what is created counts. Pods of a name that is taken are created under another.
    """
    maker = _Maker(wanted, world)
    tasks = tuple(maker.task(one) for one in wanted.wanted)
    caches, notes = _overlaid(world.caches, wanted.others.caches)
    return Made(caches, tasks, maker.lacking, (*notes, *maker.notes()))


def _overlaid(
    there: cluster_state.CachedObjects, created: cluster_state.CachedObjects
) -> tuple[cluster_state.CachedObjects, Sequence[str]]:
    both: dict[str, dict[ids.Key, Any]] = {}
    notes: list[str] = []
    for one in fields(cluster_state.CachedObjects):
        old, new = getattr(there, one.name), getattr(created, one.name)
        twice = sorted(old.keys() & new.keys())
        if one.name == "claims":
            both[one.name] = {**new, **old}
            notes += (f"ResourceClaim {key}: is there already, and counts" for key in twice)
        else:
            both[one.name] = {**old, **new}
            notes += (
                f"{_KINDS[one.name]} {key}: is there already; what is created counts"
                for key in twice
            )
    return cluster_state.CachedObjects(**both), notes


class _Maker:
    def __init__(self, wanted: manifests.Manifests, world: dump.Dump) -> None:
        created = wanted.others
        self._templates = {**world.templates, **created.templates}
        self._priorities = {**world.priorities, **created.priorities}
        self._claims = {*world.caches.claims, *created.caches.claims}
        self._pods = {*world.caches.pods}
        self._renamed = 0
        self._unknown: dict[str, None] = {}
        self._plugins: dict[str, int] = {}
        self.lacking: dict[ids.Key, str] = {}

    def task(self, one: manifests.Wanted) -> replay.Task:
        pod = one.pod
        name = _free(self._pods, pod.namespace, pod.name)
        if name != pod.name:
            self._renamed += 1
            uid = dump.derived(f"Pod/{pod.namespace}/{name}")
            pod = replace(pod, name=name, uid=ids.PodUid(uid))
        made = [self._claim(pod, *entry) for entry in one.templates.items()]
        found = {claim.pod_claim: claim for claim in made if claim is not None}
        entries = tuple(
            replace(entry, claim=found[entry.name].name) if entry.name in found else entry
            for entry in pod.claims
        )
        for name in () if entries else pod.requests:
            if "/" in name:
                self._plugins[name] = self._plugins.get(name, 0) + 1
        priority = self._priority(one)
        return replay.Task(replace(pod, claims=entries, priority=priority), (*found.values(),))

    def notes(self) -> list[str]:
        found = [f"PriorityClass {name}: is not there, taken for 0" for name in self._unknown]
        found += (
            f"{count} {'pods ask' if count > 1 else 'pod asks'} {name} without a claim: left out, "
            "but for --convert"
            for name, count in self._plugins.items()
        )
        if self._renamed:
            which = "1 pod's name is" if self._renamed == 1 else f"{self._renamed} pods' names are"
            found.append(f"{which} taken: created under another")
        return found

    def _claim(self, pod: pods.Pod, entry: str, template: str) -> claims.Claim | None:
        key = ids.Key(f"{pod.namespace}/{template}")
        found = self._templates.get(key)
        if found is None:
            self.lacking[pod.key] = f"waits for its claim: no ResourceClaimTemplate {key}"
            return None
        name = _free(self._claims, pod.namespace, f"{pod.name}-{entry}")
        uid = ids.ClaimUid(dump.derived(f"ResourceClaim/{pod.namespace}/{name}"))
        return claims.Claim(pod.namespace, name, uid, "", found.spec, pod_claim=entry)

    def _priority(self, one: manifests.Wanted) -> int:
        if one.pod.priority:
            return one.pod.priority
        if not one.priority_class:
            usual = (found.value for found in self._priorities.values() if found.usual)
            return next(usual, 0)
        found = self._priorities.get(ids.Key(one.priority_class))
        if found is not None:
            return found.value
        if one.priority_class not in _SYSTEM:
            self._unknown[one.priority_class] = None
        return _SYSTEM.get(one.priority_class, 0)


def _free(taken: set[ids.Key], namespace: str, wanted: str) -> str:
    """A name that none has yet, and that is taken from now on."""
    name, number = wanted, 2
    while f"{namespace}/{name}" in taken:
        name, number = f"{wanted}-{number}", number + 1
    taken.add(ids.Key(f"{namespace}/{name}"))
    return name
