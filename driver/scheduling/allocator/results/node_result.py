"""Result of one node: devices for a workload, or why they do not fit. Pure."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
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
"""Lower is better: positions of selected alternatives, bytes of GPU memory that requests
by need use, negated scores, idle GPUs (D6)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A feasible node and its devices; equivalent nodes have the same result."""

    rank_key: RankKey
    scores: ranking.Scores
    candidate: base.Candidate
    choices: tuple[search.Choice, ...]
    steps: int

    @property
    def memory(self) -> int:
        """Bytes of GPU memory of requests by need."""
        return self.rank_key[1]


NodeResult = Fit | allocator_types.NodeRejection | None
"""None for a node that reaches no device of ours at all."""


RequestOptions = list[list[candidates.RequestCandidates]]
"""Candidates of each request, by subrequest."""
PENDING = allocator_types.NodeRejection(detail="not explained yet")
"""A rejection whose reason is found once it is needed: the node fits for no other reason."""


class NodeSignature(NamedTuple):
    """All that a result depends on: devices, and CPU steps before and after."""

    devices: Hashable
    before: Hashable
    after: Hashable


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Device options of a node, whatever else it has; `context` is the node they were found on."""

    context: scoring.ScoringContext
    problem: search.Problem
    search: scoring.OptionSearch


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """Query to every node: the requests of a workload, and how to decide."""

    view: snapshot.Snapshot
    capacities: node_capacity.NodeCapacityCache
    workload: allocator_types.Workload
    requests: Sequence[allocator_requests.RequestSpec]
    allocator_settings: settings.Settings
    filters: settings.WorkloadFilters


EvaluateDevices = Callable[[NodeQuery, nodes.Node], Fit | allocator_types.NodeRejection]
"""Returns the result of a node whose own filters the pod passes."""


def evaluate(
    query: NodeQuery, node: nodes.Node, evaluate_devices: EvaluateDevices | None = None
) -> NodeResult:
    """Return the result of a node; its devices may be evaluated by a cache."""
    if not reaches_driver(query, node):
        return None
    bound = query.workload.is_bound
    rejection = None if bound else filters.node_rejection(query.view, node, query.workload)
    if rejection is not None:
        return rejection
    return (evaluate_devices or device_result)(query, node)


def reaches_driver(query: NodeQuery, node: nodes.Node) -> bool:
    """Return whether a node reaches a device of the deciding driver, or a managed one."""
    driver = query.allocator_settings.rules.driver
    return not driver or any(
        share.pool.driver == driver or snapshot.has_managed_device(share.pool)
        for share in query.view.reachable_pools(node.name)
    )


def query_signature(query: NodeQuery, node: nodes.Node) -> NodeSignature | None:
    """Return the signature of a node for a query; None: equivalent to no other."""
    state = query.capacities.state(query.view, node)
    return None if state.devices is None else state_signature(query, state)


def state_signature(query: NodeQuery, state: node_capacity.NodeState) -> NodeSignature:
    """Return the signature of a node that may have equivalents."""
    step = query.allocator_settings.policy_chain.mix.cpu_step
    cpu, gpus = state.cpu, state.gpus
    after = cpu - query.workload.pod.requests.get("cpu", 0)
    return NodeSignature(state.devices, step(cpu, gpus), step(after, gpus))


def device_result(query: NodeQuery, node: nodes.Node) -> Fit | allocator_types.NodeRejection:
    """Return the result of a node whose own filters the pod passes."""
    return best_result(query, node, device_options(query, node))


def device_options(
    query: NodeQuery, node: nodes.Node
) -> DeviceOptions | allocator_types.NodeRejection:
    """Return the device options of a node; a rejection if its devices cannot be evaluated."""
    shares, devices = (
        query.view.reachable_pools(node.name),
        candidates.node_devices(query.view, node),
    )
    return build_options(query, node, devices, find_candidates(query, devices, shares))


def find_candidates(
    query: NodeQuery,
    devices: Sequence[candidates.NodeDevice],
    shares: Sequence[pools.NodePool],
) -> RequestOptions:
    """Return the candidates of each request, by subrequest."""
    return [
        [
            candidates.find_candidates(
                subrequest, devices, shares, query.filters.device_filter(spec.claim_index)
            )
            for subrequest in spec.subrequests
        ]
        for spec in query.requests
    ]


