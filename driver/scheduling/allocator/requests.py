"""Requests of a workload, ready for matching: classes resolved, selectors compiled."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from driver import errors, reasons
from driver.api import decode
from driver.resources import fields
from driver.resources.cel import selector as cel
from driver.resources.dra import claims, feature_gates, slices
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
        """`main`, or `main/sub` for an alternative."""
        return self.request.name

    def matches(self, driver: str, device: slices.Device) -> bool | cel.EvaluationFailure:
        """Return whether a device matches; the first selector that is not true decides."""
        for matcher in self.matchers:
            answer = matcher.matches(driver, device)
            if answer is not True:
                return answer
        return True


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A request of a claim: a subrequest is needed. `claim_index` is its claim in the workload."""

    claim_index: int
    subrequests: tuple[SubRequest, ...]


def compile_class_selectors(view: snapshot.Snapshot) -> None:
    """Compile the selectors of every class, ahead of the first request for it."""
    for device_class in view.classes.values():
        for expression in device_class.selectors:
            selector_match.get_matcher(expression)


def parse_requests(
    view: snapshot.Snapshot, workload_claims: Iterable[claims.Claim]
) -> tuple[RequestSpec, ...] | allocator_types.Unschedulable:
    """Return every request of the claims, in order; or what makes them unschedulable everywhere."""
    specs: list[RequestSpec] = []
    for index, claim in enumerate(workload_claims):
        rejection = _unsupported_claim(claim) or _invalid_config(view, claim)
        if rejection is not None:
            return rejection
        for request in claim.spec.requests:
            subrequests = _resolve_request(view, claim, request)
            if isinstance(subrequests, allocator_types.Unschedulable):
                return subrequests
            specs.append(RequestSpec(index, subrequests))
    return tuple(specs)


def parse_workload(
    view: snapshot.Snapshot, workload: allocator_types.Workload
) -> tuple[RequestSpec, ...] | allocator_types.Unschedulable:
    """Return every request of a workload's unallocated claims, kube-scheduler's last."""
    return parse_requests(view, workload.unallocated_claims)


def unsupported_fields(claim: claims.Claim) -> list[str]:
    """Return the fields of a claim that the allocator does not know: it cannot judge the claim."""
    fields_by_request = (
        f"{subrequest.name}.{key}"
        for request in claim.spec.requests
        for subrequest in request.alternatives_or_self
        for key in subrequest.unsupported
    )
    return [*claim.spec.unsupported, *fields_by_request]


def _unsupported_claim(claim: claims.Claim) -> allocator_types.Unschedulable | None:
    beyond = unsupported_fields(claim)
    least = sum(
        min(
            1 if subrequest.all_devices else subrequest.count
            for subrequest in request.alternatives_or_self
        )
        for request in claim.spec.requests
    )
    if beyond:
        described = ", ".join(map(feature_gates.describe, beyond))
        return unschedulable_claim(reasons.Reason.NOT_SUPPORTED, claim, f"uses {described}")
    if least > claims.MAX_RESULTS:
        text = f"at most {claims.MAX_RESULTS} devices a claim"
        return unschedulable_claim(reasons.Reason.TOO_MANY_DEVICES, claim, text)
    return None


def _invalid_config(
    view: snapshot.Snapshot, claim: claims.Claim
) -> allocator_types.Unschedulable | None:
    """Reject configuration that Prepare would refuse (D24)."""
    try:
        for path, opaque, from_class in _applicable_configs(view, claim):
            if opaque.get("driver") == view.driver:
                parameters = fields.mapping(opaque, "parameters", path)
                decode.decode_config(parameters, path, from_class=from_class)
    except errors.BadInput as error:
        return unschedulable_claim(reasons.Reason.CONFIG_INVALID, claim, str(error))
    return None


def _applicable_configs(
    view: snapshot.Snapshot, claim: claims.Claim
) -> Iterator[tuple[str, fields.Raw, bool]]:
    """Yield configuration that may apply: its path, the document, whether it is a class's."""
    subrequests = [
        subrequest for config in claim.spec.requests for subrequest in config.alternatives_or_self
    ]
    for name in dict.fromkeys(subrequest.device_class for subrequest in subrequests):
        if name in view.classes:
            for index, raw in enumerate(view.classes[name].configs):
                yield f"DeviceClass {name}: spec.config[{index}].opaque.parameters", raw, True
    for index, config in enumerate(claim.spec.configs):
        yield f"spec.devices.config[{index}].opaque.parameters", config.opaque, False


def _resolve_request(
    view: snapshot.Snapshot, claim: claims.Claim, request: dra_requests.Request
) -> tuple[SubRequest, ...] | allocator_types.Unschedulable:
    subrequests: list[SubRequest] = []
    for subrequest in request.alternatives_or_self:
        resolved = resolve_subrequest(view, claim, subrequest)
        if isinstance(resolved, allocator_types.Unschedulable):
            return resolved
        subrequests.append(resolved)
    return tuple(subrequests)


def resolve_subrequest(
    view: snapshot.Snapshot, claim: claims.Claim, subrequest: dra_requests.Request
) -> SubRequest | allocator_types.Unschedulable:
    """Return a subrequest; or Unschedulable for a missing class or an unusable selector."""
    device_class = view.classes.get(subrequest.device_class)
    if device_class is None:
        text = f"request {subrequest.name} names class {subrequest.device_class}"
        return unschedulable_claim(reasons.Reason.DEVICE_CLASS_NOT_FOUND, claim, text)
    compiled: list[selector_match.Matcher] = []
    for expression in (*device_class.selectors, *subrequest.selectors):
        matcher = selector_match.get_matcher(expression)
        if isinstance(matcher, cel.UnusableSelector):
            text = f"request {subrequest.name}: {matcher.why} in `{expression}`"
            return unschedulable_claim(reasons.Reason.SELECTOR_INVALID, claim, text)
        compiled.append(matcher)
    return SubRequest(subrequest, tuple(compiled))


def unschedulable_claim(
    reason: reasons.Reason, claim: claims.Claim, detail: str
) -> allocator_types.Unschedulable:
    """Return the result for a claim that can be allocated nowhere."""
    return allocator_types.Unschedulable(blocker=reason, detail=f"claim {claim.key}: {detail}")
