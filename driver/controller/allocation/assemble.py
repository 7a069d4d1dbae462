"""From a Placement to what is written: allocations as the reference allocator makes them. Pure."""

from collections.abc import Mapping

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import outcome
from driver.resources import claims, selectors


def allocations(
    view: cluster.ClusterView,
    workload: outcome.Workload,
    placement: outcome.Placement,
    stamped: str,
) -> Mapping[ids.Key, claims.Allocation]:
    """One allocation a claim, pinned to the node by name (dra-contract.md §3.2)."""
    return {
        claim.key: claims.Allocation(
            results=tuple(_result(pick) for pick in placement.of_claim(claim.key)),
            configs=configs(view, claim),
            selector=selectors.only(placement.node),
            stamped=stamped,
        )
        for claim in workload.open
    }


def _result(pick: outcome.Pick) -> claims.Result:
    return claims.Result(
        request=pick.request.name,
        device=pick.device,
        tolerations=tuple(one.raw for one in pick.request.tolerations),
    )


def configs(view: cluster.ClusterView, claim: claims.Claim) -> tuple[claims.AllocatedConfig, ...]:
    """Class configuration first, once a class, then the claim's own: later entries win."""
    users: dict[str, list[str]] = {}
    for request in claim.requests:
        users.setdefault(request.device_class, []).append(request.name)
    found = [
        claims.AllocatedConfig(from_class=True, requests=tuple(requests), opaque=raw)
        for name, requests in users.items()
        for raw in (view.classes[name].configs if name in view.classes else ())
    ]
    found += [
        claims.AllocatedConfig(from_class=False, requests=one.requests, opaque=one.opaque)
        for one in claim.configs
    ]
    return tuple(found)
