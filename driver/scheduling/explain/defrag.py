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

MAX_STEPS = 2_000_000
"""About forty seconds."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is evicted, and where its next one goes: a NoFit where it has to wait."""

    holder: holders.DeviceHolder
    result: allocator_types.Placement | allocator_types.Unschedulable

    @property
    def is_pending(self) -> bool:
        """Whether there is no place for it."""
        return isinstance(self.result, allocator_types.Unschedulable)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the workload gets once these pods are gone; no moves: it fits as it is.

    `least`: no plan is better. Otherwise the search ended before that was known.
    """

    placement: allocator_types.Placement
    moves: tuple[Move, ...] = ()
    is_optimal: bool = True

    @property
    def pending_moves(self) -> tuple[Move, ...]:
        """The moves of pods for which there is no place."""
        return tuple(one for one in self.moves if one.is_pending)


@dataclass(frozen=True, slots=True)
class NoPlan:
    """There is none. `refused` is why the workload does not fit now; `all_seen`: nothing would do.

    `candidates` is how many pods may be moved at all.
    """

    unschedulable: allocator_types.Unschedulable
    candidates: int
    is_exhaustive: bool


@dataclass(frozen=True, slots=True)
class DefragInput:
    """A view, and how its pods and claims are found by key."""

    view: snapshot.Snapshot
    find_claim: holders.FindClaim
    find_pod: holders.FindPod
    allocator_settings: settings.Settings


def immovable_reason(pod: pods.Pod) -> str:
    """Why a pod is not to be moved, in words; "" where it may be."""
    if not pod.movable:
        return "did not opt in"
    if pod.owner is None:
        return "nobody would make it again"
    if holders.returns_to_node(pod):
        return f"its {pod.owner.kind} would make it again on the same node"
    if pod.node is None:
        return "is not bound to a node yet"
    return "is leaving already" if pod.deleting else ""


def make_plan(
    world: DefragInput, workload: allocator_types.Workload, most: int = MAX_STEPS
) -> Plan | NoPlan:
    """The plan with the fewest pods that have to wait, then that of the lowest price."""
    answer = dra_allocator.allocate(world.view, workload, world.allocator_settings)
    if isinstance(answer, allocator_types.Placement):
        return Plan(answer)
    asked = _workload_query(world, workload)
    candidates = _Candidates(world)
    if asked is None:
        return NoPlan(answer, 0, is_exhaustive=True)
    meter = step_budget.StepBudget(most)
    search = victim_search.Search(world.view, asked, cost.FewestPods(world.view), meter)
    best: _RankedPlan | None = None
    for found in _ranked_plans(world, search, candidates, workload):
        best = found if best is None or found.rank < best.rank else best
        if best.rank[0] == 0:
            candidates.cost_limit = best.rank[1]
    if best is None:
        return NoPlan(answer, candidates.count, is_exhaustive=not meter.is_spent)
    return replace(best.plan, is_optimal=not meter.is_spent)


def _workload_query(
    world: DefragInput, workload: allocator_types.Workload
) -> step_budget.WorkloadQuery | None:
    """By the policies that decide about the workload, so that devices are chosen as later."""
    asked = step_budget.workload_query(world.view, workload, world.allocator_settings)
    if asked is None:
        return None
    judge = policy_selector.PolicySelector(world.allocator_settings.policy_chain).select(
        world.view, asked.requests
    )
    if isinstance(judge, allocator_types.Unschedulable):
        return None
    return replace(asked, allocator_settings=replace(asked.allocator_settings, policy_chain=judge))


@dataclass(frozen=True, slots=True)
class _RankedPlan:
    plan: Plan
    rank: tuple[int, cost.Cost]
    """How many wait, then the price."""


class _Candidates:
    """The pods that may be moved, by node; `under` is the price that still matters."""

    def __init__(self, world: DefragInput) -> None:
        people = holders.HolderIndex(world.view, world.find_claim, world.find_pod)
        self.by_node: Mapping[ids.NodeName, Sequence[holders.DeviceHolder]] = {
            name: [one for one in people.node_holders(name) if not immovable_reason(one.pod)]
            for name in sorted(world.view.nodes)
        }
        self.cost_limit: cost.Cost | None = None

    @property
    def count(self) -> int:
        return len({one.key for found in self.by_node.values() for one in found})


def _ranked_plans(
    world: DefragInput,
    search: victim_search.Search,
    candidates: _Candidates,
    workload: allocator_types.Workload,
) -> Iterator[_RankedPlan]:
    """Of each node the sets of pods by price, until all of one find a place."""
    for name, there in candidates.by_node.items():
        if name in workload.avoided_nodes:
            continue
        node = world.view.nodes[name]
        for freed in victim_search.victim_sets(search, node, there, candidates.cost_limit):
            without = without_pods.WithoutPods(world.view, freed.victims)
            picks = search.query.assignments(without, node, freed.fit)
            placement = allocator_types.Placement(name, picks, "")
            search.budget.spend(step_budget.NODE_STEPS * len(world.view.nodes))
            plan = Plan(placement, relocate(world, workload, placement, freed.victims))
            yield _RankedPlan(plan, (len(plan.pending_moves), freed.cost))
            if not plan.pending_moves:
                break


def relocate(
    world: DefragInput,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
    leaving: Sequence[holders.DeviceHolder],
) -> tuple[Move, ...]:
    """Where those who leave go once the workload is there: the largest first, one by one."""
    view = overlay.DecisionOverlay(without_pods.WithoutPods(world.view, leaving))
    made = allocation_result.build_allocations(view, workload, placement, timestamp="")
    view.apply(snapshot.InFlight(workload.pod, placement.node, made))
    price = cost.FewestPods(world.view)
    settling = _Relocation(world, view, holders.freed_claims(leaving))
    order = sorted(leaving, key=lambda one: (-price.cost([one])[1], one.key))
    return tuple(Move(one, settling.relocate(one)) for one in order)


class _Relocation:
    def __init__(
        self, world: DefragInput, view: overlay.DecisionOverlay, free: frozenset[ids.Key]
    ) -> None:
        self._world = world
        self._view = view
        self._free = free
        self._allocated: dict[ids.Key, claims.Claim] = {}
        self._allocator = dra_allocator.Allocator(world.allocator_settings)
        # A pod without claims goes to nodes without GPUs too.
        self._any_node = dra_allocator.Allocator(
            replace(world.allocator_settings, rules=settings.NoRules())
        )

    def relocate(
        self, tenant: holders.DeviceHolder
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
        deciding = self._allocator if again.open_claims else self._any_node
        answer = deciding.decide(self._view, again)
        if isinstance(answer, allocator_types.Placement):
            made = allocation_result.build_allocations(self._view, again, answer, timestamp="")
            self._view.apply(snapshot.InFlight(pod, answer.node, made))
            for one in again.open_claims:
                self._allocated[one.key] = replace(one, allocation=made[one.key])
        return answer

    def _claim(self, key: ids.Key) -> claims.Claim | None:
        """As it is then: free, unless another who left has it again."""
        claim = self._allocated.get(key) or self._world.find_claim(key)
        if claim is not None and key in self._free and key not in self._allocated:
            return replace(claim, allocation=None, consumers=())
        return claim
