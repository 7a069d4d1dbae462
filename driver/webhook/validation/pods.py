"""Checks which claims a pod's containers cannot use together (D10), where certain. Pure.

A container has at most one MPS daemon and no GPU outside it. The allocator, which knows the
devices, decides; refused here is only what no choice of devices could mend.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import errors, names
from driver.resources import fields
from driver.resources.core import pods as resources
from driver.webhook.validation import configs, mps, opaque
from driver.webhook.validation.opaque import Findings
from driver.webhook.validation.selectors import Face

_SHARE, _OUTSIDE = "an MPS share", "a GPU without MPS"


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """An entry of a pod's `resourceClaims`: a claim, or a template of one, by its name."""

    name: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim of the pod: `key` is one where two entries name the same claim."""

    key: tuple[str, str]
    name: str
    outcomes: Mapping[str, configs.RequestOutcome]


@dataclass(frozen=True, slots=True)
class _Device:
    """A device that a container surely has; `daemon` is the claim whose own daemon it is under."""

    what: str
    daemon: tuple[str, str] | None
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


def claim_references(pod: fields.Raw) -> tuple[ClaimReference, ...]:
    """The claims and templates that a pod names.

    Raises:
        BadInput: a field has another type than the API's.
    """
    return tuple(_named(fields.mapping(pod, "spec")))


def check(
    pod: fields.Raw, parts: Mapping[str, opaque.ConfigPart], cluster_facts: configs.ClusterFacts
) -> Findings:
    """Return the findings on a pod; `parts` by the entries' names, where they are known."""
    try:
        claims = {
            claim.name: claim for claim in _claims(claim_references(pod), parts, cluster_facts)
        }
        containers = resources.parse(_with_a_name(pod)).containers
    except errors.BadInput:
        return Findings()  # the API server's to tell
    problems = (_clash(claim, claims) for claim in containers)
    return Findings(
        tuple(text for text in problems if text),
        tuple(text for claim in claims.values() for text in _boundless(claim)),
    )


def _named(spec: fields.Raw) -> Iterator[ClaimReference]:
    for path, item in fields.objects(spec, "resourceClaims", "spec"):
        name = fields.required_text(item, "name", path)
        claim = fields.text(item, "resourceClaimName", path)
        template = fields.text(item, "resourceClaimTemplateName", path)
        if claim or template:
            kind = opaque.CLAIM if claim else opaque.TEMPLATE
            yield ClaimReference(name, kind, claim or template)


def _claims(
    entries: Iterable[ClaimReference],
    parts: Mapping[str, opaque.ConfigPart],
    cluster_facts: configs.ClusterFacts,
) -> Iterator[_Claim]:
    for entry in entries:
        if entry.name not in parts:
            continue
        part = parts[entry.name]
        brought, _ = opaque.read(part, cluster_facts.driver)
        requests = configs.parse_requests(part)
        _, outcomes = configs.evaluate_claim(requests, brought, cluster_facts)
        key = ("", entry.source) if entry.kind == opaque.CLAIM else (entry.name, "")
        by_name = {request.name: it for request, it in zip(requests, outcomes, strict=True)}
        yield _Claim(key, entry.name, by_name)


def _with_a_name(pod: fields.Raw) -> fields.Raw:
    """A pod whose name the API server is still to make has none."""
    meta = fields.mapping(pod, "metadata")
    return {**pod, "metadata": {**meta, "name": meta.get("name") or "pod"}}


def _clash(container: resources.Container, claims: Mapping[str, _Claim]) -> str:
    devices: dict[tuple[tuple[str, str], str, int], _Device] = {}
    for name, request in container.claims:
        claim = claims.get(name)
        for requested, outcome in claim.outcomes.items() if claim else ():
            if claim and request in {"", requested}:
                every = enumerate(_devices(claim, requested, outcome))
                devices |= {(claim.key, requested, path): device for path, device in every}
    for device, other in itertools.combinations(devices.values(), 2):
        if _SHARE in {device.what, other.what} or device.daemon != other.daemon:
            return _told(container, device, other)
    return ""


def _told(container: resources.Container, device: _Device, other: _Device) -> str:
    return (
        f"container {container.name} has {device} and {other}: a container may use one MPS daemon, "
        "and no GPU outside it; give each a container of its own"
    )


def _devices(claim: _Claim, requested: str, outcome: configs.RequestOutcome) -> Iterator[_Device]:
    """Yield the devices that it surely has: of All at least one."""
    if outcome.ways != 1 or len(outcome.sure) != 1:
        return
    way = outcome.sure[0].way
    path = f"claim {claim.name}, request {requested}"
    share, own = way.face is Face.MPS, mps.daemon_devices(outcome) is not None
    subject = _SHARE if share else f"a {way.face} under MPS" if own else _OUTSIDE
    for _ in range(1 if way.request.all_devices else min(way.count, 2)):
        yield _Device(subject, claim.key if own else None, path)


def _boundless(claim: _Claim) -> Iterator[str]:
    for requested, outcome in claim.outcomes.items():
        ways = (
            configured.way for configured in outcome.sure if configured.way.face is Face.TIME_SLICED
        )
        if any(not _has_memory(way.request.minimums) for way in ways):
            yield (
                f"claim {claim.name}, request {requested}: a time-sliced share without an amount "
                "of memory counts as one share's, and nothing holds the program to it; say "
                "capacity.requests.memory"
            )


def _has_memory(minimums: Mapping[str, object]) -> bool:
    return any(name.rpartition("/")[2] == names.CAP_MEMORY for name in minimums)