def build_options(
    query: NodeQuery,
    node: nodes.Node,
    devices: Sequence[candidates.NodeDevice],
    request_options: Sequence[Sequence[candidates.RequestCandidates]],
) -> DeviceOptions | allocator_types.NodeRejection:
    """Return the device options of a node with some candidates."""
    view, specs = query.view, query.requests
    error = next(
        (share.error for alternatives in request_options for share in alternatives if share.error),
        "",
    )
    if error:
        return allocator_types.NodeRejection(reasons.Reason.ALLOCATOR_ERROR, error)
    match = match_attribute.match_constraints(query.workload.unallocated_claims, devices)
    extra = query.filters.constraints(specs, devices)
    shares = view.reachable_pools(node.name)
    remaining = _FrozenCounters(
        {id(share.pool): view.remaining_counters(share.pool) for share in shares},
        {
            id(share.pool): frozenset(view.used_devices(share.pool))
            for share in shares
            if share.pool.has_compatibility_groups
        },
    )
    problem = search.Problem(
        remaining, devices, request_options, [spec.claim_index for spec in specs], match, extra
    )
    first, budget = _scoring_context(query, node), query.allocator_settings.step_budget
    return DeviceOptions(first, problem, scoring.OptionSearch(problem, first, budget))


@dataclass(frozen=True, slots=True)
class _FrozenCounters:
    """Remaining counters at the time of the query: the node may be searched again."""

    by_pool: Mapping[int, snapshot.CounterAmounts]
    used: Mapping[int, AbstractSet[str]]
    """Allocated devices of the pools with compatibility groups."""

    def used_devices(self, pool: pools.Pool) -> AbstractSet[str]:
        """Return the allocated devices of a pool with compatibility groups."""
        return self.used[id(pool)]

    def remaining_counters(self, pool: pools.Pool) -> snapshot.CounterAmounts:
        """Return the remaining counters of a pool."""
        return self.by_pool[id(pool)]


def _scoring_context(query: NodeQuery, node: nodes.Node) -> scoring.ScoringContext:
    capacity = query.capacities.get(query.view, node)
    return scoring.scoring_context(query.view, node.name, capacity, query.workload.pod)


def best_result(
    query: NodeQuery, node: nodes.Node, options: DeviceOptions | allocator_types.NodeRejection
) -> Fit | allocator_types.NodeRejection:
    """Return the best result among the device options."""
    if isinstance(options, allocator_types.NodeRejection):
        return options
    problem, policy_chain, scene = (
        options.problem,
        query.allocator_settings.policy_chain,
        _scoring_context(query, node),
    )
    solution = options.search.solve(scene, policy_chain)
    if isinstance(solution, search.Unsolved):
        return _other_claim_rejection(query, problem) or _rejection(problem, solution)
    objection = _objection(query, problem, solution) if query.filters.checks_solutions else ""
    if objection:
        return allocator_types.NodeRejection(reasons.Reason.CONFIG_INVALID, objection)
    candidate = scene.candidate(_usages(options, solution.choices))
    scores = policy_chain.scores(candidate)
    worse = tuple(-score for score in scores)
    by_need = [choice for choice in solution.choices if choice.candidates.by_need]
    memory = scoring.total_memory(_usages(options, by_need))
    standing = (
        _alternatives_down(solution, problem.candidates),
        memory,
        worse,
        candidate.before.idle_gpus,
    )
    return Fit(standing, scores, candidate, solution.choices, solution.steps)


def _objection(query: NodeQuery, problem: search.Problem, solution: search.Solved) -> str:
    """Return why a rule beyond the API rejects a whole solution; "" if none does."""
    chosen = (
        _assignment(problem.devices, problem.claim_indexes, choice) for choice in solution.choices
    )
    devices = [problem.devices[choice.index] for choice in solution.choices]
    return query.filters.rejection([*chosen], devices)


