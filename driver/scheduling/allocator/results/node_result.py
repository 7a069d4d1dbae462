"""Result of one node: devices for a workload, or why they do not fit. Pure."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from driver import reasons
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import candidates, scoring, search, settings
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity, shortfall
from driver.scheduling.allocator.constraints import match_attribute
from driver.scheduling.allocator.equivalence import equivalent_devices, node_signature
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


_MAX_RESULTS = 4096
_MIN_DEVICES, _MAX_DEVICES = 2_000, 100_000
"""Bounds of devices in all cached options: 25 to 50 MB at the maximum."""
_DEVICE_FACTOR = 8
"""Maximum mean number of options per device of the cluster: more are rarely used."""
_Idle = list[list[candidates.RequestCandidates]]
"""Candidates of each request, by subrequest, on a node without devices in use."""


class DeviceOptionsCache:
    """Cache of device options by request and device signature, for all policies.

    The entries used last are retained.
    """

    def __init__(self, most: int = _MAX_DEVICES) -> None:
        self._max_devices = most
        self._entries: OrderedDict[
            Hashable, DeviceOptions | allocator_types.NodeRejection | _Idle
        ] = OrderedDict()
        self._devices = 0

    @classmethod
    def for_cluster(cls, view: snapshot.Snapshot) -> "DeviceOptionsCache":
        """Return an empty cache with a capacity that suits the cluster's devices."""
        most = _DEVICE_FACTOR * sum(pool.size for pool in view.pools.values())
        return cls(min(max(most, _MIN_DEVICES), _MAX_DEVICES))

    def get(
        self,
        shape: Hashable,
        devices: node_signature.DeviceSignature,
        query: "NodeQuery",
        node: nodes.Node,
    ) -> "DeviceOptions | allocator_types.NodeRejection":
        """Return the cached options, or compute them."""
        key = shape, devices
        options = self._entries.get(key)
        if options is None:
            options = self._compute(shape, devices, query, node)
            self._add(key, options)
        self._entries.move_to_end(key)
        return cast("DeviceOptions | allocator_types.NodeRejection", options)

    def _compute(
        self,
        shape: Hashable,
        signature: node_signature.DeviceSignature,
        query: "NodeQuery",
        node: nodes.Node,
    ) -> "DeviceOptions | allocator_types.NodeRejection":
        """Return the options of a node, checking none but its devices in use if it can."""
        shares = query.view.reachable_pools(node.name)
        devices = equivalent_devices.devices_in_use(query.view, shares)
        key = shape, tuple(pool for pool, _ in signature)
        idle = cast("_Idle | None", self._entries.get(key))
        if idle is None:
            idle = _find_candidates(query, devices.idle(), shares)
            self._add(key, idle)
        self._entries.move_to_end(key)
        request_options = [
            [
                equivalent_devices.find_candidates(
                    options, devices, query.filters.device_filter(spec.claim_index)
                )
                for options in alternatives
            ]
            for spec, alternatives in zip(query.requests, idle, strict=True)
        ]
        return _build_options(query, node, devices, request_options)

    def _add(
        self, key: Hashable, entry: "DeviceOptions | allocator_types.NodeRejection | _Idle"
    ) -> None:
        self._entries[key] = entry
        self._devices += _weight(entry)
        while self._devices > self._max_devices and len(self._entries) > 1:
            self._devices -= _weight(self._entries.popitem(last=False)[1])


def _weight(entry: "DeviceOptions | allocator_types.NodeRejection | _Idle") -> int:
    """Return the number of devices that an entry holds."""
    if isinstance(entry, DeviceOptions):
        return len(entry.problem.devices)
    if isinstance(entry, allocator_types.NodeRejection):
        return 1
    return sum(
        len(options.rejected) + len(options.indexes)
        for alternatives in entry
        for options in alternatives
    )


