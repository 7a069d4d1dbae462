"""Reads raw API objects, of a file or a listing, for the scheduler. Pure.

Unreadable objects are reported with kind, name and field; all others still count.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver import errors, ids
from driver.resources import fields
from driver.resources.core import namespaces, nodes, pods, storage, volumes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from driver.resources.dra import requests as dra_requests
from driver.scheduling.snapshot import cluster_state

NAMESPACE = "default"
"""Of objects that name none, as with kubectl."""
_DRA = ("resource.k8s.io/v1",)
_STORAGE = ("storage.k8s.io/v1",)
_RULES = (*_DRA, "resource.k8s.io/v1beta2")


@dataclass(frozen=True, slots=True)
class Template:
    """A ResourceClaimTemplate: what the claims made of it ask."""

    namespace: str
    name: str
    spec: dra_requests.ClaimSpec

    @property
    def key(self) -> ids.Key:
        """`namespace/name`."""
        return ids.Key(f"{self.namespace}/{self.name}")


@dataclass(frozen=True, slots=True)
class Priority:
    """A PriorityClass; pods that name none have the `usual` one."""

    value: int
    usual: bool = False


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """An object, by kind and `namespace/name`, that cannot be read: which field, and what of it."""

    kind: str
    name: str
    field: str
    problem: str

    def __str__(self) -> str:
        """`Node gpu-1: status.allocatable.cpu: is list; expected a quantity`."""
        path = f"{self.field}: " if self.field else ""
        return f"{self.kind} {self.name or '(without a name)'}: {path}{self.problem}"


@dataclass(frozen=True, slots=True)
class Dump:
    """Parsed raw objects: `ignored` counts those of irrelevant kinds, by kind."""

    caches: cluster_state.CachedObjects
    templates: Mapping[ids.Key, Template] = field(default_factory=dict)
    priorities: Mapping[ids.Key, Priority] = field(default_factory=dict)
    problems: tuple[ReadProblem, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kind:
    """Parser of a kind: its versions, and whether it is namespaced."""

    versions: tuple[str, ...]
    parse: Callable[[fields.Raw], object]
    namespaced: bool = False


def _template(obj: fields.Raw) -> Template:
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(fields.mapping(obj, "spec"), "spec", "spec")
    if not spec:
        raise errors.BadInput("spec.spec", "is missing", "what the claims ask")
    return Template(
        fields.text(meta, "namespace", "metadata"),
        fields.required_text(meta, "name", "metadata"),
        dra_requests.parse(fields.mapping(spec, "devices", "spec.spec")),
    )


def _priority(obj: fields.Raw) -> Priority:
    return Priority(fields.integer(obj, "value"), fields.flag(obj, "globalDefault"))


KINDS: Mapping[str, Kind] = {
    "Node": Kind(("v1",), nodes.parse),
    "ResourceSlice": Kind(_DRA, slices.parse),
    "DeviceClass": Kind(_DRA, device_classes.parse),
    "ResourceClaim": Kind(_DRA, claims.parse, namespaced=True),
    "ResourceClaimTemplate": Kind(_DRA, _template, namespaced=True),
    "Pod": Kind(("v1",), pods.parse, namespaced=True),
    "PersistentVolumeClaim": Kind(("v1",), volumes.parse_claim, namespaced=True),
    "PersistentVolume": Kind(("v1",), volumes.parse_volume),
    "Namespace": Kind(("v1",), namespaces.parse),
    "StorageClass": Kind(_STORAGE, storage.parse_class),
    "CSINode": Kind(_STORAGE, storage.parse_node),
    "CSIDriver": Kind(_STORAGE, storage.parse_driver),
    "CSIStorageCapacity": Kind(_STORAGE, storage.parse_capacity, namespaced=True),
    "VolumeAttachment": Kind(_STORAGE, storage.parse_attachment),
    "DeviceTaintRule": Kind(_RULES, taint_rules.parse),
    "PriorityClass": Kind(("scheduling.k8s.io/v1",), _priority),
}
"""What deciding looks at."""


def read(documents: Iterable[Mapping[str, Any]], namespace: str = NAMESPACE) -> Dump:
    """Read raw objects; Lists are unfolded. `namespace` is of those that name none.

    An object without a UID gets one that depends on its kind and name alone. Of an object that is
    there twice the first counts, and the other is a problem.
    """
    result: dict[str, dict[ids.Key, Any]] = {kind: {} for kind in KINDS}
    problems: list[ReadProblem] = []
    ignored: dict[str, int] = {}
    for obj in expand_lists(documents):
        kind = obj.get("kind") if isinstance(obj, Mapping) else None
        if isinstance(kind, str) and kind and kind not in KINDS:
            ignored[kind] = ignored.get(kind, 0) + 1
            continue
        try:
            name, key, item = _one(obj, namespace)
        except errors.BadInput as error:
            problems.append(_problem(obj, namespace, error))
            continue
        if key in result[name]:
            problems.append(ReadProblem(name, key, "", "is there twice; the first one counts"))
        else:
            result[name][key] = item
    return Dump(
        _caches(result),
        result["ResourceClaimTemplate"],
        result["PriorityClass"],
        tuple(problems),
        ignored,
    )


def expand_lists(documents: Iterable[object]) -> Iterator[Any]:
    """The objects, those of Lists one by one; what is no List comes out as it is."""
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) else None
        kind = str(document.get("kind") or "") if isinstance(document, Mapping) else ""
        if not isinstance(document, Mapping) or not (kind.endswith("List") and _is_list(items)):
            yield document
            continue
        # Items of a listing do not say what they are: its own kind does.
        owner = {"kind": kind.removesuffix("List"), "apiVersion": document.get("apiVersion")}
        current = owner if owner["kind"] else {}
        report_progress = (
            {**current, **item} if isinstance(item, Mapping) else item for item in items or ()
        )
        yield from expand_lists(report_progress)


def _is_list(items: object) -> bool:
    return items is None or isinstance(items, list | tuple)


def _one(obj: object, namespace: str) -> tuple[str, ids.Key, object]:
    """Its kind, its key and what it says."""
    if not isinstance(obj, Mapping):
        raise errors.BadInput("", f"is {type(obj).__name__}", "an API object")
    name = fields.required_text(obj, "kind")
    kind, version = KINDS[name], fields.required_text(obj, "apiVersion")
    if version not in kind.versions:
        raise errors.BadInput("apiVersion", f"is {version}", " or ".join(kind.versions))
    report_progress = dict(fields.mapping(obj, "metadata"))
    key = called = fields.required_text(report_progress, "name", "metadata")
    if kind.namespaced:
        report_progress["namespace"] = (
            fields.text(report_progress, "namespace", "metadata") or namespace
        )
        key = f"{report_progress['namespace']}/{called}"
    report_progress["uid"] = fields.text(report_progress, "uid", "metadata") or derive_uid(
        f"{name}/{key}"
    )
    return name, ids.Key(key), kind.parse({**obj, "metadata": report_progress})


def derive_uid(text: str) -> str:
    """A UID that depends on a text alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, text))


