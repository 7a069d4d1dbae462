"""Checks whether a claim's possible devices accept its configuration (D13). Pure.

The messages are those of Prepare: `api.decode.select_config`, `sharing.terms` and
`sharing.daemon`, applied to what every device of a request surely is. A problem that depends on
the device is a warning; one that no device can avoid is an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import errors, names
from driver.api import decode, v1alpha1
from driver.resources import fields, quantities
from driver.resources.dra import claims, device_classes
from driver.resources.dra import requests as dra_requests
from driver.resources.sharing import compatibility, multi_user
from driver.webhook.validation import hardware
from driver.webhook.validation import opaque as validation_opaque
from driver.webhook.validation import selectors as validation_selectors
from driver.webhook.validation.opaque import Findings
from driver.webhook.validation.selectors import CandidateWay, Face

_MAY_BE: Mapping[Face, tuple[Face, ...]] = {
    Face.UNKNOWN: (Face.WHOLE, Face.MIG),
    Face.NONE: (),
    Face.FOREIGN: (),
}
"""What tells of configuration; any other face is itself."""
_BY_NEED = (Face.MIG, Face.MPS, Face.TIME_SLICED, Face.WHOLE)
"""What a request by need may get, where selectors leave it open."""
_ANY = "of the class"
_SHARED = {Face.MPS: names.SHARING_MPS, Face.TIME_SLICED: names.SHARING_TIME_SLICING}


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts of the cluster. Without a class, its selectors are unknown."""

    driver: str = names.DRIVER
    classes: validation_selectors.Classes | None = None
    memory: hardware.Hardware = hardware.UNKNOWN

    def candidate_ways(self, request: dra_requests.Request) -> tuple[CandidateWay, ...]:
        """The ways of a request that our driver may answer."""
        ways = validation_selectors.candidate_ways(request, self.classes or {}, self.driver)
        return tuple(way for way in ways if way.ours)


@dataclass(frozen=True, slots=True)
class Configured:
    """A way with the configuration its devices have."""

    way: CandidateWay
    config: v1alpha1.Config


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """Result of one request's candidates: one is sure with a single face and result.

    `ways` counts those of this driver.
    """

    ways: int
    sure: tuple[Configured, ...] = ()
    problems: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()


def parse_requests(part: validation_opaque.ConfigPart) -> tuple[dra_requests.Request, ...]:
    """The requests of `spec.devices`, in whichever version they are written.

    v1beta1 has the fields of `exactly` in the request itself.

    Raises:
        BadInput: a field has another type than the API's.
    """
    shown = []
    for _, item in fields.objects(part.raw, "requests", part.at):
        plain = "exactly" not in item and "firstAvailable" not in item
        rest = {key: value for key, value in item.items() if key != "name"}
        shown.append({"name": item.get("name"), "exactly": rest} if plain and rest else item)
    return dra_requests.parse({"requests": shown}).requests


def evaluate_claim(
    requests: Sequence[dra_requests.Request],
    brought: Sequence[decode.Document],
    cluster_facts: ClusterFacts,
) -> tuple[Findings, tuple[RequestOutcome, ...]]:
    """Return the errors in a claim's documents, and the outcome of each request."""
    request_outcomes = tuple(
        _outcome(cluster_facts.candidate_ways(item), brought, cluster_facts) for item in requests
    )
    problems = tuple(text for item in request_outcomes for text in item.problems)
    unsure = tuple(text for item in request_outcomes for text in item.unsure)
    return Findings(problems, unsure), request_outcomes


def evaluate_class(
    raw: fields.Raw, brought: Sequence[decode.Document], cluster_facts: ClusterFacts
) -> tuple[Findings, tuple[RequestOutcome, ...]]:
    """The same of a class: its documents are for whatever request names it."""
    request = dra_requests.Request(_ANY, "", selectors=device_classes.expressions(raw, "spec"))
    return evaluate_claim(
        [request], [replace(document, requests=(_ANY,)) for document in brought], cluster_facts
    )


