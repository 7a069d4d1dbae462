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
    asked = step_budget.workload_query(view, world.asked, snapshots.DECIDING)
    assert asked is not None
    judge = policy_selector.PolicySelector(snapshots.DECIDING.policy_chain).select(
        view, asked.requests
    )
    assert not isinstance(judge, allocator_types.Unschedulable)
    asked = replace(asked, allocator_settings=replace(asked.allocator_settings, policy_chain=judge))
    fit = asked.evaluate(view, node)
    assert isinstance(fit, node_result.Fit)
    picks = asked.assignments(view, node, fit)
    drawing.put(
        view, drawing.written(view, world.asked, allocator_types.Placement(node.name, picks, ""))
    )
    price = explain_cost.FewestPods(world.view)
    free = holders.freed_claims(leaving)
    again = dict(world.held)
    found: dict[str, ids.NodeName | None] = {}
    for one in sorted(leaving, key=lambda one: (-price.cost([one])[1], one.key)):
        mine = [again[key] for key in one.pod.claim_keys]
        todo = [c for c in mine if c.key in free and again[c.key] is world.held[c.key]]
        rest = tuple(c for c in mine if c not in todo)
        pod = replace(one.pod, node=None)
        asks = allocator_types.Workload(pod, tuple(replace(c, allocation=None) for c in todo), rest)
        found[one.key] = _come_again(view, again, asks)
    return [found[key] for key in sorted(found)]


def _come_again(
    view: cluster_state.ClusterState,
    again: dict[ids.Key, claims.Claim],
    asks: allocator_types.Workload,
) -> ids.NodeName | None:
    rules = snapshots.DECIDING if asks.open_claims else replace(snapshots.DECIDING, rules=NO_RULES)
    answer = dra_allocator.allocate(view, asks, rules)
    if not isinstance(answer, allocator_types.Placement):
        return None
    made = allocation_result.build_allocations(view, asks, answer, "")
    for claim in asks.open_claims:
        again[claim.key] = replace(claim, allocation=made[claim.key])
        view.set_claim(claim.key, again[claim.key])
    view.set_pod(asks.pod.key, replace(asks.pod, node=answer.node))
    return answer.node


@settings(max_examples=100)
@given(populated.movable())
def test_a_plan_is_the_best_of_all_plans(world: populated.World) -> None:
    """Fewest that wait, then fewest pods, then least memory; held against trying all."""
    view = world.view
    before = drawing.shown(view)
    plan = defrag.make_plan(moved(world), world.asked, ENOUGH)
    assert drawing.shown(view) == before
    if isinstance(plan, defrag.Plan) and not plan.moves:
        assert populated.fits(view, world.asked, view.nodes[plan.placement.node])
        return
    every = []
    for name, node in sorted(view.nodes.items()):
        there = [
            one
            for one in world.people(view).node_holders(name)
            if not defrag.immovable_reason(one.pod)
        ]
        for cost, leaving in populated.every_way(world, node, there):
            where = settled(world, node, leaving)
            every.append((where.count(None), cost, name, [one.key for one in leaving], where))
    if isinstance(plan, defrag.NoPlan):
        assert not every
        return
    by_key = {one.holder.key: one.result for one in plan.moves}
    keys = sorted(by_key)
    goes = [getattr(by_key[key], "node", None) for key in keys]
    leaving = tuple(one.holder for one in plan.moves)
    cost = explain_cost.FewestPods(view).cost(leaving)
    told = (len(plan.pending_moves), cost, plan.placement.node, keys, goes)
    assert told == min(every, key=lambda one: one[:4])
    assert not any(defrag.immovable_reason(one.pod) for one in leaving)