def _problem(obj: object, namespace: str, error: errors.BadInput) -> ReadProblem:
    raw: Mapping[Any, Any] = obj if isinstance(obj, Mapping) else {}
    report_progress = raw.get("metadata")
    meta: Mapping[Any, Any] = report_progress if isinstance(report_progress, Mapping) else {}
    kind, name = str(raw.get("kind") or "object"), str(meta.get("name") or "")
    if name and kind in KINDS and KINDS[kind].namespaced:
        name = f"{meta.get('namespace') or namespace}/{name}"
    expected = f"; expected {error.expected}" if error.expected else ""
    return ReadProblem(kind, name, error.location, f"{error.problem}{expected}")


def _caches(obj: Mapping[str, Mapping[ids.Key, Any]]) -> cluster_state.CachedObjects:
    return cluster_state.CachedObjects(
        nodes=obj["Node"],
        slices=obj["ResourceSlice"],
        classes=obj["DeviceClass"],
        claims=obj["ResourceClaim"],
        pods=obj["Pod"],
        volume_claims=obj["PersistentVolumeClaim"],
        rules=obj["DeviceTaintRule"],
        persistent_volumes=obj["PersistentVolume"],
        namespace_objects=obj["Namespace"],
        storage_classes=obj["StorageClass"],
        csi_nodes=obj["CSINode"],
        csi_drivers=obj["CSIDriver"],
        capacities=obj["CSIStorageCapacity"],
        attachments=obj["VolumeAttachment"],
    )
