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

RankKey = tuple[int, int, ranking.Scores, int]
"""Lower is better: alternatives that are not the preferred ones, bytes of GPU memory that requests
by need take, worse scores, idle GPUs (D6)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A node that does, and what it gives; nodes that are alike would answer the same."""

    rank_key: RankKey
    scores: ranking.Scores
    candidate: base.Candidate
    choices: tuple[search.Choice, ...]
    steps: int

    @property
    def memory(self) -> int:
        """The bytes of GPU memory that requests by need take."""
        return self.rank_key[1]


NodeResult = Fit | allocator_types.NodeRejection | None
"""None for a node that reaches no device of ours at all."""


_MAX_RESULTS = 4096
_MIN_DEVICES, _MAX_DEVICES = 2_000, 100_000
"""In all chances that are kept: 25 to 50 MB of the most."""
_DEVICE_FACTOR = 8
"""So often may each device of a cluster be in them: more answers of a few nodes are rarely met."""


class DeviceOptionsCache:
    """What devices allow, by what is asked of them and their look, whatever the policies.

    Those used last are kept.
    """

    def __init__(self, most: int = _MAX_DEVICES) -> None:
        self._max_devices = most
        self._options: OrderedDict[Hashable, DeviceOptions | allocator_types.NodeRejection] = (
            OrderedDict()
        )
        self._devices = 0

    @classmethod
    def for_cluster(cls, view: snapshot.Snapshot) -> "DeviceOptionsCache":
        """None yet, and room for as many as the devices of a cluster are worth."""
        most = _DEVICE_FACTOR * sum(of.size for of in view.pools.values())
        return cls(min(max(most, _MIN_DEVICES), _MAX_DEVICES))

    def get(
        self, key: Hashable, question: "NodeQuery", node: nodes.Node
    ) -> "DeviceOptions | allocator_types.NodeRejection":
        """As it is kept, else as the node says."""
        found = self._options.get(key)
        if found is None:
            found = self._options[key] = device_options(question, node)
            self._devices += _weight(found)
        self._options.move_to_end(key)
        while self._devices > self._max_devices and len(self._options) > 1:
            self._devices -= _weight(self._options.popitem(last=False)[1])
        return found


def _weight(found: "DeviceOptions | allocator_types.NodeRejection") -> int:
    return 1 if isinstance(found, allocator_types.NodeRejection) else len(found.problem.devices)


class SignatureResults:
    """What nodes told to one question about devices, by their look."""

    def __init__(
        self, asked_for: Hashable = None, chances: DeviceOptionsCache | None = None
    ) -> None:
        """Who asks for the same devices by other policies may have the same `chances`."""
        self._results: dict[Hashable, Fit | allocator_types.NodeRejection] = {}
        self._shape = asked_for
        self._options = DeviceOptionsCache() if chances is None else chances

    @property
    def size(self) -> int:
        """How many answers it has."""
        return len(self._results)

    def get(self, question: "NodeQuery", node: nodes.Node) -> Fit | allocator_types.NodeRejection:
        """The answer of a node."""
        seen = query_signature(question, node)
        if seen is None:
            return evaluate_devices(question, node)
        known = self._results.get(seen)
        if known is None:
            if len(self._results) >= _MAX_RESULTS:
                self._results.clear()
            found = self._options.get((self._shape, seen.devices), question, node)
            known = self._results[seen] = _best_result(question, node, found)
        return known


class NodeSignature(NamedTuple):
    """All that an answer depends on: devices, and the CPUs before and after, to policies."""

    devices: Hashable
    before: Hashable
    after: Hashable


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """What the devices of a node allow, whatever else it has; `first` is the node they are of."""

    context: scoring.ScoringContext
    problem: search.Problem
    search: scoring.OptionSearch


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """What is asked of every node: what a workload wants, and how it is decided."""

    view: snapshot.Snapshot
    capacities: node_capacity.NodeCapacityCache
    workload: allocator_types.Workload
    requests: Sequence[allocator_requests.RequestSpec]
    allocator_settings: settings.Settings
    filters: settings.WorkloadFilters


def evaluate(
    question: NodeQuery, node: nodes.Node, told: SignatureResults | None = None
) -> NodeResult:
    """Whether a node has what a workload wants; as nodes that are alike told, where they did."""
    if not reaches_driver(question, node):
        return None
    bound = question.workload.is_bound
    refused = None if bound else filters.node_rejection(question.view, node, question.workload)
    if refused is not None:
        return refused
    return evaluate_devices(question, node) if told is None else told.get(question, node)


def reaches_driver(question: NodeQuery, node: nodes.Node) -> bool:
    """Whether a node reaches any device of the driver that decides."""
    driver = question.allocator_settings.rules.driver
    return not driver or any(
        share.pool.driver == driver for share in question.view.reachable_pools(node.name)
    )


def query_signature(question: NodeQuery, node: nodes.Node) -> NodeSignature | None:
    """What a node looks like to a question; None: like no other."""
    devices = question.capacities.signature(question.view, node)
    if devices is None:
        return None
    room = question.capacities.get(question.view, node)
    after = room.cpu - question.workload.pod.requests.get("cpu", 0)
    grain = question.allocator_settings.policy_chain.cpu_step
    return NodeSignature(devices, grain(room, room.cpu), grain(room, after))


def evaluate_devices(question: NodeQuery, node: nodes.Node) -> Fit | allocator_types.NodeRejection:
    """The answer of a node that the pod fits, as far as the node itself is concerned."""
    return _best_result(question, node, device_options(question, node))


