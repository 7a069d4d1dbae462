"""A review's verdict: which objects are looked at, when, and what is answered. Pure but for ports.

Whatever is not asked about here is allowed untouched: other kinds, subresources, deletions, and
updates that change nothing that was decided when the object was made. An object on its way out
must be let go, however wrong it is.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Protocol

from driver import errors, names
from driver.resources import extended_resources, fields
from driver.webhook import admission_review, scheduling_gate
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs, opaque, pods

_INVALID, _FAILED = 422, 500
_MOST_CLAIMS = 16
"""Looked up for one pod: each is a call."""
Ensure = Callable[[str, extended_resources.Template], None]
"""Makes a template in a namespace. Raises ApiError, BadInput."""


class ClusterReader(Protocol):
    """Reads facts of the cluster."""

    def converted_resources(self) -> Mapping[str, str]:
        """Return the extended resources of labelled DeviceClasses, each with its class."""
        ...

    def cluster_facts(self) -> configs.ClusterFacts:
        """Return current classes and hardware."""
        ...

    def claim_part(self, namespace: str, named: pods.ClaimReference) -> opaque.ConfigPart | None:
        """Return a pod's claim or template; None if it cannot be read."""
        ...

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none where it is not known."""
        ...

    def is_allocating(self) -> bool:
        """Tell whether a controller leads now."""
        ...


def validate(
    request: admission_review.ReviewRequest, world: ClusterReader
) -> admission_review.ReviewResponse:
    """The verdict on an object with configuration, or on a pod that names claims."""
    obj = request.object
    if obj is None or not _is_looked_at(request, obj):
        return admission_review.ALLOWED
    if _is_pod(request.kind):
        findings = _of_pod(request, obj, world)
    else:
        findings = validation_claims.check(request.kind, obj, world.cluster_facts())
    if not findings.problems:
        return admission_review.ReviewResponse(warnings=findings.warnings)
    message = "; ".join(findings.problems)
    return admission_review.ReviewResponse(
        allowed=False, message=message, code=_INVALID, warnings=findings.warnings
    )


def mutate(
    request: admission_review.ReviewRequest,
    world: ClusterReader,
    ensure: Ensure,
    classes: extended_resources.Classes,
) -> admission_review.ReviewResponse:
    """A pod that asks for extended resources, converted; its templates are there by then."""
    obj = request.object
    if obj is None or not _is_pod(request.kind) or not _is_looked_at(request, obj):
        return admission_review.ALLOWED
    if world.namespace_labels(request.namespace).get(names.CONVERT_LABEL) == "false":
        return admission_review.ALLOWED
    try:
        labelled = world.converted_resources()
        conversion = extended_resources.convert(
            obj, dataclasses.replace(classes, labelled=labelled)
        )
        for template in conversion.templates if not request.dry_run else ():
            ensure(request.namespace, template)
    except errors.BadInput as problem:
        text = f"cannot be converted to a claim: {problem}; {_WAY_OUT}"
        return admission_review.ReviewResponse(allowed=False, message=text, code=_INVALID)
    except errors.ApiError as error:
        text = f"its ResourceClaimTemplate could not be made: {error}"
        return admission_review.ReviewResponse(allowed=False, message=text, code=_FAILED)
    return admission_review.ReviewResponse(patch=conversion.patch)


def gate(
    request: admission_review.ReviewRequest, world: ClusterReader
) -> admission_review.ReviewResponse:
    """Gate a pod that waits for the controller, if one leads; whatever is in doubt is let go."""
    obj = request.object
    if obj is None or not _is_pod(request.kind) or not _is_looked_at(request, obj):
        return admission_review.ALLOWED
    if world.namespace_labels(request.namespace).get(names.GATE_LABEL) == "false":
        return admission_review.ALLOWED
    try:
        parts = [
            world.claim_part(request.namespace, entry)
            for entry in pods.claim_references(obj)[:_MOST_CLAIMS]
        ]
        present = [part for part in parts if part is not None]
        patch = (
            scheduling_gate.gate_patch(obj, present, world.cluster_facts())
            if len(present) == len(parts)
            else ()
        )
    except errors.BadInput:
        return admission_review.ALLOWED  # the API server's to tell
    return (
        admission_review.ReviewResponse(patch=patch)
        if patch and world.is_allocating()
        else admission_review.ALLOWED
    )


_WAY_OUT = f"the namespace's label {names.CONVERT_LABEL}=false leaves pods as they are"


def _is_looked_at(request: admission_review.ReviewRequest, obj: fields.Raw) -> bool:
    if request.subresource:
        return False
    if request.operation == admission_review.CREATE:
        return True
    # A pod's claims and containers are what they were; so is the spec of a claim or template.
    changed = request.old is None or _judged(request.old) != _judged(obj)
    return request.operation == admission_review.UPDATE and not _is_pod(request.kind) and changed


def _judged(obj: fields.Raw) -> tuple[object, object, object]:
    """Return the checked parts of an object: its spec, a class's policies and its label."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    notes, labels = metadata.get("annotations"), metadata.get("labels")
    ordered = notes.get(names.POLICIES_ANNOTATION) if isinstance(notes, Mapping) else None
    converted = labels.get(names.CONVERT_LABEL) if isinstance(labels, Mapping) else None
    return obj.get("spec"), ordered, converted


def _is_pod(kind: admission_review.ObjectKind) -> bool:
    return (kind.group, kind.kind) == ("", "Pod")


def _of_pod(
    request: admission_review.ReviewRequest, pod: fields.Raw, world: ClusterReader
) -> opaque.Findings:
    try:
        entries = pods.claim_references(pod)[:_MOST_CLAIMS]
    except errors.BadInput:
        return validation_claims.NOTHING  # the API server's to tell
    parts = {
        claim_reference.name: world.claim_part(request.namespace, claim_reference)
        for claim_reference in entries
    }
    config_parts = {name: part for name, part in parts.items() if part is not None}
    return (
        pods.check(pod, config_parts, world.cluster_facts())
        if config_parts
        else validation_claims.NOTHING
    )
