"""Conversion of a Placement to allocations, as the reference allocator makes them. Pure."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from driver import ids
from driver.resources.core import node_selectors
from driver.resources.dra import claims
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot


def build_allocations(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
    timestamp: str,
) -> Mapping[ids.Key, claims.Allocation]:
    """Return the allocation of each open claim, complete as K-2 lists it."""
    return {
        claim.key: _allocation(
            view, claim, placement.node, placement.claim_assignments(index), timestamp
        )
        for index, claim in enumerate(workload.open_claims)
    }


def build_scheduler_allocations(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
) -> Mapping[ids.Key, claims.Allocation]:
    """Return the allocations that kube-scheduler is expected to make for the pod."""
    first = len(workload.open_claims)
    return {
        claim.key: _allocation(
            view, claim, placement.node, placement.claim_assignments(first + index), timestamp=""
        )
        for index, claim in enumerate(workload.scheduler_claims)
    }


def build_decision(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
) -> snapshot.InFlight:
    """Return a placement as a decision to assume on an overlay."""
    return snapshot.InFlight(
        workload.pod,
        placement.node,
        build_allocations(view, workload, placement, timestamp=""),
        scheduler_allocations=build_scheduler_allocations(view, workload, placement),
    )


def _allocation(
    view: snapshot.Snapshot,
    claim: claims.Claim,
    node: ids.NodeName,
    assignments: Sequence[allocator_types.DeviceAssignment],
    timestamp: str,
) -> claims.Allocation:
    return claims.Allocation(
        results=tuple(
            replace(assignment.result, share_id=_share_id(claim, position))
            if assignment.shared
            else assignment.result
            for position, assignment in enumerate(assignments)
        ),
        configs=allocated_configs(view, claim, [assignment.request for assignment in assignments]),
        selector=allocation_selector(node, assignments),
        stamped=timestamp,
    )


def with_binding_condition(
    allocations: Mapping[ids.Key, claims.Allocation], condition: str, failure: str
) -> Mapping[ids.Key, claims.Allocation]:
    """Return the allocations, to be bound only once a condition is set on each claim (KEP-5007).

    The first result carries it: kube-scheduler waits for the conditions of every result.
    """
    waiting: dict[ids.Key, claims.Allocation] = {}
    for key, allocation in allocations.items():
        first, *rest = allocation.results
        first_result = replace(
            first, binding=(*first.binding, condition), failing=(*first.failing, failure)
        )
        waiting[key] = replace(allocation, results=(first_result, *rest))
    return waiting


def _share_id(claim: claims.Claim, position: int) -> str:
    """Return the id of a share (KEP-5075): unique among a claim's shares, and stable."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{claim.uid}/share/{position}"))


def allocation_selector(
    node: ids.NodeName, assignments: Sequence[allocator_types.DeviceAssignment]
) -> node_selectors.NodeSelector | None:
    """Return the nodes of an allocation: this node if a device is local to it; None: all."""
    labels: list[node_selectors.Expression] = []
    named: list[node_selectors.Expression] = []
    for assignment in assignments:
        if assignment.reach.node is not None or assignment.pins_node:
            return node_selectors.single_node_selector(node)
        for term in assignment.reach.selector.terms if assignment.reach.selector else ():
            labels += [expression for expression in term.labels if expression not in labels]
            named += [expression for expression in term.fields if expression not in named]
    if not labels and not named:
        return None
    return node_selectors.NodeSelector((node_selectors.Term(tuple(labels), tuple(named)),))


def allocated_configs(
    view: snapshot.Snapshot, claim: claims.Claim, chosen: Sequence[dra_requests.Request]
) -> tuple[claims.AllocatedConfig, ...]:
    """Return class configuration first, once a class, then the claim's own: later entries win.

    `chosen` are the selected subrequests, whose configuration counts. An entry for every request
    names none.
    """
    names = [*dict.fromkeys(subrequest.name for subrequest in chosen)]
    configs = [*_class_configs(view, chosen), *_claim_configs(claim, names)]
    return tuple(
        replace(config, requests=()) if _covers_all(config.requests, names) else config
        for config in configs
    )


def _class_configs(
    view: snapshot.Snapshot, chosen: Sequence[dra_requests.Request]
) -> Iterator[claims.AllocatedConfig]:
    users: dict[str, dict[str, None]] = {}
    for subrequest in chosen:
        users.setdefault(subrequest.device_class, {})[subrequest.name] = None
    for name, requests in users.items():
        for raw in view.classes[name].configs if name in view.classes else ():
            yield claims.AllocatedConfig(True, tuple(requests), raw)  # noqa: FBT003 - its own field


def _claim_configs(
    claim: claims.Claim, request_names: Sequence[str]
) -> Iterator[claims.AllocatedConfig]:
    for config in claim.spec.configs:
        if not config.requests or any(
            dra_requests.names_request(config.requests, subrequest) for subrequest in request_names
        ):
            yield claims.AllocatedConfig(
                from_class=False, requests=config.requests, opaque=config.opaque
            )


def _covers_all(names: Sequence[str], request_names: Sequence[str]) -> bool:
    return all(dra_requests.names_request(names, subrequest) for subrequest in request_names)
