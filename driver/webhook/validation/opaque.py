"""Opaque configuration of our driver in claims, templates and classes, read as Prepare reads it.

Pure. `api.decode` has the word on each document; here is where documents stand, in every version of
the API, and what may help who wrote one.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from driver import errors
from driver.api import decode, nvidia, v1alpha1
from driver.resources import fields
from driver.webhook import admission_review

GROUP = "resource.k8s.io"
CLAIM, TEMPLATE, CLASS = "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"
_LAYOUTS = {
    CLAIM: ("spec", "devices"),
    TEMPLATE: ("spec", "spec", "devices"),
    CLASS: ("spec",),
}
_OURS_FOR = {
    "timeSlicingConfig": "timeSlicing",
    "mpsConfig": "mps",
    "defaultActiveThreadPercentage": "activeThreadPercentage",
    "defaultPinnedDeviceMemoryLimit": "pinnedMemory",
    "defaultPerDevicePinnedMemoryLimit": "pinnedMemoryPerDevice",
}
"""NVIDIA's names and ours for the same."""
_THEIRS_FOR = {ours: theirs for theirs, ours in _OURS_FOR.items()}
_MODELS = (
    v1alpha1.GpuConfig,
    v1alpha1.SliceConfig,
    v1alpha1.TimeSlicing,
    v1alpha1.TimeSlicingSharing,
    v1alpha1.Mps,
)
_FIELDS = frozenset(name for model in _MODELS for name in model.model_fields)


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """Part of an object that holds configuration: `spec.devices` of a claim, `spec` of a class."""

    at: str
    raw: fields.Raw
    is_class: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """Certain errors, and possible ones."""

    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def claim_part(kind: admission_review.ObjectKind, obj: fields.Raw) -> ConfigPart | None:
    """The part that matters; None for kinds that hold no configuration.

    Raises:
        BadInput: what leads there is no object.
    """
    steps = _LAYOUTS.get(kind.kind) if kind.group == GROUP else None
    if steps is None:
        return None
    raw, path = obj, ""
    for step in steps:
        raw, path = fields.mapping(raw, step, path), f"{path}.{step}" if path else step
    return ConfigPart(path, raw, is_class=kind.kind == CLASS)


def read(part: ConfigPart, driver: str) -> tuple[tuple[decode.Document, ...], tuple[str, ...]]:
    """The driver's documents in their order, and what is wrong with those that cannot be read."""
    documents: list[decode.Document] = []
    problems: list[str] = []
    for path, entry in fields.objects(part.raw, "config", part.at):
        try:
            document = _document(entry, path, driver, from_class=part.is_class)
        except errors.BadInput as problem:
            problems.append(_told(problem))
        else:
            documents += [document] if document else []
    return tuple(documents), tuple(problems)


def without_duplicates(part: ConfigPart, driver: str) -> Iterator[str]:
    """The keys that the driver's documents have twice: whoever reads them takes one of the two."""
    for path, entry in fields.objects(part.raw, "config", part.at):
        opaque = entry.get("opaque")
        if isinstance(opaque, dict) and opaque.get("driver") == driver:
            yield from map(str, admission_review.find_duplicate(opaque, f"{path}.opaque"))


def _document(
    entry: fields.Raw, path: str, driver: str, *, from_class: bool
) -> decode.Document | None:
    location = f"{path}.opaque"
    opaque = fields.mapping(entry, "opaque", path)
    if fields.text(opaque, "driver", location) != driver:
        return None
    parameters = fields.mapping(opaque, "parameters", location)
    location = f"{location}.parameters"
    result = decode.decode_config(parameters, location, from_class=from_class)
    return decode.Document(
        result, location, () if from_class else fields.texts(entry, "requests", path)
    )


def _told(problem: errors.BadInput) -> str:
    hint = _hint(problem)
    return f"{problem} ({hint})" if hint else str(problem)


def _hint(problem: errors.BadInput) -> str:
    """Return the field that the writer may have meant by an unknown one."""
    if problem.problem != "is not a field":
        return ""
    name = problem.location.rpartition(".")[2]
    if name in _OURS_FOR:
        return f"it is of {nvidia.VERSION}; here it is {_OURS_FOR[name]}"
    if name in _THEIRS_FOR:
        return f"in {nvidia.VERSION} it is {_THEIRS_FOR[name]}"
    near = difflib.get_close_matches(name, sorted(_FIELDS), n=1)
    return f"did you mean {near[0]}?" if near else ""
