"""Order of device options: policies decide which devices of a node are tried first. Pure.

Equivalent options count as one, so the best is the best of all of them. If requests differ from
each other, each gets what is best for it alone. A request by need gets what uses the least memory
of a GPU, whatever policies say; they decide among options of equal memory.
"""

import functools
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from driver import ids
from driver.resources import quantities
from driver.resources.core import pods
from driver.scheduling.allocator import candidates, search
from driver.scheduling.allocator.capacity import node_capacity, pool_layout, vocabulary
from driver.scheduling.allocator.constraints import counters
from driver.scheduling.allocator.policies import base, gpu_links, ranking
from driver.scheduling.snapshot import snapshot

_MAX_SETS = 20_000


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """A node as policies see it, and the pod; `first_gpu` is the index of a pool's first GPU."""

    node: ids.NodeName
    capacity: base.NodeCapacity
    pod: pods.Pod
    first_gpu: Mapping[snapshot.PoolKey, int]

    def usage(
        self, device: candidates.NodeDevice, takes: Mapping[str, quantities.Quantity]
    ) -> base.Usage | None:
        """Return what a result uses of its GPU; None for a device that is no GPU of ours."""
        first = self.first_gpu.get((device.pool.driver, device.pool.name))
        face = (
            None
            if first is None
            else pool_layout.get_layout(device.pool).faces.get(device.device.name)
        )
        if first is None or face is None:
            return None
        return node_capacity.device_usage(face, takes, first + face.gpu)

    def candidate(self, usages: Iterable[base.Usage]) -> base.Candidate:
        """Return the node with some usage."""
        requests, all_usages = self.pod.requests, tuple(usages)
        after = self.capacity.without(all_usages, requests.get("cpu", 0), requests.get("memory", 0))
        return base.Candidate(self.node, self.capacity, after, all_usages)


def scoring_context(
    view: snapshot.Snapshot, node: ids.NodeName, capacity: base.NodeCapacity, pod: pods.Pod
) -> ScoringContext:
    """Return the context of a node with a free capacity."""
    first: dict[snapshot.PoolKey, int] = {}
    gpus = 0
    for share in view.reachable_pools(node):
        if vocabulary.is_gpu_pool(view, share.pool):
            first[share.pool.driver, share.pool.name] = gpus
            gpus += len(pool_layout.get_layout(share.pool).idle_gpus)
    return ScoringContext(node, capacity, pod, first)


class OptionSearch:
    """Options to serve a workload on one node, and on all equivalent ones.

    Results that do not depend on the rest of a node are computed once: equivalent devices, and
    whether a choice of them is a solution.
    """

    def __init__(self, problem: search.Problem, first: ScoringContext, budget: int | None) -> None:
        """Create the search for a node (`first`); at most `budget` devices are tried per option."""
        self._problem = problem
        self._context = first
        self._budget = budget
        self._by_candidates: dict[int, list[_Option]] = {}
        self._tracker = counters.CounterTracker(problem.remaining, problem.devices)
        self._solutions: dict[Hashable, search.Solved | search.Unsolved] = {}

    @functools.cached_property
    def _gpu_classes(self) -> tuple[int, ...]:
        """A number per GPU, the same for interchangeable ones."""
        capacity = self._context.capacity
        return gpu_links.gpu_classes(capacity.gpus, capacity.topology)

    @property
    def _is_short(self) -> bool:
        """Return whether a request has fewer candidates than it needs, whatever policies prefer."""
        return any(
            all(len(options.indexes) < options.count for options in alternatives)
            for alternatives in self._problem.candidates
        )

    def solve(
        self, scene: ScoringContext, policy_chain: ranking.PolicyChain
    ) -> search.Solved | search.Unsolved:
        """Return the best solution."""
        all_candidates = self._problem.candidates
        has_preference = policy_chain.has_policies or any(
            option.by_need for alternatives in all_candidates for option in alternatives
        )
        if has_preference and not self._is_short:
            for restricted in self._best_first(_Order(scene, policy_chain)):
                solution = self._first_device(restricted) or self._search(restricted)
                if isinstance(solution, search.Solved):
                    return solution
        return self._search(all_candidates)

    def _first_device(
        self, restricted: Sequence[Sequence[candidates.RequestCandidates]]
    ) -> search.Solved | None:
        """Return the solution if the first device is all that a workload needs, and is free."""
        options = restricted[0][0]
        if len(restricted) > 1 or options.count != 1 or self._problem.constraints:
            return None
        index, claim = options.indexes[0], self._problem.claim_indexes[0]
        if not self._tracker.can_allocate(index, options, claim):
            return None
        return search.Solved((search.Choice(0, options, index),), steps=1)

    def _search(
        self, all_candidates: Sequence[Sequence[candidates.RequestCandidates]]
    ) -> search.Solved | search.Unsolved:
        key = tuple(
            (id(option.subrequest), tuple(option.indexes))
            for alternatives in all_candidates
            for option in alternatives
        )
        if key not in self._solutions:
            problem = replace(self._problem, candidates=all_candidates)
            self._solutions[key] = search.solve(problem, self._budget)
        return self._solutions[key]

    def _best_first(
        self, order: "_Order"
    ) -> Iterator[Sequence[Sequence[candidates.RequestCandidates]]]:
        """Yield the candidates with fewer devices, or in another order, best first."""
        all_candidates = self._problem.candidates
        flat = [options for alternatives in all_candidates for options in alternatives]
        if not flat or any(
            entry.selector_errors or entry.subrequest.request.all_devices for entry in flat
        ):
            return
        if len(all_candidates) == 1:
            for options in all_candidates[0]:
                for entry in self._restricted(options, order):
                    yield [[entry]]
        elif all(entry.indexes == flat[0].indexes for entry in flat) and self._is_whole(flat[0]):
            for indexes in order.sorted_indexes(
                self._sets(flat[0], sum(alternatives[0].count for alternatives in all_candidates))
            ):
                yield [
                    [_restrict(entry, indexes) for entry in alternatives]
                    for alternatives in all_candidates
                ]
        else:
            yield [
                [_restrict(entry, self._sorted(entry, order)) for entry in alternatives]
                for alternatives in all_candidates
            ]

    def _restricted(
        self, options: candidates.RequestCandidates, order: "_Order"
    ) -> Iterator[candidates.RequestCandidates]:
        """Yield the candidates of one subrequest with different devices."""
        if options.count == 1:
            orders = order.sorted_indexes(self._singles(options), by_need=options.by_need)
        elif self._is_whole(options):
            orders = order.sorted_indexes(self._sets(options, options.count))
        else:
            orders = iter([self._sorted(options, order)])
        return (_restrict(options, indexes) for indexes in orders)

    def _singles(self, options: candidates.RequestCandidates) -> list["_Option"]:
        """Return single devices, equivalent ones together."""
        cached = self._by_candidates.get(id(options))
        if cached is not None:
            return cached
        groups: dict[Hashable, list[int]] = {}
        takens: dict[Hashable, base.Usage | None] = {}
        for index in options.indexes:
            taken = self._usage(options, index)
            kind = None if taken is None else taken._replace(gpu=self._gpu_classes[taken.gpu])
            groups.setdefault(kind, []).append(index)
            takens.setdefault(kind, taken)
        merged = [_Option(places, (takens[kind],)) for kind, places in groups.items()]
        self._by_candidates[id(options)] = merged
        return merged

    def _sorted(self, options: candidates.RequestCandidates, order: "_Order") -> list[int]:
        indexes = order.sorted_indexes(self._singles(options), by_need=options.by_need)
        return [*itertools.chain.from_iterable(indexes)]

    def _sets(self, options: candidates.RequestCandidates, count: int) -> list["_Option"]:
        """Return sets of whole GPUs, one per equivalence class."""
        cached = self._by_candidates.get(id(options))
        if cached is not None:
            return cached
        groups: dict[int, list[int]] = {}
        for index in options.indexes:
            taken = self._usage(options, index)
            if taken is not None:
                groups.setdefault(self._gpu_classes[taken.gpu], []).append(index)
        drawn = itertools.islice(_group_draws([*groups.values()], count), _MAX_SETS)
        merged = [
            _Option(sorted(places), tuple(self._usage(options, index) for index in places))
            for places in drawn
        ]
        self._by_candidates[id(options)] = merged
        return merged

    def _is_whole(self, options: candidates.RequestCandidates) -> bool:
        """Return whether each device is all of a GPU of its own."""
        usages = [self._usage(options, index) for index in options.indexes]
        return len({usage.gpu for usage in usages if usage and usage.mode == base.WHOLE}) == len(
            usages
        )

    def _usage(
        self, request_options: candidates.RequestCandidates, index: int
    ) -> base.Usage | None:
        return self._context.usage(
            self._problem.devices[index], request_options.consumption.get(index, {})
        )


