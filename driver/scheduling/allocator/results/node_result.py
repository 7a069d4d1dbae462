"""One node's answer: what it has for a workload, or why that does not do. Pure."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from driver import reasons
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import candidates, scoring, search, settings
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity, shortfall
from driver.scheduling.allocator.constraints import match_attribute
from driver.scheduling.allocator.node_filter import filters
from driver.scheduling.allocator.policies import base, ranking
from driver.scheduling.snapshot import snapshot

Standing = tuple[int, int, ranking.Scores, int]
"""Lower is better: alternatives that are not the preferred ones, bytes of GPU memory that requests
by need take, worse scores, idle GPUs (D6)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A node that does, and what it gives; nodes that are alike would answer the same."""

    standing: Standing
    scores: ranking.Scores
    candidate: base.Candidate
    choices: tuple[search.Choice, ...]
    steps: int

    @property
    def memory(self) -> int:
        """The bytes of GPU memory that requests by need take."""
        return self.standing[1]


Answer = Fit | allocator_types.Refusal | None
"""None for a node that reaches no device of ours at all."""


_MOST_TOLD = 4096
_LEAST_DEVICES, _MOST_DEVICES = 2_000, 100_000
"""In all chances that are kept: 25 to 50 MB of the most."""
_TIMES = 8
"""So often may each device of a cluster be in them: more answers of a few nodes are rarely met."""


class Chances:
    """What devices allow, by what is asked of them and their look, whatever the policies.

    Those used last are kept.
    """

    def __init__(self, most: int = _MOST_DEVICES) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Chance | allocator_types.Refusal] = OrderedDict()
        self._devices = 0

    @classmethod
    def for_cluster(cls, view: snapshot.Snapshot) -> "Chances":
        """None yet, and room for as many as the devices of a cluster are worth."""
        most = _TIMES * sum(of.size for of in view.pools.values())
        return cls(min(max(most, _LEAST_DEVICES), _MOST_DEVICES))

    def of(
        self, key: Hashable, question: "Question", node: nodes.Node
    ) -> "Chance | allocator_types.Refusal":
        """As it is kept, else as the node says."""
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = chance(question, node)
            self._devices += _weight(found)
        self._kept.move_to_end(key)
        while self._devices > self._most and len(self._kept) > 1:
            self._devices -= _weight(self._kept.popitem(last=False)[1])
        return found


def _weight(found: "Chance | allocator_types.Refusal") -> int:
    return 1 if isinstance(found, allocator_types.Refusal) else len(found.problem.spots)


class Told:
    """What nodes told to one question about devices, by their look."""

    def __init__(self, asked_for: Hashable = None, chances: Chances | None = None) -> None:
        """Who asks for the same devices by other policies may have the same `chances`."""
        self._answers: dict[Hashable, Fit | allocator_types.Refusal] = {}
        self._asked_for = asked_for
        self._chances = Chances() if chances is None else chances

    @property
    def size(self) -> int:
        """How many answers it has."""
        return len(self._answers)

    def of(self, question: "Question", node: nodes.Node) -> Fit | allocator_types.Refusal:
        """The answer of a node."""
        seen = look(question, node)
        if seen is None:
            return of_devices(question, node)
        known = self._answers.get(seen)
        if known is None:
            if len(self._answers) >= _MOST_TOLD:
                self._answers.clear()
            found = self._chances.of((self._asked_for, seen.devices), question, node)
            known = self._answers[seen] = _answer(question, node, found)
        return known


class Look(NamedTuple):
    """All that an answer depends on: devices, and the CPUs before and after, to policies."""

    devices: Hashable
    before: Hashable
    after: Hashable


@dataclass(frozen=True, slots=True)
class Chance:
    """What the devices of a node allow, whatever else it has; `first` is the node they are of."""

    first: scoring.Scene
    problem: search.Problem
    options: scoring.Options


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every node: what a workload wants, and how it is decided."""

    view: snapshot.Snapshot
    rooms: node_capacity.Rooms
    workload: allocator_types.Workload
    wants: Sequence[allocator_requests.Want]
    deciding: settings.Settings
    verdicts: settings.Verdicts


def ask(question: Question, node: nodes.Node, told: Told | None = None) -> Answer:
    """Whether a node has what a workload wants; as nodes that are alike told, where they did."""
    if not reaches(question, node):
        return None
    bound = question.workload.bound
    refused = None if bound else filters.of_node(question.view, node, question.workload)
    if refused is not None:
        return refused
    return of_devices(question, node) if told is None else told.of(question, node)


def reaches(question: Question, node: nodes.Node) -> bool:
    """Whether a node reaches any device of the driver that decides."""
    driver = question.deciding.rules.driver
    return not driver or any(
        share.pool.driver == driver for share in question.view.reachable_pools(node.name)
    )


