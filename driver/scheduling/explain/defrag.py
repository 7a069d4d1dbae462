"""Plans to move pods so that a workload fits: few, each with a new placement. Pure.

Only pods that opted in and that a controller would recreate are moved, and only those that block
the workload: none of them may stay.
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
"""About 40 s."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod to evict, and the placement of its replacement: Unschedulable if it has to wait."""

    holder: holders.DeviceHolder
    result: allocator_types.Placement | allocator_types.Unschedulable

    @property
    def is_pending(self) -> bool:
        """True if its replacement has to wait."""
        return isinstance(self.result, allocator_types.Unschedulable)


@dataclass(frozen=True, slots=True)
class Plan:
    """Placement of the workload once these pods are evicted; no moves: it fits as it is.

    `is_optimal`: no plan is better. Otherwise the search ended before that was known.
    """

    placement: allocator_types.Placement
    moves: tuple[Move, ...] = ()
    is_optimal: bool = True

    @property
    def pending_moves(self) -> tuple[Move, ...]:
        """Moves of pods whose replacements have to wait."""
        return tuple(move for move in self.moves if move.is_pending)


@dataclass(frozen=True, slots=True)
class NoPlan:
    """No plan. `unschedulable` is why the workload does not fit now.

    `is_exhaustive`: no set of moves would help. `candidates` is the number of movable pods.
    """

    unschedulable: allocator_types.Unschedulable
    candidates: int
    is_exhaustive: bool


@dataclass(frozen=True, slots=True)
class DefragInput:
    """A snapshot, and lookups of its pods and claims by key."""

    view: snapshot.Snapshot
    find_claim: holders.FindClaim
    find_pod: holders.FindPod
    allocator_settings: settings.Settings


def immovable_reason(pod: pods.Pod) -> str:
    """Return why a pod must not be moved, in words; "" if it may."""
    if not pod.movable:
        return "did not opt in"
    if pod.owner is None:
        return "it has no controller"
    if holders.returns_to_node(pod):
        return f"its {pod.owner.kind} would recreate it on the same node"
    if pod.node is None:
        return "is not bound to a node yet"
    return "is leaving already" if pod.deleting else ""


def make_plan(
    world: DefragInput, workload: allocator_types.Workload, most: int = MAX_STEPS
) -> Plan | NoPlan:
    """Return the plan with the fewest pods that have to wait, then that of the lowest cost."""
    result = dra_allocator.allocate(world.view, workload, world.allocator_settings)
    if isinstance(result, allocator_types.Placement):
        return Plan(result)
    query = _workload_query(world, workload)
    candidates = _Candidates(world)
    if query is None:
        return NoPlan(result, 0, is_exhaustive=True)
    budget = step_budget.StepBudget(most)
    search = victim_search.Search(world.view, query, cost.FewestPods(world.view), budget)
    best: _RankedPlan | None = None
    for ranked in _ranked_plans(world, search, candidates, workload):
        best = ranked if best is None or ranked.rank < best.rank else best
        if best.rank[0] == 0:
            candidates.cost_limit = best.rank[1]
    if best is None:
        return NoPlan(result, candidates.count, is_exhaustive=not budget.is_spent)
    return replace(best.plan, is_optimal=not budget.is_spent)


def _workload_query(
    world: DefragInput, workload: allocator_types.Workload
) -> step_budget.WorkloadQuery | None:
    """Return the query with the workload's own policies, so that devices are chosen as later."""
    query = step_budget.workload_query(world.view, workload, world.allocator_settings)
    if query is None:
        return None
    policy_chain = policy_selector.PolicySelector(world.allocator_settings.policy_chain).select(
        world.view, query.requests
    )
    if isinstance(policy_chain, allocator_types.Unschedulable):
        return None
    return replace(
        query, allocator_settings=replace(query.allocator_settings, policy_chain=policy_chain)
    )


@dataclass(frozen=True, slots=True)
class _RankedPlan:
    plan: Plan
    rank: tuple[int, cost.Cost]
    """Number of pending replacements, then the cost."""


