"""Documents made here of what the API server has, by the caller's rights; or of a dump of it."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from driver import clock, errors
from driver.cli import yaml_input
from driver.cli.simulation import dump
from driver.cli.sources import node_shapes
from driver.kube import client, gvr
from driver.resources import fields, queues, reservations
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.reports import catalog, read_model
from driver.scheduling.reports.documents import local_explanation, pods
from driver.scheduling.snapshot import cluster_state

Raw = Mapping[str, Any]
Tell = Callable[[str], None]
Possible = Callable[[read_model.Objects], list[str]]
SHAPES = "NodeShapes"
"""In place of a kind: the ConfigMaps of nodes on demand, read where they are asked for alone."""
_NOT_ASKED = "the controller alone knows, and it was not asked (--source controller asks it)"
_SLICES = 50
"""A page: each is some hundred KiB."""
_NAMESPACED = frozenset({"ResourceClaim", "Pod", "PersistentVolumeClaim", "Reservation"})
_REFINING = (
    ("Namespace", gvr.NAMESPACES),
    ("StorageClass", gvr.STORAGE_CLASSES),
    ("CSINode", gvr.CSI_NODES),
    ("CSIDriver", gvr.CSI_DRIVERS),
    ("CSIStorageCapacity", gvr.STORAGE_CAPACITIES),
    ("VolumeAttachment", gvr.VOLUME_ATTACHMENTS),
)
"""Kinds by which filters know more of nodes; who may not see them is not told so."""
_KINDS: Sequence[tuple[str, gvr.Resource, tuple[str, ...]]] = (
    ("ResourceSlice", gvr.RESOURCE_SLICES, ("v1",)),
    ("Node", gvr.NODES, ("v1",)),
    ("DeviceClass", gvr.DEVICE_CLASSES, ("v1",)),
    ("ResourceClaim", gvr.RESOURCE_CLAIMS, ("v1",)),
    ("Pod", gvr.PODS, ("v1",)),
    ("PersistentVolumeClaim", gvr.PVCS, ("v1",)),
    ("PersistentVolume", gvr.PVS, ("v1",)),
    ("DeviceTaintRule", gvr.DEVICE_TAINT_RULES, gvr.DEVICE_TAINT_RULE_VERSIONS),
    ("Queue", gvr.QUEUES, ("v1alpha1",)),
    ("Reservation", gvr.RESERVATIONS, ("v1alpha1",)),
)


@dataclass(frozen=True, slots=True)
class ReadScope:
    """Kinds to read, and their namespace ("": all).

    Other namespaces are left out if the caller may not read them. `reads` are the kinds that are
    read, all if it is empty; `node` is the only node that is read, "" for all. `ration_namespace`
    has the ConfigMaps of provisioned nodes. With `free_gpus` GPUs are reported as free.
    """

    needed: frozenset[str]
    namespace: str = ""
    reads: frozenset[str] = frozenset()
    node: str = ""
    ration_namespace: str = ""
    free_gpus: bool = False

    def fields(self, kind: str) -> str:
        """The field selector of a kind's listing."""
        of_node = {"ResourceSlice": "spec.nodeName", "Node": "metadata.name"}
        return f"{of_node[kind]}={self.node}" if self.node and kind in of_node else ""


def read_cluster(
    kube: client.KubeClient, driver: str, scope: ReadScope, time: clock.Clock, tell: Tell
) -> catalog.Reports:
    """Read the live cluster, as far as the caller may; `tell` receives progress.

    Raises:
        ApiError: a needed kind may not be listed, or the server was not reached.
    """
    result: list[Raw] = []
    missing: list[str] = []
    for kind, resource, versions in _KINDS:
        if scope.reads and kind not in scope.reads:
            continue
        tell(f"reading {resource.plural}")
        try:
            result += _listed(kube, kind, [replace(resource, version=v) for v in versions], scope)
        except errors.Forbidden as error:
            if kind in scope.needed:
                raise
            missing.append(f"{resource.plural}: {error.message}")
    for kind, resource in () if scope.reads else _REFINING:
        with contextlib.suppress(errors.Forbidden):
            result += _listed(kube, kind, [resource], scope)
    if SHAPES in scope.reads:
        tell("reading kinds of node")
        try:
            result += node_shapes.list_documents(kube, scope.ration_namespace)
        except errors.Forbidden as error:
            missing.append(f"kinds of node: {error.message}")
    all_pods = not scope.namespace and not any(resource.startswith("pods:") for resource in missing)
    possible = _possible(free_gpus=scope.free_gpus, all_pods=all_pods)
    return _reading(result, driver, missing, clock.rfc3339(time.now()), possible)


