"""Every document that is ours, or holds something of ours, as whoever reads it later will. Pure.

Configuration is judged by the admission webhook's own code, and what our kinds say by their models.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import errors, names
from driver.api import crd, decode, node_shapes, offerings, workload_mix
from driver.cli.simulation import dump
from driver.cli.validate import standard_classes
from driver.resources import fields, queues, reservations
from driver.resources.cel import selector
from driver.resources.dra import device_classes
from driver.resources.dra import requests as dra_requests
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
class Problem:
    """What is wrong with an object; `certain` false: it may be right, and looks wrong."""

    file: str
    object: str
    told: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """`checked` objects were looked at; `passed` counts those that hold nothing of ours."""

    problems: tuple[Problem, ...]
    checked: int
    passed: int


_Said = tuple[tuple[str, ...], tuple[str, ...]]
"""What is certainly wrong with an object, and what may be."""


def judge(sources: Iterable[Source], driver: str = names.DRIVER) -> Verdict:
    """What there is to say of all of them; DeviceClasses and templates among them are known."""
    found = [Source(one.file, obj) for one in sources for obj in dump.unfold([one.document])]
    judging = _Judging(driver, [one.document for one in found])
    problems: list[Problem] = []
    checked = 0
    for one in found:
        said = judging.of(one.document)
        if said is None:
            continue
        checked += 1
        called = name_of(one.document)
        problems += (Problem(one.file, called, text) for text in said[0])
        problems += (Problem(one.file, called, text, certain=False) for text in said[1])
    return Verdict(tuple(problems), checked, len(found) - checked)


def name_of(obj: object) -> str:
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
        objects = [one for one in everything if isinstance(one, Mapping)]
        self._known = configs.ClusterFacts(
            driver, {**standard_classes.device_classes(driver), **_classes(objects)}
        )
        self._parts = dict(_parts(objects))

    def of(self, obj: object) -> _Said | None:
        """None for what holds nothing of ours."""
        if not isinstance(obj, Mapping):
            return (f"is {type(obj).__name__}; expected an object",), ()
        version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        if not version or not kind:
            return ("has no apiVersion or no kind; expected both",), ()
        group, _, number = version.rpartition("/")
        if group == opaque.GROUP:
            return self._of_dra(admission_review.ObjectKind(group, number, kind), obj)
        read = _document if version == names.CONFIG_VERSION else _CRDS.get((version, kind))
        if read is not None:
            return _told(read, obj)
        return self._of_workload(obj, kind)

    def _of_dra(self, kind: admission_review.ObjectKind, obj: fields.Raw) -> _Said | None:
        found = validation_claims.check(kind, obj, self._known)
        try:
            part = opaque.claim_part(kind, obj)
            if part is None:
                return None
            more = () if found.problems else tuple(_part(kind, part))
        except errors.BadInput as problem:
            more = () if found.problems else (str(problem),)
        return (*found.problems, *more), found.warnings

    def _of_workload(self, obj: fields.Raw, kind: str) -> _Said | None:
        if kind == "Pod":
            return self._of_pod(obj, obj)
        if kind not in _TEMPLATED:
            return None
        try:
            template = fields.mapping(fields.mapping(obj, "spec"), "template", "spec")
        except errors.BadInput as problem:
            return (str(problem),), ()
        return self._of_pod(template, obj)

    def _of_pod(self, pod: fields.Raw, obj: fields.Raw) -> _Said | None:
        """What its containers cannot have together, of the claims and templates in the files."""
        try:
            entries = pods.claim_references(pod)
        except errors.BadInput as problem:
            return (str(problem),), ()
        if not entries:
            return None
        within = _namespace(obj)
        parts = {one.name: self._parts.get((one.kind, within, one.source)) for one in entries}
        found = pods.check(pod, {k: v for k, v in parts.items() if v is not None}, self._known)
        return found.problems, found.warnings


def _told(read: Callable[[fields.Raw], None], obj: fields.Raw) -> _Said:
    try:
        read(obj)
    except errors.BadInput as problem:
        return (str(problem),), ()
    return (), ()


def _queue(obj: fields.Raw) -> None:
    _unknown(obj, ("apiVersion", "kind", "metadata", "spec", "status"))
    found = queues.parse(obj)
    for name in ("gpus", "memory", "compute"):
        least, most = getattr(found.deserved, name), getattr(found.limit, name)
        if least is not None and most is not None and most < least:
            raise errors.BadInput(f"spec.limit.{name}", "is less than what is deserved")


def _reservation(obj: fields.Raw) -> None:
    _unknown(obj, ("apiVersion", "kind", "metadata", "spec", "status"))
    for text in _beyond(reservations.parse(obj).spec):
        raise errors.BadInput(text, "is not weighed: nothing could be reserved")
    wanted = fields.mapping(fields.mapping(obj, "spec"), "devices", "spec")
    for where, why in _selectors(wanted, "spec.devices", nested=True):
        raise errors.BadInput(where, why)


def _document(obj: fields.Raw) -> None:
    match obj.get("kind"):
        case "NodeOfferings":
            offerings.read(obj, "NodeOfferings")
        case "UsualWorkloads":
            workload_mix.read(obj, "UsualWorkloads")
        case "NodeShapes":
            node_shapes.read(obj, "NodeShapes")
        case kind:
            decode.decode_config(obj, str(kind), from_class=True)


_CRDS: Mapping[tuple[str, str], Callable[[fields.Raw], None]] = {
    (crd.VERSION, "Queue"): _queue,
    (crd.VERSION, "Reservation"): _reservation,
}


def _unknown(obj: fields.Raw, known: tuple[str, ...]) -> None:
    for key in obj:
        if key not in known:
            raise errors.BadInput(key, "is not a field", f"one of {', '.join(known)}")


def _part(kind: admission_review.ObjectKind, part: opaque.ConfigPart) -> Iterator[str]:
    """Beyond configuration: what is asked can be read, is weighed, and its selectors compile."""
    if not part.is_class:
        asked = configs.parse_requests(part)
        if not asked:
            yield f"{part.at}.requests: is empty; expected a request"
        if kind.version == "v1":
            told = _beyond(dra_requests.parse(part.raw))
            yield from (f"{one}: is not weighed: the claim would not be allocated" for one in told)
    for where, problem in _selectors(part.raw, part.at, nested=not part.is_class):
        yield str(errors.BadInput(where, problem))


def _beyond(spec: dra_requests.ClaimSpec) -> Iterator[str]:
    yield from spec.unsupported
    for one in (way for asked in spec.requests for way in (asked, *asked.alternatives)):
        yield from (f"request {one.name}, {text}" for text in one.unsupported)


def _selectors(raw: fields.Raw, at: str, *, nested: bool) -> Iterator[tuple[str, str]]:
    """Where an expression stands that does not compile, and why."""
    for path, one in _selecting(raw, at) if nested else ((at, raw),):
        for where, entry in fields.objects(one, "selectors", path):
            cel = fields.mapping(entry, "cel", where)
            text = fields.required_text(cel, "expression", f"{where}.cel")
            found = selector.compile_selector(text)
            if isinstance(found, selector.UnusableSelector):
                yield f"{where}.cel.expression", found.why


def _selecting(raw: fields.Raw, at: str) -> Iterator[tuple[str, fields.Raw]]:
    """Whatever of a claim has selectors, in all versions of the API."""
    for path, one in fields.objects(raw, "requests", at):
        yield path, one
        yield f"{path}.exactly", fields.mapping(one, "exactly", path)
        yield from fields.objects(one, "firstAvailable", path)


def _classes(objects: Iterable[fields.Raw]) -> dict[str, device_classes.DeviceClass]:
    found: dict[str, device_classes.DeviceClass] = {}
    for obj in objects:
        if obj.get("kind") != opaque.CLASS:
            continue
        try:
            one = device_classes.parse(obj)
        except errors.BadInput:
            continue  # it is told where it is checked
        found[one.name] = one
    return found


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
    found = meta.get("namespace") if isinstance(meta, Mapping) else None
    return str(found or dump.NAMESPACE)