class _Candidates:
    """Movable pods, by node; `cost_limit` is the cost below which a plan still matters."""

    def __init__(self, world: DefragInput) -> None:
        holder_index = holders.HolderIndex(world.view, world.find_claim, world.find_pod)
        self.by_node: Mapping[ids.NodeName, Sequence[holders.DeviceHolder]] = {
            name: [
                holder
                for holder in holder_index.node_holders(name)
                if not immovable_reason(holder.pod)
            ]
            for name in sorted(world.view.nodes)
        }
        self.cost_limit: cost.Cost | None = None

    @property
    def count(self) -> int:
        return len(
            {holder.key for node_candidates in self.by_node.values() for holder in node_candidates}
        )


def _ranked_plans(
    world: DefragInput,
    search: victim_search.Search,
    candidates: _Candidates,
    workload: allocator_types.Workload,
) -> Iterator[_RankedPlan]:
    """Yield plans by node and cost, until one leaves no pod waiting."""
    for name, node_candidates in candidates.by_node.items():
        if name in workload.avoided_nodes:
            continue
        node = world.view.nodes[name]
        for victim_set in victim_search.victim_sets(
            search, node, node_candidates, candidates.cost_limit
        ):
            without = without_pods.WithoutPods(world.view, victim_set.victims)
            placement = search.query.placement(without, node, victim_set.fit)
            search.budget.spend(step_budget.NODE_STEPS * len(world.view.nodes))
            plan = Plan(placement, relocate(world, workload, placement, victim_set.victims))
            yield _RankedPlan(plan, (len(plan.pending_moves), victim_set.cost))
            if not plan.pending_moves:
                break


def relocate(
    world: DefragInput,
    workload: allocator_types.Workload,
    placement: allocator_types.Placement,
    leaving: Sequence[holders.DeviceHolder],
) -> tuple[Move, ...]:
    """Return the placements of evicted pods after the workload's, largest first, one by one."""
    view = overlay.DecisionOverlay(without_pods.WithoutPods(world.view, leaving))
    view.apply(allocation_result.build_decision(view, workload, placement))
    price = cost.FewestPods(world.view)
    relocation = _Relocation(world, view, holders.freed_claims(leaving))
    order = sorted(leaving, key=lambda holder: (-price.cost([holder])[1], holder.key))
    return tuple(Move(holder, relocation.relocate(holder)) for holder in order)


class _Relocation:
    def __init__(
        self, world: DefragInput, view: overlay.DecisionOverlay, free: frozenset[ids.Key]
    ) -> None:
        self._world = world
        self._view = view
        self._free = free
        self._allocated: dict[ids.Key, claims.Claim] = {}
        self._allocator = dra_allocator.Allocator(world.allocator_settings)
        # A pod without claims may go to nodes without GPUs too.
        self._any_node = dra_allocator.Allocator(
            replace(world.allocator_settings, rules=settings.NoRules())
        )

    def relocate(
        self, holder: holders.DeviceHolder
    ) -> allocator_types.Placement | allocator_types.Unschedulable:
        """Place a copy of the evicted pod, and apply the placement."""
        pod_claims = [self._claim(key) for key in holder.pod.claim_keys]
        existing = [claim for claim in pod_claims if claim is not None]
        pod = replace(holder.pod, node=None, nominated=None)
        again = allocator_types.Workload(
            pod,
            tuple(claim for claim in existing if claim.allocation is None),
            tuple(claim for claim in existing if claim.allocation is not None),
        )
        allocator = self._allocator if again.open_claims else self._any_node
        answer = allocator.decide(self._view, again)
        if isinstance(answer, allocator_types.Placement):
            decision = allocation_result.build_decision(self._view, again, answer)
            self._view.apply(decision)
            for claim in again.open_claims:
                allocation = decision.allocations[claim.key]
                self._allocated[claim.key] = replace(claim, allocation=allocation)
        return answer

    def _claim(self, key: ids.Key) -> claims.Claim | None:
        """Return the claim as it will be: free, unless another evicted pod has it again."""
        claim = self._allocated.get(key) or self._world.find_claim(key)
        if claim is not None and key in self._free and key not in self._allocated:
            return replace(claim, allocation=None, consumers=())
        return claim
