"""Every document that is ours, or holds something of ours, as whoever reads it later will. Pure.

Configuration is judged by the admission webhook's own code, and what our kinds say by their models.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import errors, names
from driver.api import crd, decode, managed_drivers, node_shapes, offerings, workload_mix
from driver.cli.simulation import dump
from driver.cli.validate import standard_classes
from driver.resources import fields, queues, reservations
from driver.resources.cel import selector
from driver.resources.dra import device_classes
from driver.resources.dra import requests as dra_requests
from driver.scheduling.device_ownership import desired
from driver.webhook import admission_review
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs, opaque, pods

_TEMPLATED = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController"}
)


@dataclass(frozen=True, slots=True)
class Source:
    """A document and the file that it stands in."""

    file: str
    document: object


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    """Problem of an object; `certain` false: it may be right, and looks wrong."""

    file: str
    object: str
    message: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """`checked` objects were looked at; `passed` counts those that hold nothing of ours."""

    problems: tuple[ObjectProblem, ...]
    checked: int
    passed: int


_Findings = tuple[tuple[str, ...], tuple[str, ...]]
"""What is certainly wrong with an object, and what may be."""


def check_sources(sources: Iterable[Source], driver: str = names.DRIVER) -> ValidationResult:
    """Return all problems; DeviceClasses and templates among the files are known."""
    result = [
        Source(source.file, obj)
        for source in sources
        for obj in dump.expand_lists([source.document])
    ]
    judging = _Judging(driver, [source.document for source in result])
    problems: list[ObjectProblem] = []
    checked = 0
    for source in result:
        message = judging.judge(source.document)
        if message is None:
            continue
        checked += 1
        called = object_name(source.document)
        problems += (ObjectProblem(source.file, called, text) for text in message[0])
        problems += (ObjectProblem(source.file, called, text, certain=False) for text in message[1])
    return ValidationResult(tuple(problems), checked, len(result) - checked)


def object_name(obj: object) -> str:
    """`ResourceClaim team/gpus`, as far as it says so itself."""
    if not isinstance(obj, Mapping):
        return "document"
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = meta.get("name") or meta.get("generateName") or ""
    within = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{obj.get('kind') or 'document'} {within}{name}".strip()


class _Judging:
    """With what is known from the files themselves."""

    def __init__(self, driver: str, everything: Iterable[object]) -> None:
        objects = [item for item in everything if isinstance(item, Mapping)]
        self._known = configs.ClusterFacts(
            driver, {**standard_classes.device_classes(driver), **_classes(objects)}
        )
        self._parts = dict(_parts(objects))

    def judge(self, obj: object) -> _Findings | None:
        """Return the findings and fields of an object; None for objects of others."""
        if not isinstance(obj, Mapping):
            return (f"is {type(obj).__name__}; expected an object",), ()
        version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        if not version or not kind:
            return ("has no apiVersion or no kind; expected both",), ()
        group, _, number = version.rpartition("/")
        if group == opaque.GROUP:
            return self._of_dra(admission_review.ObjectKind(group, number, kind), obj)
        if version == names.CONFIG_VERSION:
            return _read_findings(functools.partial(_document, driver=self._known.driver), obj)
        if (version, kind) in _CRDS:
            return _read_findings(_CRDS[version, kind], obj)
        return self._of_workload(obj, kind)

    def _of_dra(self, kind: admission_review.ObjectKind, obj: fields.Raw) -> _Findings | None:
        findings = validation_claims.check(kind, obj, self._known)
        try:
            part = opaque.claim_part(kind, obj)
            if part is None:
                return None
            more = () if findings.problems else tuple(_part(kind, part))
        except errors.BadInput as problem:
            more = () if findings.problems else (str(problem),)
        return (*findings.problems, *more), findings.warnings

    def _of_workload(self, obj: fields.Raw, kind: str) -> _Findings | None:
        if kind == "Pod":
            return self._of_pod(obj, obj)
        if kind not in _TEMPLATED:
            return None
        try:
            template = fields.mapping(fields.mapping(obj, "spec"), "template", "spec")
        except errors.BadInput as problem:
            return (str(problem),), ()
        return self._of_pod(template, obj)

    def _of_pod(self, pod: fields.Raw, obj: fields.Raw) -> _Findings | None:
        """Check which claims its containers cannot use together, by the files' templates."""
        try:
            entries = pods.claim_references(pod)
        except errors.BadInput as problem:
            return (str(problem),), ()
        if not entries:
            return None
        within = _namespace(obj)
        parts = {
            claim_reference.name: self._parts.get(
                (claim_reference.kind, within, claim_reference.source)
            )
            for claim_reference in entries
        }
        findings = pods.check(pod, {k: v for k, v in parts.items() if v is not None}, self._known)
        return findings.problems, findings.warnings


def _read_findings(read: Callable[[fields.Raw], None], obj: fields.Raw) -> _Findings:
    try:
        read(obj)
    except errors.BadInput as problem:
        return (str(problem),), ()
    return (), ()