class _Option(NamedTuple):
    """Devices, by their indexes, and their usage."""

    indexes: list[int]
    usages: tuple[base.Usage | None, ...]


class _Scored(NamedTuple):
    """The indexes of an option, and the node with it."""

    indexes: list[int]
    candidate: base.Candidate


@dataclass(frozen=True, slots=True)
class _Order:
    """Order of options on a node, best first; of equals the lowest indexes."""

    context: ScoringContext
    policies: ranking.PolicyChain

    def sorted_indexes(
        self, options: Sequence[_Option], *, by_need: bool = False
    ) -> Iterator[list[int]]:
        """Yield the indexes of options."""
        if len(options) == 1:
            yield options[0].indexes
            return
        groups: dict[int, list[_Scored]] = {}
        for option in options:
            usages = (taken for taken in option.usages if taken is not None)
            scored = _Scored(option.indexes, self.context.candidate(usages))
            groups.setdefault(total_memory(option.usages) if by_need else 0, []).append(scored)
        for memory in sorted(groups):
            yield from self._by_policy(0, groups[memory])

    def _by_policy(self, policy: int, options: Sequence[_Scored]) -> Iterator[list[int]]:
        """Yield by policies from an index on: a later one scores only options equal so far."""
        if len(options) == 1 or policy == self.policies.count:
            yield from sorted(scored.indexes for scored in options)
            return
        groups: dict[int, list[_Scored]] = {}
        for scored in options:
            groups.setdefault(self.policies.score(policy, scored.candidate), []).append(scored)
        for score in sorted(groups, reverse=True):
            yield from self._by_policy(policy + 1, groups[score])


def total_memory(usages: Iterable[base.Usage | None]) -> int:
    """Return the bytes of GPU memory used."""
    return sum(usage.memory for usage in usages if usage is not None)


def _restrict(
    options: candidates.RequestCandidates, places: Sequence[int]
) -> candidates.RequestCandidates:
    return candidates.RequestCandidates(
        options.subrequest,
        options.by_need,
        [*places],
        options.selector_errors,
        options.consumption,
        options.rejected,
        options.unavailable,
        options.error,
    )


def _group_draws(groups: Sequence[Sequence[int]], count: int) -> Iterator[list[int]]:
    """Yield selections of `count` members in all, the first ones of each group."""
    if not groups:
        if count == 0:
            yield []
        return
    spare = sum(map(len, groups[1:]))
    for taken in range(min(len(groups[0]), count), max(count - spare, 0) - 1, -1):
        for rest in _group_draws(groups[1:], count - taken):
            yield [*groups[0][:taken], *rest]
