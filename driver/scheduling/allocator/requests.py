"""What a workload asks, ready to be held against devices: classes found, selectors compiled."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from driver import errors, reasons
from driver.api import decode
from driver.resources import fields
from driver.resources.cel import selector as cel
from driver.resources.dra import claims, slices
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import selector_match
from driver.scheduling.snapshot import snapshot


@dataclass(frozen=True, slots=True)
class SubRequest:
    """A request, or an alternative of one, with its class's selectors and its own."""

    request: dra_requests.Request
    matchers: tuple[selector_match.Matcher, ...]

    @property
    def name(self) -> str:
        """`main`, or `main/sub` of an alternative."""
        return self.request.name

    def matches(self, driver: str, device: slices.Device) -> bool | cel.Failed:
        """Whether a device is one of those asked; the first selector that is not true decides."""
        for one in self.matchers:
            answer = one.matches(driver, device)
            if answer is not True:
                return answer
        return True


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A request of a claim: one of its ways is to be had. `claim` is its place in the workload."""

    claim_index: int
    subrequests: tuple[SubRequest, ...]


def parse_requests(
    view: snapshot.Snapshot, found: Iterable[claims.Claim]
) -> tuple[RequestSpec, ...] | allocator_types.Unschedulable:
    """Every request of the claims, in their order; or what blocks them on every node."""
    made: list[RequestSpec] = []
    for place, claim in enumerate(found):
        wrong = _unsupported_claim(claim) or _invalid_config(view, claim)
        if wrong is not None:
            return wrong
        for one in claim.spec.requests:
            ways = _resolve_request(view, claim, one)
            if isinstance(ways, allocator_types.Unschedulable):
                return ways
            made.append(RequestSpec(place, ways))
    return tuple(made)


def _unsupported_claim(claim: claims.Claim) -> allocator_types.Unschedulable | None:
    spec = claim.spec
    beyond = [*spec.beyond]
    least = 0
    for one in spec.requests:
        beyond += [f"{way.name}.{key}" for way in one.ways for key in way.beyond]
        least += min(1 if way.everything else way.count for way in one.ways)
    if beyond:
        return unschedulable_claim(reasons.Reason.NOT_SUPPORTED, claim, f"uses {', '.join(beyond)}")
    if least > claims.MAX_RESULTS:
        text = f"at most {claims.MAX_RESULTS} devices a claim"
        return unschedulable_claim(reasons.Reason.TOO_MANY_DEVICES, claim, text)
    return None


def _invalid_config(
    view: snapshot.Snapshot, claim: claims.Claim
) -> allocator_types.Unschedulable | None:
    """What Prepare would refuse is refused here first (D24)."""
    try:
        for where, opaque, from_class in _applicable_configs(view, claim):
            if opaque.get("driver") == view.driver:
                parameters = fields.mapping(opaque, "parameters", where)
                decode.config(parameters, where, from_class=from_class)
    except errors.BadInput as error:
        return unschedulable_claim(reasons.Reason.CONFIG_INVALID, claim, str(error))
    return None


def _applicable_configs(
    view: snapshot.Snapshot, claim: claims.Claim
) -> Iterator[tuple[str, fields.Raw, bool]]:
    """Configuration that may come to apply: where it stands, what it is, whether of a class."""
    ways = [way for one in claim.spec.requests for way in one.ways]
    for name in dict.fromkeys(way.device_class for way in ways):
        if name in view.classes:
            for at, raw in enumerate(view.classes[name].configs):
                yield f"DeviceClass {name}: spec.config[{at}].opaque.parameters", raw, True
    for at, one in enumerate(claim.spec.configs):
        yield f"spec.devices.config[{at}].opaque.parameters", one.opaque, False


def _resolve_request(
    view: snapshot.Snapshot, claim: claims.Claim, one: dra_requests.Request
) -> tuple[SubRequest, ...] | allocator_types.Unschedulable:
    found: list[SubRequest] = []
    for way in one.ways:
        made = resolve_subrequest(view, claim, way)
        if isinstance(made, allocator_types.Unschedulable):
            return made
        found.append(made)
    return tuple(found)


def resolve_subrequest(
    view: snapshot.Snapshot, claim: claims.Claim, way: dra_requests.Request
) -> SubRequest | allocator_types.Unschedulable:
    """One way, or what blocks it: no such class, or a selector that cannot be evaluated here."""
    device_class = view.classes.get(way.device_class)
    if device_class is None:
        text = f"request {way.name} names class {way.device_class}"
        return unschedulable_claim(reasons.Reason.CLASS_MISSING, claim, text)
    compiled: list[selector_match.Matcher] = []
    for expression in (*device_class.selectors, *way.selectors):
        one = selector_match.get_matcher(expression)
        if isinstance(one, cel.Unusable):
            text = f"request {way.name}: {one.why} in `{expression}`"
            return unschedulable_claim(reasons.Reason.SELECTOR_UNUSABLE, claim, text)
        compiled.append(one)
    return SubRequest(way, tuple(compiled))


def unschedulable_claim(
    reason: reasons.Reason, claim: claims.Claim, detail: str
) -> allocator_types.Unschedulable:
    """A claim that can be allocated nowhere."""
    return allocator_types.Unschedulable(blocker=reason, detail=f"claim {claim.key}: {detail}")