def look(question: Question, node: nodes.Node) -> Look | None:
    """What a node looks like to a question; None: like no other."""
    devices = question.rooms.look(question.view, node)
    if devices is None:
        return None
    room = question.rooms.of(question.view, node)
    after = room.cpu - question.workload.pod.requests.get("cpu", 0)
    grain = question.deciding.ranking.grain
    return Look(devices, grain(room, room.cpu), grain(room, after))


def of_devices(question: Question, node: nodes.Node) -> Fit | allocator_types.Refusal:
    """The answer of a node that the pod fits, as far as the node itself is concerned."""
    return _answer(question, node, chance(question, node))


def chance(question: Question, node: nodes.Node) -> Chance | allocator_types.Refusal:
    """What the devices of a node allow; a refusal where no device can be decided about."""
    view, wants, verdicts = question.view, question.wants, question.verdicts
    shares, spots = view.reachable_pools(node.name), candidates.spots(view, node)
    made = [
        [candidates.offer(way, spots, shares, verdicts.judge(want.claim)) for way in want.ways]
        for want in wants
    ]
    broken = next((one.broken for ways in made for one in ways if one.broken), "")
    if broken:
        return allocator_types.Refusal(reasons.Reason.SEARCH_BROKEN, broken)
    bonds = match_attribute.bonds(question.workload.open, spots)
    pacts = verdicts.pacts(wants, spots)
    lefts = _Lefts({id(one.pool): view.remaining_counters(one.pool) for one in shares})
    problem = search.Problem(lefts, spots, made, [want.claim for want in wants], bonds, pacts)
    first, budget = _scene(question, node), question.deciding.budget
    return Chance(first, problem, scoring.Options(problem, first, budget))


@dataclass(frozen=True, slots=True)
class _Lefts:
    """What was left of pools' counters when a node was asked: it may be asked about again."""

    found: Mapping[int, snapshot.CounterAmounts]

    def remaining_counters(self, of: pools.Pool) -> snapshot.CounterAmounts:
        """Of a pool."""
        return self.found[id(of)]


def _scene(question: Question, node: nodes.Node) -> scoring.Scene:
    room = question.rooms.of(question.view, node)
    return scoring.scene(question.view, node.name, room, question.workload.pod)


def _answer(
    question: Question, node: nodes.Node, found: Chance | allocator_types.Refusal
) -> Fit | allocator_types.Refusal:
    """The best of what devices allow."""
    if isinstance(found, allocator_types.Refusal):
        return found
    problem, judge, scene = found.problem, question.deciding.ranking, _scene(question, node)
    solved = found.options.solve(scene, judge)
    if isinstance(solved, search.Unsolved):
        return _refusal(problem, solved)
    made = (_pick(problem.spots, problem.claim_of, one) for one in solved.choices)
    objection = question.verdicts.objection([*made], problem.spots)
    if objection:
        return allocator_types.Refusal(reasons.Reason.CONFIG_INVALID, objection)
    candidate = scene.candidate(_taken(found, solved.choices))
    scores = judge.scores(candidate)
    worse = tuple(-score for score in scores)
    by_need = [one for one in solved.choices if one.offer.by_need]
    memory = scoring.memory_of(_taken(found, by_need))
    standing = _preferred(solved, problem.offers), memory, worse, candidate.before.idle
    return Fit(standing, scores, candidate, solved.choices, solved.steps)


def picks(question: Question, node: nodes.Node, fit: Fit) -> tuple[allocator_types.Pick, ...]:
    """What a node gives, whichever of those that are alike answered."""
    spots = candidates.some(question.view, node, (one.place for one in fit.choices))
    claim_of = [want.claim for want in question.wants]
    return tuple(_pick(spots, claim_of, one) for one in fit.choices)


def _refusal(problem: search.Problem, answer: search.Unsolved) -> allocator_types.Refusal:
    if answer.broken:
        return allocator_types.Refusal(reasons.Reason.SEARCH_BROKEN, answer.broken)
    fits, wanted, counted = shortfall.of(problem)
    return allocator_types.Refusal(
        fits=fits,
        wanted=wanted,
        devices=tuple(sorted(counted.items())),
        given_up=answer.given_up,
    )


def _pick(
    spots: Sequence[candidates.Spot] | Mapping[int, candidates.Spot],
    claim_of: Sequence[int],
    choice: search.Choice,
) -> allocator_types.Pick:
    spot, way = spots[choice.place], choice.offer.way.request
    return allocator_types.Pick(
        claim=claim_of[choice.want],
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


def _preferred(solved: search.Solved, made: Sequence[Sequence[candidates.Offer]]) -> int:
    """How far down its alternatives each request had to go, in all."""
    taken = {choice.want: choice.offer for choice in solved.choices}
    return sum(
        [one.way for one in made[want]].index(offer.way)
        for want, offer in taken.items()
        if len(made[want]) > 1
    )


def _taken(found: Chance, choices: Iterable[search.Choice]) -> Iterator[base.Taken]:
    for one in choices:
        if not one.offer.way.request.admin_access:
            spot = found.problem.spots[one.place]
            taken = found.first.taken(spot, one.offer.takes.get(one.place, {}))
            if taken is not None:
                yield taken
