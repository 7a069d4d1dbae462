"""Whether the devices that a claim can get could have the configuration it brings (D13). Pure.

The words are those of Prepare: `api.decode.winner`, `sharing.terms` and `sharing.daemon`, asked
about what every device of a request surely is. What depends on which device it becomes is a
warning, and what no device can change is a problem.
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
    """What the webhook knows of the cluster. Without a class, what it selects is not known."""

    driver: str = names.DRIVER
    classes: validation_selectors.Classes | None = None
    memory: hardware.Hardware = hardware.UNKNOWN

    def candidate_ways(self, asked: dra_requests.Request) -> tuple[CandidateWay, ...]:
        """The ways of a request that our driver may answer."""
        found = validation_selectors.candidate_ways(asked, self.classes or {}, self.driver)
        return tuple(one for one in found if one.ours)


@dataclass(frozen=True, slots=True)
class Configured:
    """A way with the configuration its devices have."""

    way: CandidateWay
    config: v1alpha1.Config


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What the ways of one request come to: a way is sure where it has one face and one answer.

    `ways` counts those that our driver may answer.
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
    for _, one in fields.objects(part.raw, "requests", part.at):
        plain = "exactly" not in one and "firstAvailable" not in one
        rest = {key: value for key, value in one.items() if key != "name"}
        shown.append({"name": one.get("name"), "exactly": rest} if plain and rest else one)
    return dra_requests.parse({"requests": shown}).requests


def evaluate_claim(
    asked: Sequence[dra_requests.Request], brought: Sequence[decode.Document], known: ClusterFacts
) -> tuple[Findings, tuple[RequestOutcome, ...]]:
    """What is wrong with the documents of a claim, and what each of its requests comes to."""
    found = tuple(_outcome(known.candidate_ways(one), brought, known) for one in asked)
    problems = tuple(text for one in found for text in one.problems)
    unsure = tuple(text for one in found for text in one.unsure)
    return Findings(problems, unsure), found


def evaluate_class(
    raw: fields.Raw, brought: Sequence[decode.Document], known: ClusterFacts
) -> tuple[Findings, tuple[RequestOutcome, ...]]:
    """The same of a class: its documents are for whatever request names it."""
    asked = dra_requests.Request(_ANY, "", selectors=device_classes.expressions(raw, "spec"))
    return evaluate_claim([asked], [replace(one, requests=(_ANY,)) for one in brought], known)


def _outcome(
    ways: Sequence[CandidateWay], brought: Sequence[decode.Document], known: ClusterFacts
) -> RequestOutcome:
    sure: list[Configured] = []
    problems: list[str] = []
    unsure: list[str] = []
    for way in ways:
        every = [*_of_class(way, known, unsure), *brought]
        by_need = way.face is Face.UNKNOWN and decode.find_slice_config(every, way.name) is not None
        may_be = _BY_NEED if by_need else _MAY_BE.get(way.face, (way.face,))
        answers = [(face, _answer(way, face, every)) for face in may_be]
        refused = [one for _, one in answers if isinstance(one, str)]
        settings = [(face, one) for face, one in answers if not isinstance(one, str)]
        if refused and not settings:
            problems.append(refused[0])
        elif by_need and len(settings) == 1:
            # No other kind of part will do, so it is as if the request named it.
            sure += (Configured(replace(way, face=face), one) for face, one in settings)
        elif len(answers) > 1:
            told = () if by_need else refused
            unsure += told or _doubts(way, [one for _, one in settings])
        else:
            sure += (Configured(way, one) for _, one in settings)
    if problems and len(problems) < len(ways):
        # Another alternative can still be had.
        return RequestOutcome(len(ways), tuple(sure), unsure=(*problems, *unsure))
    return RequestOutcome(len(ways), tuple(sure), tuple(problems[:1]), tuple(unsure))


def _answer(
    way: CandidateWay, face: Face, brought: Sequence[decode.Document]
) -> v1alpha1.Config | str:
    """The configuration of a way's devices, if they are such, or why they cannot have one."""
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
    given = weak or compatibility.result_terms(result, _SHARED[face], "", config)
    return given.message if isinstance(given, compatibility.Conflict) else config


def _doubts(way: CandidateWay, settings: Sequence[v1alpha1.Config]) -> Iterator[str]:
    asked = [one.sharing.strategy for one in settings if one.sharing is not None]
    if asked:
        yield (
            f"request {way.name}: whether its devices can have strategy {asked[0]} depends on what "
            f"class {way.requests.device_class or 'they are of'} gives it"
        )


def _of_class(
    way: CandidateWay, known: ClusterFacts, unsure: list[str]
) -> Iterator[decode.Document]:
    """The documents of its class; `unsure` is told of those that cannot be read.

    That is for whoever writes the class to mend, and may be mended before the claim is allocated.
    """
    device_class = (known.classes or {}).get(way.requests.device_class)
    for opaque in device_class.configs if device_class else ():
        if opaque.get("driver") != known.driver:
            continue
        where = f"class {way.requests.device_class}"
        try:
            parameters = fields.mapping(opaque, "parameters", where)
            found = decode.decode_config(parameters, where, from_class=True)
        except errors.BadInput as problem:
            unsure.append(f"request {way.name}: its {problem}")
        else:
            yield decode.Document(found, where, (way.name,))


def check_limits(found: Sequence[RequestOutcome], known: ClusterFacts) -> Iterator[str]:
    """Amounts of memory that no hardware that is published has, and what no driver does."""
    yield from _users(found, known)
    for one in (sure for outcome in found for sure in outcome.sure):
        most = known.memory.max_bytes(mig=one.way.face is Face.MIG)
        for text in dict.fromkeys(_amounts(one)) if most else ():
            if quantities.parse(text).units > most:
                shown = quantities.from_bytes(most).text
                yield (
                    f"request {one.way.name}: {text} of memory is more than any {one.way.face} "
                    f"that is published now has, which is {shown} at most"
                )


def _users(found: Sequence[RequestOutcome], known: ClusterFacts) -> Iterator[str]:
    newest = known.memory.newest_driver
    for one in (sure for outcome in found for sure in outcome.sure):
        sharing = one.config.sharing
        asked = isinstance(sharing, v1alpha1.MpsSharing) and sharing.mps.multiUser
        if asked and newest and (lacking := multi_user.MpsServer(newest).missing_support):
            yield (
                f"request {one.way.name}: multiUser: true is refused by every node now: the newest "
                f"is {lacking}"
            )


def _amounts(one: Configured) -> Iterator[str]:
    """The memory that is asked of a device, and the limits for it."""
    for name, amount in one.way.requests.minimums.items():
        if name.rpartition("/")[2] == names.CAP_MEMORY:
            yield amount.text
    if isinstance(one.config.sharing, v1alpha1.MpsSharing):
        mps = one.config.sharing.mps
        yield from (mps.pinnedMemory,) if mps.pinnedMemory else ()
        yield from mps.pinnedMemoryPerDevice.values()
