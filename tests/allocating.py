"""Asking the allocator in tests: a whole decision, or the pieces of one node's search."""

from collections.abc import Mapping
from typing import Any

from driver import ids, names, reasons
from driver.controller import view as cluster
from driver.controller.allocation import (
    allocate,
    asked,
    constraints,
    offers,
    outcome,
    search,
    tally,
    words,
)
from driver.resources import claims
from tests import objects, worlds

NODE = ids.NodeName("node-a")
OURS = offers.Judge(frozenset({names.ALLOCATOR_TAINT}))
"""The API's rules alone, for devices that are ours."""
Answer = outcome.Placement | outcome.NoFit


def workload(*open_claims: claims.Claim, **pod_spec: Any) -> outcome.Workload:
    """A pod that uses these claims."""
    called = [one.name for one in open_claims]
    return outcome.Workload(objects.pod("pod", *called, **pod_spec), open_claims)


def decide(view: cluster.ClusterView, *open_claims: claims.Claim, **pod_spec: Any) -> Answer:
    """As the controller decides."""
    return allocate.allocate(view, workload(*open_claims, **pod_spec), worlds.DECIDING)


def placed(answer: Answer) -> outcome.Placement:
    assert isinstance(answer, outcome.Placement), words.no_fit(answer)
    return answer


def refused(answer: Answer) -> outcome.NoFit:
    assert isinstance(answer, outcome.NoFit), answer.picks
    return answer


def refusal(answer: Answer) -> outcome.Refusal:
    """Why the only node does not do."""
    (found,) = refused(answer).nodes
    return found


def counts(answer: Answer) -> dict[reasons.Reason, int]:
    """Why the devices of the only node do not do."""
    return dict(refusal(answer).devices)


def devices(answer: Answer) -> list[str]:
    """The names of the devices that were chosen."""
    return [pick.device.device for pick in placed(answer).picks]


def by_request(answer: Answer) -> Mapping[str, list[str]]:
    """The names of the devices by request."""
    found: dict[str, list[str]] = {}
    for pick in placed(answer).picks:
        found.setdefault(pick.result.request, []).append(pick.device.device)
    return found


def wants(view: cluster.ClusterView, *open_claims: claims.Claim) -> tuple[asked.Want, ...]:
    found = asked.wants(view, open_claims)
    assert not isinstance(found, outcome.NoFit), found
    return found


def offered(view: cluster.ClusterView, way: asked.Way, judge: offers.Judge = OURS) -> offers.Offer:
    """What node-a has for a way."""
    spots = offers.spots(view, view.nodes[NODE])
    return offers.offer(way, spots, view.shares(NODE), judge)


def problem(view: cluster.ClusterView, *open_claims: claims.Claim) -> search.Problem:
    """What is searched on node-a, by the API's rules alone."""
    spots = offers.spots(view, view.nodes[NODE])
    found = wants(view, *open_claims)
    return search.Problem(
        view,
        spots,
        [[offered(view, way) for way in want.ways] for want in found],
        [want.claim for want in found],
        constraints.bonds(open_claims, spots),
    )


def solved(found: search.Solved | search.Unsolved) -> search.Solved:
    assert isinstance(found, search.Solved), found
    return found


def unsolved(found: search.Solved | search.Unsolved) -> search.Unsolved:
    assert isinstance(found, search.Unsolved), found.choices
    return found


def empty_tally(of: search.Problem) -> tally.Tally:
    return tally.Tally(of.lefts, of.spots)