def device_options(
    question: NodeQuery, node: nodes.Node
) -> DeviceOptions | allocator_types.NodeRejection:
    """What the devices of a node allow; a refusal where no device can be decided about."""
    view, wants, verdicts = question.view, question.requests, question.filters
    shares, spots = view.reachable_pools(node.name), candidates.node_devices(view, node)
    made = [
        [
            candidates.find_candidates(way, spots, shares, verdicts.device_filter(want.claim_index))
            for way in want.subrequests
        ]
        for want in wants
    ]
    broken = next((one.error for ways in made for one in ways if one.error), "")
    if broken:
        return allocator_types.NodeRejection(reasons.Reason.SEARCH_BROKEN, broken)
    bonds = match_attribute.match_constraints(question.workload.open_claims, spots)
    pacts = verdicts.constraints(wants, spots)
    lefts = _FrozenCounters({id(one.pool): view.remaining_counters(one.pool) for one in shares})
    problem = search.Problem(lefts, spots, made, [want.claim_index for want in wants], bonds, pacts)
    first, budget = _scoring_context(question, node), question.allocator_settings.step_budget
    return DeviceOptions(first, problem, scoring.OptionSearch(problem, first, budget))


@dataclass(frozen=True, slots=True)
class _FrozenCounters:
    """What was left of pools' counters when a node was asked: it may be asked about again."""

    by_pool: Mapping[int, snapshot.CounterAmounts]

    def remaining_counters(self, of: pools.Pool) -> snapshot.CounterAmounts:
        """Of a pool."""
        return self.by_pool[id(of)]


def _scoring_context(question: NodeQuery, node: nodes.Node) -> scoring.ScoringContext:
    room = question.capacities.get(question.view, node)
    return scoring.scoring_context(question.view, node.name, room, question.workload.pod)


def _best_result(
    question: NodeQuery, node: nodes.Node, found: DeviceOptions | allocator_types.NodeRejection
) -> Fit | allocator_types.NodeRejection:
    """The best of what devices allow."""
    if isinstance(found, allocator_types.NodeRejection):
        return found
    problem, judge, scene = (
        found.problem,
        question.allocator_settings.policy_chain,
        _scoring_context(question, node),
    )
    solved = found.search.solve(scene, judge)
    if isinstance(solved, search.Unsolved):
        return _rejection(problem, solved)
    made = (_assignment(problem.devices, problem.claim_indexes, one) for one in solved.choices)
    objection = question.filters.rejection([*made], problem.devices)
    if objection:
        return allocator_types.NodeRejection(reasons.Reason.CONFIG_INVALID, objection)
    candidate = scene.candidate(_usages(found, solved.choices))
    scores = judge.scores(candidate)
    worse = tuple(-score for score in scores)
    by_need = [one for one in solved.choices if one.candidates.by_need]
    memory = scoring.total_memory(_usages(found, by_need))
    standing = (
        _alternatives_down(solved, problem.candidates),
        memory,
        worse,
        candidate.before.idle_gpus,
    )
    return Fit(standing, scores, candidate, solved.choices, solved.steps)


def assignments(
    question: NodeQuery, node: nodes.Node, fit: Fit
) -> tuple[allocator_types.DeviceAssignment, ...]:
    """What a node gives, whichever of those that are alike answered."""
    spots = candidates.devices_at(question.view, node, (one.index for one in fit.choices))
    claim_of = [want.claim_index for want in question.requests]
    return tuple(_assignment(spots, claim_of, one) for one in fit.choices)


def _rejection(problem: search.Problem, answer: search.Unsolved) -> allocator_types.NodeRejection:
    if answer.error:
        return allocator_types.NodeRejection(reasons.Reason.SEARCH_BROKEN, answer.error)
    fits, wanted, counted = shortfall.count_shortfall(problem)
    return allocator_types.NodeRejection(
        fits=fits,
        requested=wanted,
        device_reasons=tuple(sorted(counted.items())),
        budget_exceeded=answer.budget_exceeded,
    )


def _assignment(
    spots: Sequence[candidates.NodeDevice] | Mapping[int, candidates.NodeDevice],
    claim_of: Sequence[int],
    choice: search.Choice,
) -> allocator_types.DeviceAssignment:
    spot, way = spots[choice.index], choice.candidates.subrequest.request
    return allocator_types.DeviceAssignment(
        claim_index=claim_of[choice.request],
        request=way,
        result=claims.Result(
            request=way.name,
            device=spot.id,
            admin_access=way.admin_access,
            tolerations=tuple(one.raw for one in way.tolerations),
            consumed=choice.candidates.consumption.get(choice.index, {}),
            binding=spot.device.binding,
            failing=spot.device.failing,
        ),
        reach=spot.slice.reach_of(spot.device),
        pins_node=spot.device.binds_to_node,
        shared=spot.device.allow_multiple,
    )


def _alternatives_down(
    solved: search.Solved, made: Sequence[Sequence[candidates.RequestCandidates]]
) -> int:
    """How far down its alternatives each request had to go, in all."""
    taken = {choice.request: choice.candidates for choice in solved.choices}
    return sum(
        [one.subrequest for one in made[want]].index(offer.subrequest)
        for want, offer in taken.items()
        if len(made[want]) > 1
    )


def _usages(found: DeviceOptions, choices: Iterable[search.Choice]) -> Iterator[base.Usage]:
    for one in choices:
        if not one.candidates.subrequest.request.admin_access:
            spot = found.problem.devices[one.index]
            taken = found.context.usage(spot, one.candidates.consumption.get(one.index, {}))
            if taken is not None:
                yield taken
