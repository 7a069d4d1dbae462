"""One node's answer: what it has for a workload, or why that does not do. Pure."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from driver import reasons
from driver.controller import view as cluster
from driver.controller.allocation import (
    asked,
    constraints,
    nodefit,
    offers,
    options,
    outcome,
    ranking,
    rooms,
    search,
    settings,
    shortfall,
)
from driver.controller.allocation.policies import base
from driver.resources import claims, nodes

Standing = tuple[int, int, ranking.Scores, int]
"""Lower is better: alternatives that are not the preferred ones, bytes of GPU memory that requests
by need take, worse scores, idle GPUs (D6)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A node that does, with its devices; nodes that are alike would answer the same."""

    standing: Standing
    scores: ranking.Scores
    candidate: base.Candidate
    picks: tuple[outcome.Pick, ...]
    steps: int

    @property
    def memory(self) -> int:
        """The bytes of GPU memory that requests by need take."""
        return self.standing[1]


Answer = Fit | outcome.Refusal | None
"""None for a node that reaches no device of ours at all."""
Told = dict[Hashable, Fit | outcome.Refusal]
"""What nodes of each look answered to one question about devices."""
_MOST_TOLD = 4096


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every node: what a workload wants, and how it is decided."""

    view: cluster.ClusterView
    rooms: rooms.Rooms
    workload: outcome.Workload
    wants: Sequence[asked.Want]
    deciding: settings.Settings
    verdicts: settings.Verdicts


def ask(question: Question, node: nodes.Node, told: Told | None = None) -> Answer:
    """Whether a node has what a workload wants; as nodes that are alike told, where they did."""
    if not reaches(question, node):
        return None
    refused = nodefit.refusal(question.view, node, question.workload)
    if refused is not None:
        return refused
    found = None if told is None else look(question, node)
    if told is None or found is None:
        return of_devices(question, node)
    known = told.get(found)
    if known is None:
        if len(told) >= _MOST_TOLD:
            told.clear()
        known = told[found] = of_devices(question, node)
    return known


def reaches(question: Question, node: nodes.Node) -> bool:
    """Whether a node reaches any device of the driver that decides."""
    driver = question.deciding.rules.driver
    return not driver or any(
        share.pool.driver == driver for share in question.view.shares(node.name)
    )


def look(question: Question, node: nodes.Node) -> Hashable | None:
    """All that an answer depends on: devices, and what policies see; None: like no other's."""
    devices = question.rooms.look(question.view, node)
    if devices is None:
        return None
    cpu = question.rooms.of(question.view, node).cpu
    after = cpu - question.workload.pod.requests.get("cpu", 0)
    grain = question.deciding.ranking.grain
    return devices, grain(cpu), grain(after)


def of_devices(question: Question, node: nodes.Node) -> Fit | outcome.Refusal:
    """The answer of a node that the pod fits, as far as the node itself is concerned."""
    view, wants, verdicts = question.view, question.wants, question.verdicts
    shares, spots = view.shares(node.name), offers.spots(view, node)
    made = [
        [offers.offer(way, spots, shares, verdicts.judge(want.claim)) for way in want.ways]
        for want in wants
    ]
    broken = next((one.broken for ways in made for one in ways if one.broken), "")
    if broken:
        return outcome.Refusal(reasons.Reason.SEARCH_BROKEN, broken)
    bonds = constraints.bonds(question.workload.open, spots)
    pacts = verdicts.pacts(wants, spots)
    problem = search.Problem(view, spots, made, [want.claim for want in wants], bonds, pacts)
    scene = options.scene(view, node.name, question.rooms.of(view, node), question.workload.pod)
    judge = question.deciding.ranking
    solved = options.solve(problem, scene, judge, question.deciding.budget)
    if isinstance(solved, search.Unsolved):
        return _refusal(problem, solved)
    picks = tuple(_pick(spots, problem, one) for one in solved.choices)
    objection = verdicts.objection(picks, spots)
    if objection:
        return outcome.Refusal(reasons.Reason.CONFIG_INVALID, objection)
    candidate = scene.candidate(_taken(scene, problem, solved.choices))
    scores = judge.scores(candidate)
    worse = tuple(-score for score in scores)
    by_need = [one for one in solved.choices if one.offer.by_need]
    memory = options.memory_of(_taken(scene, problem, by_need))
    standing = _preferred(solved, made), memory, worse, candidate.before.idle
    return Fit(standing, scores, candidate, picks, solved.steps)


def _refusal(problem: search.Problem, answer: search.Unsolved) -> outcome.Refusal:
    if answer.broken:
        return outcome.Refusal(reasons.Reason.SEARCH_BROKEN, answer.broken)
    fits, wanted, counted = shortfall.of(problem)
    return outcome.Refusal(
        fits=fits,
        wanted=wanted,
        devices=tuple(sorted(counted.items())),
        given_up=answer.given_up,
    )


def _pick(
    spots: Sequence[offers.Spot], problem: search.Problem, choice: search.Choice
) -> outcome.Pick:
    spot, way = spots[choice.place], choice.offer.way.request
    return outcome.Pick(
        claim=problem.claim_of[choice.want],
        request=way,
        result=claims.Result(
            request=way.name,
            device=spot.id,
            admin_access=way.admin_access,
            tolerations=tuple(one.raw for one in way.tolerations),
            consumed=choice.offer.takes.get(choice.place, {}),
            binding=spot.device.binding,
            failing=spot.device.failing,
        ),
        reach=spot.slice.reach_of(spot.device),
        stays=spot.device.binds_to_node,
        shared=spot.device.allow_multiple,
    )


def _preferred(solved: search.Solved, made: Sequence[Sequence[offers.Offer]]) -> int:
    """How far down its alternatives each request had to go, in all."""
    taken = {choice.want: choice.offer for choice in solved.choices}
    return sum(
        [one.way for one in made[want]].index(offer.way)
        for want, offer in taken.items()
        if len(made[want]) > 1
    )


def _taken(
    scene: options.Scene, problem: search.Problem, choices: Iterable[search.Choice]
) -> Iterator[base.Taken]:
    for one in choices:
        if not one.offer.way.request.admin_access:
            found = scene.taken(problem.spots[one.place], one.offer.takes.get(one.place, {}))
            if found is not None:
                yield found
