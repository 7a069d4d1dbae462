"""Plans of what to move: held against trying every set of pods on small clusters."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import settings as deciding
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import policy_selector
from driver.scheduling.allocator.results import node_result
from driver.scheduling.explain import cost as explain_cost
from driver.scheduling.explain import defrag, holders, step_budget
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing, populated
from tests.support import snapshots

ENOUGH = 1_000_000
NO_RULES = deciding.NoRules()


def moved(world: populated.World) -> defrag.DefragInput:
    return defrag.DefragInput(world.view, world.held.get, world.known.get, snapshots.DECIDING)


def settled(
    world: populated.World, node: nodes.Node, leaving: Sequence[holders.DeviceHolder]
) -> list[ids.NodeName | None]:
    """Return where those who leave go in a picture made anew, by key; None: nowhere."""
    view = world.without(leaving)
    workload_query = step_budget.workload_query(view, world.asked, snapshots.DECIDING)
    assert workload_query is not None
    judge = policy_selector.PolicySelector(snapshots.DECIDING.policy_chain).select(
        view, workload_query.requests
    )
    assert not isinstance(judge, allocator_types.Unschedulable)
    workload_query = replace(
        workload_query,
        allocator_settings=replace(workload_query.allocator_settings, policy_chain=judge),
    )
    fit = workload_query.evaluate(view, node)
    assert isinstance(fit, node_result.Fit)
    placement = workload_query.placement(view, node, fit)
    drawing.put(view, drawing.written(view, world.asked, placement))
    price = explain_cost.FewestPods(world.view)
    free = holders.freed_claims(leaving)
    again = dict(world.held)
    node_names: dict[str, ids.NodeName | None] = {}
    for holder in sorted(
        leaving, key=lambda device_holder: (-price.cost([device_holder])[1], device_holder.key)
    ):
        mine = [again[key] for key in holder.pod.claim_keys]
        todo = [c for c in mine if c.key in free and again[c.key] is world.held[c.key]]
        rest = tuple(c for c in mine if c not in todo)
        pod = replace(holder.pod, node=None)
        asks = allocator_types.Workload(pod, tuple(replace(c, allocation=None) for c in todo), rest)
        node_names[holder.key] = _come_again(view, again, asks)
    return [node_names[key] for key in sorted(node_names)]


def _come_again(
    view: cluster_state.ClusterState,
    again: dict[ids.Key, claims.Claim],
    asks: allocator_types.Workload,
) -> ids.NodeName | None:
    rules = snapshots.DECIDING if asks.open_claims else replace(snapshots.DECIDING, rules=NO_RULES)
    answer = dra_allocator.allocate(view, asks, rules)
    if not isinstance(answer, allocator_types.Placement):
        return None
    allocations = allocation_result.build_allocations(view, asks, answer, "")
    for claim in asks.open_claims:
        again[claim.key] = replace(claim, allocation=allocations[claim.key])
        view.set_claim(claim.key, again[claim.key])
    view.set_pod(asks.pod.key, replace(asks.pod, node=answer.node))
    return answer.node


@settings(max_examples=100)
@given(populated.movable())
def test_a_plan_is_the_best_of_all_plans(world: populated.World) -> None:
    """Fewest that wait, then fewest pods, then least memory; held against trying all."""
    view = world.view
    previous = drawing.shown(view)
    plan = defrag.make_plan(moved(world), world.asked, ENOUGH)
    assert drawing.shown(view) == previous
    if isinstance(plan, defrag.Plan) and not plan.moves:
        assert populated.fits(view, world.asked, view.nodes[plan.placement.node])
        return
    every = []
    for name, node in sorted(view.nodes.items()):
        device_holders = [
            node_holder
            for node_holder in world.people(view).node_holders(name)
            if not defrag.immovable_reason(node_holder.pod)
        ]
        for cost, leaving in populated.every_way(world, node, device_holders):
            node_names = settled(world, node, leaving)
            every.append(
                (
                    node_names.count(None),
                    cost,
                    name,
                    [device_holder.key for device_holder in leaving],
                    node_names,
                )
            )
    if isinstance(plan, defrag.NoPlan):
        assert not every
        return
    by_key = {move.holder.key: move.result for move in plan.moves}
    keys = sorted(by_key)
    goes = [getattr(by_key[key], "node", None) for key in keys]
    leaving = tuple(move.holder for move in plan.moves)
    cost = explain_cost.FewestPods(view).cost(leaving)
    values = (len(plan.pending_moves), cost, plan.placement.node, keys, goes)
    assert values == min(every, key=lambda values: values[:4])
    assert not any(defrag.immovable_reason(device_holder.pod) for device_holder in leaving)