def _queue(obj: fields.Raw) -> None:
    _unknown(obj, ("apiVersion", "kind", "metadata", "spec", "status"))
    queue = queues.parse(obj)
    for name in ("gpus", "memory", "compute"):
        least, most = getattr(queue.deserved, name), getattr(queue.limit, name)
        if least is not None and most is not None and most < least:
            raise errors.BadInput(f"spec.limit.{name}", "is less than what is deserved")


def _reservation(obj: fields.Raw) -> None:
    _unknown(obj, ("apiVersion", "kind", "metadata", "spec", "status"))
    for text in _beyond(reservations.parse(obj).spec):
        raise errors.BadInput(text, "is not weighed: nothing could be reserved")
    desired = fields.mapping(fields.mapping(obj, "spec"), "devices", "spec")
    for path, why in _selectors(desired, "spec.devices", nested=True):
        raise errors.BadInput(path, why)


def _document(obj: fields.Raw, driver: str) -> None:
    match obj.get("kind"):
        case "NodeOfferings":
            offerings.read(obj, "NodeOfferings")
        case "WorkloadMix" | "UsualWorkloads":
            workload_mix.read(obj, "WorkloadMix")
        case "NodeShapes":
            node_shapes.read(obj, "NodeShapes")
        case "ManagedDrivers":
            document = managed_drivers.read(obj, "ManagedDrivers")
            desired.parse_drivers(document, driver, "ManagedDrivers")
        case kind:
            decode.decode_config(obj, str(kind), from_class=True)


_CRDS: Mapping[tuple[str, str], Callable[[fields.Raw], None]] = {
    (crd.VERSION, "Queue"): _queue,
    (crd.VERSION, "Reservation"): _reservation,
}


def _unknown(obj: fields.Raw, current: tuple[str, ...]) -> None:
    for key in obj:
        if key not in current:
            raise errors.BadInput(key, "is not a field", f"one of {', '.join(current)}")


def _part(kind: admission_review.ObjectKind, part: opaque.ConfigPart) -> Iterator[str]:
    """Yield problems beyond configuration: unreadable or unsupported requests, selectors."""
    if not part.is_class:
        requests = configs.parse_requests(part)
        if not requests:
            yield f"{part.at}.requests: is empty; expected a request"
        if kind.version == "v1":
            message = _beyond(dra_requests.parse(part.raw))
            yield from (
                f"{item}: is not weighed: the claim would not be allocated" for item in message
            )
    for path, problem in _selectors(part.raw, part.at, nested=not part.is_class):
        yield str(errors.BadInput(path, problem))


def _beyond(spec: dra_requests.ClaimSpec) -> Iterator[str]:
    yield from spec.unsupported
    for item in (way for request in spec.requests for way in (request, *request.alternatives)):
        yield from (f"request {item.name}, {text}" for text in item.unsupported)


def _selectors(raw: fields.Raw, field_path: str, *, nested: bool) -> Iterator[tuple[str, str]]:
    """Yield the path of each expression that does not compile, and why."""
    for path, item in _selecting(raw, field_path) if nested else ((field_path, raw),):
        for location, entry in fields.objects(item, "selectors", path):
            cel = fields.mapping(entry, "cel", location)
            text = fields.required_text(cel, "expression", f"{location}.cel")
            result = selector.compile_selector(text)
            if isinstance(result, selector.UnusableSelector):
                yield f"{location}.cel.expression", result.why


def _selecting(raw: fields.Raw, field_path: str) -> Iterator[tuple[str, fields.Raw]]:
    """Whatever of a claim has selectors, in all versions of the API."""
    for path, item in fields.objects(raw, "requests", field_path):
        yield path, item
        yield f"{path}.exactly", fields.mapping(item, "exactly", path)
        yield from fields.objects(item, "firstAvailable", path)


def _classes(objects: Iterable[fields.Raw]) -> dict[str, device_classes.DeviceClass]:
    device_class: dict[str, device_classes.DeviceClass] = {}
    for obj in objects:
        if obj.get("kind") != opaque.CLASS:
            continue
        try:
            item = device_classes.parse(obj)
        except errors.BadInput:
            continue  # it is told where it is checked
        device_class[item.name] = item
    return device_class


def _parts(
    objects: Iterable[fields.Raw],
) -> Iterator[tuple[tuple[str, str, str], opaque.ConfigPart]]:
    """Claims and templates by kind, namespace and name, as far as they can be read."""
    for obj in objects:
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        kind = str(obj.get("kind") or "")
        if group != opaque.GROUP or kind == opaque.CLASS:
            continue
        try:
            part = opaque.claim_part(admission_review.ObjectKind(group, version, kind), obj)
            name = fields.text(fields.mapping(obj, "metadata"), "name", "metadata")
            if part is not None:
                configs.parse_requests(part)
                yield (kind, _namespace(obj), name), part
        except errors.BadInput:
            continue  # as above


def _namespace(obj: fields.Raw) -> str:
    meta = obj.get("metadata")
    result = meta.get("namespace") if isinstance(meta, Mapping) else None
    return str(result or dump.NAMESPACE)
