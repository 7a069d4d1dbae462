"""Requests against devices: whose a claim is, and which devices a request can have on a node.

Pure. Selectors are compiled once per text; a request that cannot be judged ends as a NoFit.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from driver import errors, names, reasons
from driver.api import decode
from driver.cel import selector as cel
from driver.controller import view as cluster
from driver.controller.allocation import assemble, outcome
from driver.resources import claims, fields, nodes, slices


class Ownership(Enum):
    """Who is to allocate a claim (D2, D23)."""

    OURS = auto()
    SHARED = auto()  # untainted devices would do as well: kube-scheduler goes first
    FOREIGN = auto()
    MIXED = auto()


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request with its class found and every selector compiled."""

    claim: claims.Claim
    request: claims.Request
    selectors: tuple[cel.Selector, ...]


@dataclass(slots=True)
class Offer:
    """What a node has for one request: devices that do, and why the others do not."""

    devices: list[claims.DeviceId] = field(default_factory=list)
    refused: Counter[reasons.Reason] = field(default_factory=Counter)


def resolve(view: cluster.ClusterView, claim: claims.Claim) -> tuple[Resolved, ...] | outcome.NoFit:
    """Every request of a claim, ready to be asked; or what blocks the claim on every node."""
    found: list[Resolved] = []
    beyond = [*claim.beyond, *(f"{r.name}.{key}" for r in claim.requests for key in r.beyond)]
    if beyond:
        return _blocked(reasons.Reason.NOT_SUPPORTED, claim, f"uses {', '.join(beyond)}")
    if sum(request.count for request in claim.requests) > claims.MAX_RESULTS:
        return _blocked(
            reasons.Reason.TOO_MANY_DEVICES, claim, f"at most {claims.MAX_RESULTS} devices a claim"
        )
    for request in claim.requests:
        one = _resolve_request(view, claim, request)
        if isinstance(one, outcome.NoFit):
            return one
        found.append(one)
    wrong = _bad_config(view, claim)
    return wrong if wrong is not None else tuple(found)


def _bad_config(view: cluster.ClusterView, claim: claims.Claim) -> outcome.NoFit | None:
    """What Prepare would refuse is refused here first (D24)."""
    try:
        for config in assemble.configs(view, claim):
            if config.opaque.get("driver") == view.driver:
                where = "class configuration" if config.from_class else "spec.devices.config"
                parameters = fields.mapping(config.opaque, "parameters", where)
                decode.config(parameters, where, from_class=config.from_class)
    except errors.BadInput as error:
        return _blocked(reasons.Reason.CONFIG_INVALID, claim, str(error))
    return None


def _resolve_request(
    view: cluster.ClusterView, claim: claims.Claim, request: claims.Request
) -> Resolved | outcome.NoFit:
    device_class = view.classes.get(request.device_class)
    if device_class is None:
        return _blocked(
            reasons.Reason.CLASS_MISSING,
            claim,
            f"request {request.name} names class {request.device_class}",
        )
    compiled: list[cel.Selector] = []
    for expression in (*device_class.selectors, *request.selectors):
        one = cel.compile_selector(expression)
        if isinstance(one, cel.Unusable):
            return _blocked(
                reasons.Reason.SELECTOR_UNUSABLE,
                claim,
                f"request {request.name}: {one.why} in `{expression}`",
            )
        compiled.append(one)
    return Resolved(claim, request, tuple(compiled))


def _blocked(reason: reasons.Reason, claim: claims.Claim, detail: str) -> outcome.NoFit:
    return outcome.NoFit(blocker=reason, detail=f"claim {claim.key}: {detail}")


def ownership(view: cluster.ClusterView, claim: claims.Claim) -> Ownership:
    """Whose the claim is: by the devices that would do, whoever holds them now.

    Where nothing at all would do, or a selector cannot be evaluated here, the words of the
    selectors decide: a class that names our driver is ours to answer for.
    """
    kinds = [_request_ownership(view, claim, request) for request in claim.requests]
    if not kinds or all(kind is Ownership.FOREIGN for kind in kinds):
        return Ownership.FOREIGN
    if Ownership.FOREIGN in kinds:
        return Ownership.MIXED
    return Ownership.SHARED if Ownership.SHARED in kinds else Ownership.OURS