def placement(
    query: NodeQuery, node: nodes.Node, fit: Fit, explanation: str = ""
) -> allocator_types.Placement:
    """Return the placement on a node, whichever equivalent node was evaluated."""
    devices = candidates.devices_at(query.view, node, (choice.index for choice in fit.choices))
    claim_of = [request.claim_index for request in query.requests]
    assignments = [_assignment(devices, claim_of, choice) for choice in fit.choices]
    managed = len(query.workload.open_claims)
    return allocator_types.Placement(
        node.name,
        tuple(entry for entry in assignments if entry.claim_index < managed),
        explanation,
        fit.steps,
        scheduler_assignments=tuple(entry for entry in assignments if entry.claim_index >= managed),
    )


def _other_claim_rejection(
    query: NodeQuery, problem: search.Problem
) -> allocator_types.NodeRejection | None:
    """Return a rejection for the claims of kube-scheduler if all others could be allocated."""
    scheduler_claims = query.workload.scheduler_claims
    managed = len(query.workload.open_claims)
    count = sum(index < managed for index in problem.claim_indexes)
    if not scheduler_claims or not count:
        return None
    own = replace(
        problem,
        candidates=problem.candidates[:count],
        claim_indexes=problem.claim_indexes[:count],
    )
    if isinstance(search.solve(own, query.allocator_settings.step_budget), search.Unsolved):
        return None
    named = ", ".join(claim.name for claim in scheduler_claims)
    detail = f"no devices for claim {named} beside the pod's others"
    return allocator_types.NodeRejection(reasons.Reason.OTHER_CLAIM_UNSATISFIED, detail)


def _rejection(problem: search.Problem, unsolved: search.Unsolved) -> allocator_types.NodeRejection:
    if unsolved.error:
        return allocator_types.NodeRejection(reasons.Reason.ALLOCATOR_ERROR, unsolved.error)
    fits, requested, counted = shortfall.count_shortfall(problem)
    return allocator_types.NodeRejection(
        fits=fits,
        requested=requested,
        device_reasons=tuple(sorted(counted.items())),
        budget_exceeded=unsolved.budget_exceeded,
        unsupported_fields=(
            _unsupported_fields(problem)
            if reasons.Reason.UNSUPPORTED_DEVICE_FIELDS in counted
            else ()
        ),
    )


def _unsupported_fields(problem: search.Problem) -> tuple[str, ...]:
    """Return the fields that are not known here, of the devices that a request selects."""
    requested = [option.subrequest for options in problem.candidates for option in options]
    return tuple(
        sorted(
            {
                field
                for device in problem.devices
                if (fields := (*device.device.unsupported, *device.slice.unsupported))
                and any(
                    subrequest.matches(device.id.driver, device.device) is True
                    for subrequest in requested
                )
                for field in fields
            }
        )
    )


def _assignment(
    devices: Sequence[candidates.NodeDevice] | Mapping[int, candidates.NodeDevice],
    claim_of: Sequence[int],
    choice: search.Choice,
) -> allocator_types.DeviceAssignment:
    device, subrequest = devices[choice.index], choice.candidates.subrequest.request
    return allocator_types.DeviceAssignment(
        claim_index=claim_of[choice.request],
        request=subrequest,
        result=claims.Result(
            request=subrequest.name,
            device=device.id,
            admin_access=subrequest.admin_access,
            tolerations=tuple(toleration.raw for toleration in subrequest.tolerations),
            consumed=choice.candidates.consumption.get(choice.index, {}),
            binding=device.device.binding,
            failing=device.device.failing,
        ),
        reach=device.slice.device_reach(device.device),
        pins_node=device.device.binds_to_node,
        shared=device.device.allow_multiple,
    )


def _alternatives_down(
    solution: search.Solved, request_options: Sequence[Sequence[candidates.RequestCandidates]]
) -> int:
    """Return the sum of the positions of the selected alternatives."""
    taken = {choice.request: choice.candidates for choice in solution.choices}
    return sum(
        [alternative.subrequest for alternative in request_options[request]].index(
            options.subrequest
        )
        for request, options in taken.items()
        if len(request_options[request]) > 1
    )


def _usages(options: DeviceOptions, choices: Iterable[search.Choice]) -> Iterator[base.Usage]:
    for choice in choices:
        if not choice.candidates.subrequest.request.admin_access:
            device = options.problem.devices[choice.index]
            usage = options.context.usage(
                device, choice.candidates.consumption.get(choice.index, {})
            )
            if usage is not None:
                yield usage
