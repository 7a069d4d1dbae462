"""From a Placement to what is written: allocations as the reference allocator makes them. Pure."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import outcome
from driver.resources import claims, request, selectors


def allocations(
    view: cluster.ClusterView,
    workload: outcome.Workload,
    placement: outcome.Placement,
    stamped: str,
) -> Mapping[ids.Key, claims.Allocation]:
    """Return the allocation of each open claim, complete as K-2 lists it."""
    found: dict[ids.Key, claims.Allocation] = {}
    for place, claim in enumerate(workload.open):
        picks = placement.of_claim(place)
        found[claim.key] = claims.Allocation(
            results=tuple(
                replace(pick.result, share_id=_share(claim, at)) if pick.shared else pick.result
                for at, pick in enumerate(picks)
            ),
            configs=configs(view, claim, [pick.request for pick in picks]),
            selector=reach(placement.node, picks),
            stamped=stamped,
        )
    return found


def waiting(
    made: Mapping[ids.Key, claims.Allocation], condition: str, failure: str
) -> Mapping[ids.Key, claims.Allocation]:
    """The same, to be bound only once a condition is set of each claim (KEP-5007).

    The first result carries it: kube-scheduler waits for all that any result names.
    """
    found: dict[ids.Key, claims.Allocation] = {}
    for key, one in made.items():
        first, *rest = one.results
        held = replace(
            first, binding=(*first.binding, condition), failing=(*first.failing, failure)
        )
        found[key] = replace(one, results=(held, *rest))
    return found


def _share(claim: claims.Claim, at: int) -> str:
    """The id of a share (KEP-5075): of a claim's shares each has its own, the same every time."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{claim.uid}/share/{at}"))


def reach(node: ids.NodeName, picks: Sequence[outcome.Pick]) -> selectors.NodeSelector | None:
    """Where the claim can be used: the node, where any device is local to it; None: everywhere."""
    labels: list[selectors.Expression] = []
    named: list[selectors.Expression] = []
    for pick in picks:
        if pick.reach.node is not None or pick.stays:
            return selectors.only(node)
        for term in pick.reach.selector.terms if pick.reach.selector else ():
            labels += [one for one in term.labels if one not in labels]
            named += [one for one in term.fields if one not in named]
    if not labels and not named:
        return None
    return selectors.NodeSelector((selectors.Term(tuple(labels), tuple(named)),))


def configs(
    view: cluster.ClusterView, claim: claims.Claim, chosen: Sequence[request.Request]
) -> tuple[claims.AllocatedConfig, ...]:
    """Class configuration first, once a class, then the claim's own: later entries win.

    `chosen` are the ways that were taken, which decide whose configuration there is. One that is
    for every request names none.
    """
    taken = [*dict.fromkeys(way.name for way in chosen)]
    found = [*_of_classes(view, chosen), *_of_claim(claim, taken)]
    return tuple(
        replace(one, requests=()) if _is_for_all(one.requests, taken) else one for one in found
    )


def _of_classes(
    view: cluster.ClusterView, chosen: Sequence[request.Request]
) -> Iterator[claims.AllocatedConfig]:
    users: dict[str, dict[str, None]] = {}
    for way in chosen:
        users.setdefault(way.device_class, {})[way.name] = None
    for name, requests in users.items():
        for raw in view.classes[name].configs if name in view.classes else ():
            yield claims.AllocatedConfig(True, tuple(requests), raw)  # noqa: FBT003 - its own field


def _of_claim(claim: claims.Claim, taken: Sequence[str]) -> Iterator[claims.AllocatedConfig]:
    for one in claim.spec.configs:
        if not one.requests or any(request.names_request(one.requests, way) for way in taken):
            yield claims.AllocatedConfig(from_class=False, requests=one.requests, opaque=one.opaque)


def _is_for_all(named: Sequence[str], taken: Sequence[str]) -> bool:
    return all(request.names_request(named, way) for way in taken)