def _request_ownership(
    view: cluster.ClusterView, claim: claims.Claim, request: claims.Request
) -> Ownership:
    resolved = _resolve_request(view, claim, request)
    if isinstance(resolved, outcome.NoFit):
        return Ownership.OURS if _names_us(view, request) else Ownership.FOREIGN
    ours = others = False
    for driver, device in _all_devices(view):
        if _matches(resolved, driver, device) is not True:
            continue
        if driver == view.driver and device.tainted_for("controller"):
            ours = True
        else:
            others = True
    if ours:
        return Ownership.SHARED if others else Ownership.OURS
    return Ownership.OURS if not others and _names_us(view, request) else Ownership.FOREIGN


def _names_us(view: cluster.ClusterView, request: claims.Request) -> bool:
    device_class = view.classes.get(request.device_class)
    words = (*(device_class.selectors if device_class else ()), *request.selectors)
    return any(f'"{view.driver}"' in text or f"'{view.driver}'" in text for text in words)


def _all_devices(view: cluster.ClusterView) -> Iterator[tuple[str, slices.Device]]:
    for pool in view.pools:
        for one in pool.slices:
            for device in one.devices:
                yield pool.driver, device


def offer(view: cluster.ClusterView, node: nodes.Node, resolved: Resolved) -> Offer:
    """What the node has for a request, in the order of pools, slices and devices."""
    found = Offer()
    for pool in view.pools:
        if pool.driver != view.driver:
            continue
        for one in pool.slices:
            if cluster.reaches(one, node):
                _offer_slice(view, pool, one, resolved, found)
    return found


def _offer_slice(
    view: cluster.ClusterView,
    pool: cluster.Pool,
    one: slices.Slice,
    resolved: Resolved,
    found: Offer,
) -> None:
    for device in one.devices:
        reason = _why_not(view, pool, one, resolved, device)
        if reason is None:
            found.devices.append(claims.DeviceId(pool.driver, pool.name, device.name))
        else:
            found.refused[reason] += 1


def _why_not(
    view: cluster.ClusterView,
    pool: cluster.Pool,
    one: slices.Slice,
    resolved: Resolved,
    device: slices.Device,
) -> reasons.Reason | None:
    """The first thing that keeps a device from a request; whether it is taken comes last."""
    matched = _matches(resolved, view.driver, device)
    identity = claims.DeviceId(pool.driver, pool.name, device.name)
    beyond = bool(device.beyond or one.beyond)
    whole = device.attributes.get(names.ATTR_TYPE, names.TYPE_GPU) == names.TYPE_GPU
    checks = (
        (reasons.Reason.SELECTOR_FAILED, isinstance(matched, cel.Failed)),
        (reasons.Reason.SELECTOR_MISMATCH, matched is not True),
        (reasons.Reason.POOL_INCOMPLETE, bool(pool.problem)),
        (reasons.Reason.DEVICE_BEYOND, beyond),
        (reasons.Reason.FACE_NOT_PREPARED, device.allow_multiple or not whole),
        (reasons.Reason.DEVICE_NOT_OURS, not device.tainted_for("controller")),
        (reasons.Reason.DEVICE_TAINTED, _untolerated(resolved.request, device)),
        (reasons.Reason.CAPACITY_SHORT, _short(resolved.request, device)),
        (reasons.Reason.DEVICE_TAKEN, identity in view.taken),
        (reasons.Reason.COUNTERS_TAKEN, identity in view.drained),
    )
    return next((reason for reason, holds in checks if holds), None)


def seen(driver: str, device: slices.Device) -> cel.Device:
    """What selectors see of a device of a driver."""
    return cel.Device(
        driver,
        device.attributes,
        {key: amount.value for key, amount in device.capacity.items()},
        device.allow_multiple,
    )


def _matches(resolved: Resolved, driver: str, device: slices.Device) -> bool | cel.Failed:
    shown = seen(driver, device)
    for one in resolved.selectors:
        answer = one.matches(shown)
        if answer is not True:
            return answer
    return True


def _untolerated(request: claims.Request, device: slices.Device) -> bool:
    """A blocking taint nobody tolerates; the allocator's own is disregarded by us alone (D2)."""
    return any(
        taint.blocks
        and taint.key != names.ALLOCATOR_TAINT
        and not any(t.tolerates(taint.key, taint.value, taint.effect) for t in request.tolerations)
        for taint in device.taints
    )


def _short(request: claims.Request, device: slices.Device) -> bool:
    """For devices that are not shared, a capacity request is a mere filter (KEP-5075)."""
    for key, minimum in (request.minimums or {}).items():
        amount = device.capacity.get(key)
        if amount is None or amount.value < minimum:
            return True
    return False
