"""Which pods to move so that a workload fits: few, and each to where it finds a place. Pure.

Only pods that opted in and that a controller would make again are moved, and only those in the
way: none of them may stay where it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, dra_allocator, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import policy_selector
from driver.scheduling.explain import cost, holders, step_budget, victim_search, without_pods
from driver.scheduling.gangs import overlay
from driver.scheduling.snapshot import snapshot

STEPS = 2_000_000
"""About forty seconds."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is evicted, and where its next one goes: a NoFit where it has to wait."""

    tenant: holders.Tenant
    again: allocator_types.Placement | allocator_types.Unschedulable

    @property
    def waits(self) -> bool:
        """Whether there is no place for it."""
        return isinstance(self.again, allocator_types.Unschedulable)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the workload gets once these pods are gone; no moves: it fits as it is.

    `least`: no plan is better. Otherwise the search ended before that was known.
    """

    placement: allocator_types.Placement
    moves: tuple[Move, ...] = ()
    least: bool = True

    @property
    def waiting(self) -> tuple[Move, ...]:
        """The moves of pods for which there is no place."""
        return tuple(one for one in self.moves if one.waits)


@dataclass(frozen=True, slots=True)
class NoPlan:
    """There is none. `refused` is why the workload does not fit now; `all_seen`: nothing would do.

    `candidates` is how many pods may be moved at all.
    """

    refused: allocator_types.Unschedulable
    candidates: int
    all_seen: bool


@dataclass(frozen=True, slots=True)
class World:
    """A view, and how its pods and claims are found by key."""

    view: snapshot.Snapshot
    find_claim: holders.FindClaim
    find_pod: holders.FindPod
    deciding: settings.Settings


def why_not(pod: pods.Pod) -> str:
    """Why a pod is not to be moved, in words; "" where it may be."""
    if not pod.movable:
        return "did not opt in"
    if pod.owner is None:
        return "nobody would make it again"
    if holders.comes_back(pod):
        return f"its {pod.owner.kind} would make it again on the same node"
    if pod.node is None:
        return "is not bound to a node yet"
    return "is leaving already" if pod.deleting else ""


def make(world: World, workload: allocator_types.Workload, most: int = STEPS) -> Plan | NoPlan:
    """The plan with the fewest pods that have to wait, then that of the lowest price."""
    answer = dra_allocator.allocate(world.view, workload, world.deciding)
    if isinstance(answer, allocator_types.Placement):
        return Plan(answer)
    asked = _asked(world, workload)
    candidates = _Candidates(world)
    if asked is None:
        return NoPlan(answer, 0, all_seen=True)
    meter = step_budget.Meter(most)
    search = victim_search.Search(world.view, asked, cost.Fewest(world.view), meter)
    best: _Weighed | None = None
    for found in _plans(world, search, candidates, workload):
        best = found if best is None or found.rank < best.rank else best
        if best.rank[0] == 0:
            candidates.under = best.rank[1]
    if best is None:
        return NoPlan(answer, candidates.count, all_seen=not meter.spent)
    return replace(best.plan, least=not meter.spent)


def _asked(world: World, workload: allocator_types.Workload) -> step_budget.Asking | None:
    """By the policies that decide about the workload, so that devices are chosen as later."""
    asked = step_budget.of(world.view, workload, world.deciding)
    if asked is None:
        return None
    judge = policy_selector.PolicySelector(world.deciding.policy_chain).select(
        world.view, asked.wants
    )
    if isinstance(judge, allocator_types.Unschedulable):
        return None
    return replace(asked, deciding=replace(asked.deciding, policy_chain=judge))


@dataclass(frozen=True, slots=True)
class _Weighed:
    plan: Plan
    rank: tuple[int, cost.Cost]
    """How many wait, then the price."""


class _Candidates:
    """The pods that may be moved, by node; `under` is the price that still matters."""

    def __init__(self, world: World) -> None:
        people = holders.Tenants(world.view, world.find_claim, world.find_pod)
        self.of: Mapping[ids.NodeName, Sequence[holders.Tenant]] = {
            name: [one for one in people.of(name) if not why_not(one.pod)]
            for name in sorted(world.view.nodes)
        }
        self.under: cost.Cost | None = None

    @property
    def count(self) -> int:
        return len({one.key for found in self.of.values() for one in found})


def _plans(
    world: World,
    search: victim_search.Search,
    candidates: _Candidates,
    workload: allocator_types.Workload,
) -> Iterator[_Weighed]:
    """Of each node the sets of pods by price, until all of one find a place."""
    for name, there in candidates.of.items():
        if name in workload.avoided_nodes:
            continue
        node = world.view.nodes[name]
        for freed in victim_search.ways(search, node, there, candidates.under):
            without = without_pods.Absence(world.view, freed.leaving)
            picks = search.asked.picks(without, node, freed.fit)
            placement = allocator_types.Placement(name, picks, "")
            search.meter.count(step_budget.NODE * len(world.view.nodes))
            plan = Plan(placement, settle(world, workload, placement, freed.leaving))
            yield _Weighed(plan, (len(plan.waiting), freed.cost))
            if not plan.waiting:
                break


def settle(
    world: World,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
    leaving: Sequence[holders.Tenant],
) -> tuple[Move, ...]:
    """Where those who leave go once the workload is there: the largest first, one by one."""
    view = overlay.Overlay(without_pods.Absence(world.view, leaving))
    made = allocation_result.build_allocations(view, workload, placement, stamped="")
    view.take(snapshot.InFlight(workload.pod, placement.node, made))
    price = cost.Fewest(world.view)
    settling = _Settling(world, view, holders.freed(leaving))
    order = sorted(leaving, key=lambda one: (-price.of([one])[1], one.key))
    return tuple(Move(one, settling.settle(one)) for one in order)


class _Settling:
    def __init__(self, world: World, view: overlay.Overlay, free: frozenset[ids.Key]) -> None:
        self._world = world
        self._view = view
        self._free = free
        self._given: dict[ids.Key, claims.Claim] = {}
        self._allocator = dra_allocator.Allocator(world.deciding)
        # A pod without claims goes to nodes without GPUs too.
        self._anywhere = dra_allocator.Allocator(replace(world.deciding, rules=settings.NoRules()))

    def settle(
        self, tenant: holders.Tenant
    ) -> allocator_types.Placement | allocator_types.Unschedulable:
        """A pod like the one that left looks for a place, and has it then."""
        found = [self._claim(key) for key in tenant.pod.claim_keys]
        there = [one for one in found if one is not None]
        pod = replace(tenant.pod, node=None, nominated=None)
        again = allocator_types.Workload(
            pod,
            tuple(one for one in there if one.allocation is None),
            tuple(one for one in there if one.allocation is not None),
        )
        deciding = self._allocator if again.open_claims else self._anywhere
        answer = deciding.decide(self._view, again)
        if isinstance(answer, allocator_types.Placement):
            made = allocation_result.build_allocations(self._view, again, answer, stamped="")
            self._view.take(snapshot.InFlight(pod, answer.node, made))
            for one in again.open_claims:
                self._given[one.key] = replace(one, allocation=made[one.key])
        return answer

    def _claim(self, key: ids.Key) -> claims.Claim | None:
        """As it is then: free, unless another who left has it again."""
        claim = self._given.get(key) or self._world.find_claim(key)
        if claim is not None and key in self._free and key not in self._given:
            return replace(claim, allocation=None, consumers=())
        return claim
