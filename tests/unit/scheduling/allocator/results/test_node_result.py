from dataclasses import replace

from driver import ids
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.results import node_result, result_cache
from driver.scheduling.snapshot import cluster_state
from tests.support import allocation, snapshots
from tests.support.builders import objects

NAMES = [ids.NodeName(f"node-{name}") for name in "abcd"]


def fleet() -> cluster_state.ClusterState:
    """Nodes that are alike two by two: of one GPU in use, and of none."""
    slices = [objects.a_slice(name, 4) for name in NAMES]
    held = [snapshots.holding(f"x-{name}", name, "gpu-1") for name in NAMES[2:]]
    return snapshots.view(*slices, taken=held)


def question(view: cluster_state.ClusterState, policies: str = "pack") -> node_result.NodeQuery:
    claim = objects.claim("c", objects.a_request("gpu", 2))
    workload = allocation.workload(claim)
    wants = allocator_requests.parse_requests(view, workload.open_claims)
    assert not isinstance(wants, allocator_types.Unschedulable)
    assert not node_signature.depends_on_uuids(view, workload.open_claims, wants)
    deciding = replace(snapshots.DECIDING, policy_chain=ranking.parse_policies(policies))
    capacity_cache = node_capacity.NodeCapacityCache()
    capacity_cache.refresh(view)
    verdicts = deciding.rules.for_workload(view, workload)
    return node_result.NodeQuery(view, capacity_cache, workload, wants, deciding, verdicts)


def fit(
    view: cluster_state.ClusterState,
    signature_results: result_cache.SignatureResults | None,
    name: ids.NodeName,
) -> node_result.Fit:
    evaluate_devices = None if signature_results is None else signature_results.get
    evaluated = node_result.evaluate(question(view), view.nodes[name], evaluate_devices)
    assert isinstance(evaluated, node_result.Fit)
    return evaluated


def test_equivalent_nodes_share_one_result_and_use_their_own_devices() -> None:
    view, signature_results = fleet(), result_cache.SignatureResults()
    for name in NAMES:
        alone, together = fit(view, None, name), fit(view, signature_results, name)
        assert together.rank_key == alone.rank_key
        assert together.candidate.after == alone.candidate.after
        placement = node_result.placement(question(view), view.nodes[name], together)
        assert placement == node_result.placement(question(view), view.nodes[name], alone)
        assert {pick.device.pool for pick in placement.assignments} == {name}
    assert fit(view, signature_results, NAMES[0]) is fit(view, signature_results, NAMES[1])


def test_of_more_results_than_a_cache_holds_the_oldest_is_computed_again() -> None:
    view = fleet()
    idle, in_use = NAMES[0], NAMES[2]
    both, newest = (result_cache.SignatureResults(most=most) for most in (2, 1))
    first = {cached: fit(view, cached, idle) for cached in (both, newest)}
    for cached in (both, newest):
        fit(view, cached, in_use)
    assert fit(view, both, idle) is first[both]
    again = fit(view, newest, idle)
    assert again is not first[newest]
    assert again.rank_key == first[newest].rank_key
    assert (both.size, newest.size) == (2, 1)


def test_device_options_are_cached_across_policies() -> None:
    view, chances = fleet(), result_cache.DeviceOptionsCache()
    packed, spread = (
        result_cache.SignatureResults("shape", chances),
        result_cache.SignatureResults("shape", chances),
    )
    for policies, signature_results in (("pack", packed), ("spread", spread)):
        for name in NAMES:
            asking = question(view, policies)
            evaluated = node_result.evaluate(asking, view.nodes[name], signature_results.get)
            assert isinstance(evaluated, node_result.Fit)
            alone = node_result.evaluate(asking, view.nodes[name])
            assert isinstance(alone, node_result.Fit)
            assert evaluated.rank_key == alone.rank_key


def test_chances_that_were_not_used_for_long_are_found_again() -> None:
    view, chances = fleet(), result_cache.DeviceOptionsCache(most=4)
    asking = question(view)

    def options(shape: str, name: ids.NodeName) -> object:
        signature = asking.capacities.signature(view, view.nodes[name])
        assert signature is not None
        return chances.get(shape, signature, asking, view.nodes[name])

    first = options("a", NAMES[0])
    assert options("a", NAMES[0]) is first
    options("b", NAMES[2])
    assert options("a", NAMES[0]) is not first


def test_a_node_whose_devices_changed_since_answers_as_it_is_now() -> None:
    view = fleet()
    allocator = dra_allocator.Allocator(snapshots.DECIDING)
    for number in range(6):
        claim = objects.claim(f"c-{number}", objects.a_request("gpu", 2))
        workload = allocation.workload(claim)
        decision = allocator.decide(view, workload)
        alone = dra_allocator.allocate(view, workload, snapshots.DECIDING)
        assert allocation.devices(decision) == allocation.devices(alone)
        placed = allocation.placed(decision)
        taken = snapshots.holding(claim.name, placed.node, *allocation.devices(decision))
        view.set_claim(taken.key, taken)