def read_file(
    source: str, driver: str, time: clock.Clock, *, free_gpus: bool = False
) -> catalog.Reports:
    """Read a dump: a file, a folder or standard input (`-`). Raises BadInput."""
    return _reading(
        yaml_input.read(source),
        driver,
        [],
        clock.rfc3339(time.now()),
        _possible(free_gpus=free_gpus, all_pods=True),
    )


def _listed(
    kube: client.KubeClient, kind: str, versions: Iterable[gvr.Resource], scope: ReadScope
) -> list[Raw]:
    """Under the first version that the server has; nothing where it has none."""
    for resource in versions:
        try:
            items = _everywhere(kube, kind, resource, scope)
        except errors.NotFound:
            continue
        return [{"apiVersion": resource.api_version, "kind": kind, **item} for item in items]
    return []


def _everywhere(
    kube: client.KubeClient, kind: str, resource: gvr.Resource, scope: ReadScope
) -> Sequence[Raw]:
    """List all namespaces if wanted and allowed, else the selected one."""
    fields_of = scope.fields(kind)
    if kind == "ResourceSlice":
        return kube.list(resource, limit=_SLICES, field_selector=fields_of).items
    if kind not in _NAMESPACED or not scope.namespace:
        return kube.list(resource, field_selector=fields_of).items
    try:
        return kube.list(resource).items
    except errors.Forbidden:
        return kube.list(resource, namespace=scope.namespace).items


def _reading(
    raw: Sequence[Raw], driver: str, missing: Sequence[str], time: str, possible: Possible
) -> catalog.Reports:
    unfolded = [entry for entry in dump.expand_lists(raw) if isinstance(entry, Mapping)]
    read = dump.read(unfolded)
    problems = [*missing, *map(str, read.problems)]
    teams = _parsed(unfolded, "Queue", queues.parse, problems)
    held = _parsed(unfolded, "Reservation", reservations.parse, problems)
    objects = build_objects(driver, read.caches, teams, held)
    kinds = node_shapes.parse_documents(unfolded, driver, problems)
    problems += _plans(objects, time) or possible(objects)
    return catalog.Reports(
        read_model.ClusterModel(replace(objects, missing=tuple(problems), shapes=kinds)),
        time,
        local_explanation.LocalExplainer(driver, read.caches, time),
    )


def _plans(objects: read_model.Objects, time: str) -> list[str]:
    """Sentences on plans of backfill: which devices are kept is in the controller's memory alone.

    A pod's condition says for whom, until when and how many of which node, a minute late at most.
    """
    sentences: dict[str, None] = {}
    for key, pod in sorted(objects.pods.items()):
        plan = (
            backfill_plan.parse_plan_sentence(pod.pending.message)
            if pod.pending is not None
            else None
        )
        if plan is None or plan.until <= time:
            continue
        holder = f"gang {pod.namespace}/{pod.gang}" if pod.gang else f"pod {key}"
        text = f"which GPUs are kept for {holder} until {plan.until} (backfill, {plan.gpus})"
        sentences[f"{text}: {_NOT_ASKED}; they are shown as free"] = None
    return [*sentences]


def _possible(*, free_gpus: bool, all_pods: bool) -> Possible:
    """Makes the sentence on plans that no condition tells of yet.

    There is none where no pod waits for devices, or nothing is called free.
    """
    sentence = f"whether GPUs shown as free are kept for pods that wait (backfill): {_NOT_ASKED}"

    def possible(objects: read_model.Objects) -> list[str]:
        waits = not all_pods or any(
            True for _ in pods.waiting_pods(read_model.ClusterModel(objects))
        )
        return [sentence] if free_gpus and waits else []

    return possible


def build_objects(
    driver: str,
    caches: cluster_state.CachedObjects,
    teams: Iterable[queues.Queue],
    reservation_list: Iterable[reservations.Reservation],
) -> read_model.Objects:
    """Return the objects of scheduling, with queues and reservations."""
    return read_model.Objects(
        driver=driver,
        nodes=caches.nodes,
        slices=caches.slices,
        classes=caches.classes,
        claims=caches.claims,
        pods=caches.pods,
        rules=caches.rules,
        queues={team.key: team for team in teams},
        reservations={team.key: team for team in reservation_list},
    )


def _parsed(current: Iterable[Raw], kind: str, parse: Any, problems: list[str]) -> list[Any]:  # noqa: ANN401 - of any kind
    """Return the readable objects; report why others are not."""
    built = []
    for item in current:
        if item.get("kind") != kind:
            continue
        try:
            built.append(parse(item))
        except errors.BadInput as error:
            name = fields.text(fields.mapping(item, "metadata"), "name")
            problems.append(f"{kind} {name}: {error}")
    return built