def _outcome(
    ways: Sequence[CandidateWay], brought: Sequence[decode.Document], cluster_facts: ClusterFacts
) -> RequestOutcome:
    sure: list[Configured] = []
    problems: list[str] = []
    unsure: list[str] = []
    for way in ways:
        every = [*_of_class(way, cluster_facts, unsure), *brought]
        by_need = way.face is Face.UNKNOWN and decode.find_slice_config(every, way.name) is not None
        may_be = _BY_NEED if by_need else _MAY_BE.get(way.face, (way.face,))
        answers = [(face, _answer(way, face, every)) for face in may_be]
        refused = [item for _, item in answers if isinstance(item, str)]
        settings = [(face, item) for face, item in answers if not isinstance(item, str)]
        if refused and not settings:
            problems.append(refused[0])
        elif by_need and len(settings) == 1:
            # No other kind of part will do, so it is as if the request named it.
            sure += (Configured(replace(way, face=face), item) for face, item in settings)
        elif len(answers) > 1:
            message = () if by_need else refused
            unsure += message or _doubts(way, [item for _, item in settings])
        else:
            sure += (Configured(way, item) for _, item in settings)
    if problems and len(problems) < len(ways):
        # Another alternative can still be had.
        return RequestOutcome(len(ways), tuple(sure), unsure=(*problems, *unsure))
    return RequestOutcome(len(ways), tuple(sure), tuple(problems[:1]), tuple(unsure))


def _answer(
    way: CandidateWay, face: Face, brought: Sequence[decode.Document]
) -> v1alpha1.Config | str:
    """Return the configuration of a candidate's devices, or why they cannot have one."""
    kind: decode.Kind = "MigDeviceConfig" if face is Face.MIG else "GpuConfig"
    try:
        config = decode.select_config(brought, way.name, kind, shared=face in _SHARED)
    except errors.BadInput as problem:
        return str(problem)
    if face not in _SHARED:
        return config
    result = claims.Result(way.name, claims.DeviceId("", "", f"the {face}"))
    weak = compatibility.check_isolation(
        result, _SHARED[face], decode.find_slice_config(brought, way.name)
    )
    terms = weak or compatibility.result_terms(result, _SHARED[face], "", config)
    return terms.message if isinstance(terms, compatibility.Conflict) else config


def _doubts(way: CandidateWay, settings: Sequence[v1alpha1.Config]) -> Iterator[str]:
    requested = [setting.sharing.strategy for setting in settings if setting.sharing is not None]
    if requested:
        yield (
            f"request {way.name}: whether its devices can have strategy {requested[0]} depends on "
            f"what class {way.request.device_class or 'they are of'} gives it"
        )


def _of_class(
    way: CandidateWay, cluster_facts: ClusterFacts, unsure: list[str]
) -> Iterator[decode.Document]:
    """The documents of its class; `unsure` is told of those that cannot be read.

    That is for whoever writes the class to mend, and may be mended before the claim is allocated.
    """
    device_class = (cluster_facts.classes or {}).get(way.request.device_class)
    for opaque in device_class.configs if device_class else ():
        if opaque.get("driver") != cluster_facts.driver:
            continue
        path = f"class {way.request.device_class}"
        try:
            parameters = fields.mapping(opaque, "parameters", path)
            result = decode.decode_config(parameters, path, from_class=True)
        except errors.BadInput as problem:
            unsure.append(f"request {way.name}: its {problem}")
        else:
            yield decode.Document(result, path, (way.name,))


def check_limits(
    request_outcomes: Sequence[RequestOutcome], cluster_facts: ClusterFacts
) -> Iterator[str]:
    """Amounts of memory that no hardware that is published has, and what no driver does."""
    yield from _users(request_outcomes, cluster_facts)
    for configured in (sure for outcome in request_outcomes for sure in outcome.sure):
        most = cluster_facts.memory.max_bytes(mig=configured.way.face is Face.MIG)
        for text in dict.fromkeys(_amounts(configured)) if most else ():
            if quantities.parse(text).units > most:
                shown = quantities.from_bytes(most).text
                yield (
                    f"request {configured.way.name}: {text} of memory is more than any "
                    f"{configured.way.face} that is published now has, which is {shown} at most"
                )


def _users(
    request_outcomes: Sequence[RequestOutcome], cluster_facts: ClusterFacts
) -> Iterator[str]:
    newest = cluster_facts.memory.newest_driver
    for configured in (sure for outcome in request_outcomes for sure in outcome.sure):
        sharing = configured.config.sharing
        requested = isinstance(sharing, v1alpha1.MpsSharing) and sharing.mps.multiUser
        if requested and newest and (lacking := multi_user.MpsServer(newest).missing_support):
            yield (
                f"request {configured.way.name}: multiUser: true is refused by every node now: "
                f"the newest is {lacking}"
            )


def _amounts(configured: Configured) -> Iterator[str]:
    """The memory that is asked of a device, and the limits for it."""
    for name, amount in configured.way.request.minimums.items():
        if name.rpartition("/")[2] == names.CAP_MEMORY:
            yield amount.text
    if isinstance(configured.config.sharing, v1alpha1.MpsSharing):
        mps = configured.config.sharing.mps
        yield from (mps.pinnedMemory,) if mps.pinnedMemory else ()
        yield from mps.pinnedMemoryPerDevice.values()
