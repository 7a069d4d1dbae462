"""Asking the allocator in tests: a whole decision, or the pieces of one node's search."""

from collections.abc import Mapping
from typing import Any

from driver import ids, names, reasons
from driver.resources.dra import claims
from driver.scheduling.allocator import candidates, dra_allocator, search
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.constraints import counters, match_attribute
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.builders import objects

NODE = ids.NodeName("node-a")
OURS = candidates.DeviceFilter(frozenset({names.ALLOCATOR_TAINT}))
"""The API's rules alone, for devices that are ours."""
Answer = allocator_types.Placement | allocator_types.Unschedulable


def workload(*open_claims: claims.Claim, **pod_spec: Any) -> allocator_types.Workload:
    """A pod that uses these claims."""
    called = [open_claim.name for open_claim in open_claims]
    return allocator_types.Workload(objects.pod("pod", *called, **pod_spec), open_claims)


def decide(view: snapshot.Snapshot, *open_claims: claims.Claim, **pod_spec: Any) -> Answer:
    """Decide as the controller does."""
    return dra_allocator.allocate(view, workload(*open_claims, **pod_spec), snapshots.DECIDING)


def placed(answer: Answer) -> allocator_types.Placement:
    assert isinstance(answer, allocator_types.Placement), allocator_messages.unschedulable(answer)
    return answer


def refused(answer: Answer) -> allocator_types.Unschedulable:
    assert isinstance(answer, allocator_types.Unschedulable), answer.assignments
    return answer


def refusal(answer: Answer) -> allocator_types.NodeRejection:
    """Return why the only node does not do."""
    (node_rejection,) = refused(answer).rejections
    return node_rejection


def counts(answer: Answer) -> dict[reasons.Reason, int]:
    """Return why the devices of the only node do not do."""
    return dict(refusal(answer).device_reasons)


def devices(answer: Answer) -> list[str]:
    """The names of the devices that were chosen."""
    return [pick.device.device for pick in placed(answer).assignments]


def by_request(answer: Answer) -> Mapping[str, list[str]]:
    """The names of the devices by request."""
    result: dict[str, list[str]] = {}
    for pick in placed(answer).assignments:
        result.setdefault(pick.result.request, []).append(pick.device.device)
    return result


def wants(
    view: snapshot.Snapshot, *open_claims: claims.Claim
) -> tuple[allocator_requests.RequestSpec, ...]:
    requests = allocator_requests.parse_requests(view, open_claims)
    assert not isinstance(requests, allocator_types.Unschedulable), requests
    return requests


def offered(
    view: snapshot.Snapshot,
    way: allocator_requests.SubRequest,
    judge: candidates.DeviceFilter = OURS,
) -> candidates.RequestCandidates:
    """Return what node-a has for a way."""
    spots = candidates.node_devices(view, view.nodes[NODE])
    return candidates.find_candidates(way, spots, view.reachable_pools(NODE), judge)


def problem(view: snapshot.Snapshot, *open_claims: claims.Claim) -> search.Problem:
    """Return what is searched on node-a, by the API's rules alone."""
    spots = candidates.node_devices(view, view.nodes[NODE])
    request_specs = wants(view, *open_claims)
    return search.Problem(
        view,
        spots,
        [[offered(view, way) for way in want.subrequests] for want in request_specs],
        [want.claim_index for want in request_specs],
        match_attribute.match_constraints(open_claims, spots),
    )


def solved(result: search.Solved | search.Unsolved) -> search.Solved:
    assert isinstance(result, search.Solved), result
    return result


def unsolved(result: search.Solved | search.Unsolved) -> search.Unsolved:
    assert isinstance(result, search.Unsolved), result.choices
    return result


def empty_tally(source: search.Problem) -> counters.CounterTracker:
    return counters.CounterTracker(source.remaining, source.devices)
