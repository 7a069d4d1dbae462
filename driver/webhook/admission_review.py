"""AdmissionReview v1 (admission.k8s.io): bytes to a typed request, an answer to bytes. Pure.

Whatever the bytes are, the outcome is a request or a BadInput, which the server answers with 400.
A key that an object has twice is remembered, for Kubernetes keeps opaque parameters as they were
written, and of two equal keys readers would silently take one (D13).
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from driver import errors
from driver.resources import fields

API_VERSION = "admission.k8s.io/v1"
MOST_BYTES = 3 << 20
"""Of a review: the API server takes no larger object (its own limit of a request's body)."""
_MOST_WARNINGS = 32
_MOST_WARNING = 256
"""Characters of a warning: the API server cuts longer ones off, and drops those beyond 4096 all
together (k8s.io/apiserver, endpoints/filters/warning.go)."""
_MOST_MESSAGE = 2048
CREATE, UPDATE = "CREATE", "UPDATE"
_FORBIDDEN = 403


class DuplicateKey(dict[str, object]):
    """A JSON object in which `key` stands twice."""

    key: str = ""


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """Kind of the reviewed object, in the version in which it was sent."""

    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """Admission request. `old` is empty except at an update; `object` at a deletion."""

    uid: str
    kind: ObjectKind
    operation: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    object: fields.Raw | None = None
    old: fields.Raw | None = None


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The verdict. `patch` are JSON patch operations (RFC 6902), and only of allowed objects."""

    allowed: bool = True
    message: str = ""
    code: int = _FORBIDDEN
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, object], ...] = ()


ALLOWED = ReviewResponse()


def read(body: bytes) -> ReviewRequest:
    """The request of an AdmissionReview.

    Raises:
        BadInput: it is none, and what is wrong with it.
    """
    review = _parsed(body)
    version, kind = review.get("apiVersion"), review.get("kind")
    if (version, kind) != (API_VERSION, "AdmissionReview"):
        problem = f"is {version!r} {kind!r}"
        raise errors.BadInput("the body", problem, f"an AdmissionReview of {API_VERSION}")
    requested = fields.mapping(review, "request")
    owner = fields.mapping(requested, "kind", "request")
    return ReviewRequest(
        uid=fields.required_text(requested, "uid", "request"),
        kind=ObjectKind(
            fields.text(owner, "group", "request.kind"),
            fields.required_text(owner, "version", "request.kind"),
            fields.required_text(owner, "kind", "request.kind"),
        ),
        operation=fields.required_text(requested, "operation", "request"),
        namespace=fields.text(requested, "namespace", "request"),
        name=fields.text(requested, "name", "request"),
        subresource=fields.text(requested, "subResource", "request"),
        dry_run=fields.flag(requested, "dryRun", "request"),
        object=_object(requested, "object"),
        old=_object(requested, "oldObject"),
    )


def render(request: ReviewRequest, answer: ReviewResponse) -> bytes:
    """The AdmissionReview that answers a request."""
    response: dict[str, object] = {"uid": request.uid, "allowed": answer.allowed}
    if not answer.allowed:
        response["status"] = {"code": answer.code, "message": _cut(answer.message, _MOST_MESSAGE)}
    if answer.warnings:
        shown = dict.fromkeys(_cut(warning, _MOST_WARNING) for warning in answer.warnings)
        response["warnings"] = list(shown)[:_MOST_WARNINGS]
    if answer.allowed and answer.patch:
        operations = json.dumps([dict(warning) for warning in answer.patch]).encode()
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(operations).decode()
    shown_review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    return json.dumps(shown_review).encode()


def find_duplicate(value: object, path: str) -> Iterator[errors.BadInput]:
    """The keys that objects of a JSON value have twice; without recursion, for nesting is free."""
    waiting = [(path, value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, DuplicateKey):
            yield errors.BadInput(f"{path}.{item.key}", "is there twice", "each field once")
        if isinstance(item, Mapping):
            waiting += ((f"{path}.{key}", part) for key, part in item.items())
        elif isinstance(item, Sequence) and not isinstance(item, str):
            waiting += ((f"{path}[{index}]", part) for index, part in enumerate(item))


def _parsed(body: bytes) -> fields.Raw:
    if len(body) > MOST_BYTES:
        raise errors.BadInput("the body", f"has {len(body)} bytes", f"{MOST_BYTES} at most")
    try:
        result = json.loads(body, object_pairs_hook=_object_of, parse_constant=_no_json)
    except RecursionError as error:  # of the parser's own, long before ours
        raise errors.BadInput("the body", "is nested too deeply", "JSON") from error
    except ValueError as error:  # UnicodeDecodeError and numbers beyond all measure among them
        raise errors.BadInput("the body", str(error), "JSON") from error
    if not isinstance(result, dict):
        raise errors.BadInput("the body", f"is {type(result).__name__}", "an object")
    return result


def _object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    marked = DuplicateKey(result)
    for key, _ in pairs:
        if key in seen:
            marked.key = key
        seen.add(key)
    return marked


def _no_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON value")


def _object(requested: fields.Raw, key: str) -> fields.Raw | None:
    return None if requested.get(key) is None else fields.mapping(requested, key, "request")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