class SignatureResults:
    """Results for one device request, by node signature."""

    def __init__(self, shape: Hashable = None, options: DeviceOptionsCache | None = None) -> None:
        """Create the cache; the same request under other policies may share `options`."""
        self._results: dict[Hashable, Fit | allocator_types.NodeRejection] = {}
        self._shape = shape
        self._options = DeviceOptionsCache() if options is None else options

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self._results)

    def get(self, query: "NodeQuery", node: nodes.Node) -> Fit | allocator_types.NodeRejection:
        """Return the result of a node.

        Devices alone decide whether a node is rejected, unless its search was given up.
        """
        devices = query.capacities.signature(query.view, node)
        if devices is None:
            return evaluate_devices(query, node)
        result = self._results.get(devices)
        if result is not None:
            return result
        signature = NodeSignature(devices, *_cpu_steps(query, node))
        result = self._results.get(signature)
        if result is None:
            if len(self._results) >= _MAX_RESULTS:
                self._results.clear()
            options = self._options.get(self._shape, devices, query, node)
            result = _best_result(query, node, options)
            self._results[devices if _is_final(result) else signature] = result
        return result


def _is_final(result: "Fit | allocator_types.NodeRejection") -> bool:
    """Return whether no policy changes a result: there is no solution, or an error."""
    return (
        not isinstance(result, Fit)
        and not result.budget_exceeded
        and result.node_reason in {None, reasons.Reason.ALLOCATOR_ERROR}
    )


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


def evaluate(
    query: NodeQuery, node: nodes.Node, results: SignatureResults | None = None
) -> NodeResult:
    """Return the result of a node; the cached one of an equivalent node if there is one."""
    if not reaches_driver(query, node):
        return None
    bound = query.workload.is_bound
    rejection = None if bound else filters.node_rejection(query.view, node, query.workload)
    if rejection is not None:
        return rejection
    return evaluate_devices(query, node) if results is None else results.get(query, node)


def reaches_driver(query: NodeQuery, node: nodes.Node) -> bool:
    """Return whether a node reaches a device of the deciding driver, or a managed one."""
    driver = query.allocator_settings.rules.driver
    return not driver or any(
        share.pool.driver == driver or snapshot.has_managed_device(share.pool)
        for share in query.view.reachable_pools(node.name)
    )


def query_signature(query: NodeQuery, node: nodes.Node) -> NodeSignature | None:
    """Return the signature of a node for a query; None: equivalent to no other."""
    devices = query.capacities.signature(query.view, node)
    if devices is None:
        return None
    return NodeSignature(devices, *_cpu_steps(query, node))


def _cpu_steps(query: NodeQuery, node: nodes.Node) -> tuple[Hashable, Hashable]:
    """Return the CPU steps of a node before and after the workload."""
    cpu, remaining = query.capacities.cpu_and_gpus(query.view, node)
    step = query.allocator_settings.policy_chain.cpu_step
    return step(cpu, remaining), step(cpu - query.workload.pod.requests.get("cpu", 0), remaining)


def evaluate_devices(query: NodeQuery, node: nodes.Node) -> Fit | allocator_types.NodeRejection:
    """Return the result of a node whose own filters the pod passes."""
    return _best_result(query, node, device_options(query, node))


def device_options(
    query: NodeQuery, node: nodes.Node
) -> DeviceOptions | allocator_types.NodeRejection:
    """Return the device options of a node; a rejection if its devices cannot be evaluated."""
    shares, devices = (
        query.view.reachable_pools(node.name),
        candidates.node_devices(query.view, node),
    )
    return _build_options(query, node, devices, _find_candidates(query, devices, shares))


def _find_candidates(
    query: NodeQuery,
    devices: Sequence[candidates.NodeDevice],
    shares: Sequence[pools.NodePool],
) -> _Idle:
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


def _build_options(
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


def _best_result(
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
    chosen = (
        _assignment(problem.devices, problem.claim_indexes, choice) for choice in solution.choices
    )
    chosen_devices = [problem.devices[choice.index] for choice in solution.choices]
    objection = query.filters.rejection([*chosen], chosen_devices)
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
