import pytest

from driver.resources.dra import claims
from driver.scheduling.allocator.policies import base, mix_estimator, workload_mix
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

EIGHTS = workload_mix.build_mix([(workload_mix.WorkloadShape(base.WHOLE, 8, cpu=8000), 1.0)])
NODES = 60


def fleet(*held: claims.Claim) -> cluster_state.ClusterState:
    """Nodes of eight GPUs each."""
    slices = [objects.a_slice(f"node-{index:02}") for index in range(NODES)]
    return snapshots.view(*slices, taken=held)


def pairs(count: int) -> list[claims.Claim]:
    """Claims with two GPUs each."""
    places = [(node, index) for node in range(NODES) for index in range(0, 8, 2)][:count]
    return [
        snapshots.holding(
            f"x-{node}-{index}", f"node-{node:02}", f"gpu-{index}", f"gpu-{index + 1}"
        )
        for node, index in places
    ]


def weights(mix: workload_mix.WorkloadMix) -> dict[tuple[str, int], float]:
    return {(demand.mode, demand.gpu_count): round(weight, 2) for demand, weight in mix.shapes}


def test_the_configured_mix_counts_while_usage_is_low() -> None:
    mix = mix_estimator.WorkloadMixEstimator(EIGHTS).estimate(fleet(*pairs(40)))
    assert mix.shapes == EIGHTS.shapes
    assert mix.cpu_per_gpu == 1000


def test_allocated_claims_count_beside_the_configured_mix() -> None:
    mix = mix_estimator.WorkloadMixEstimator(EIGHTS).estimate(fleet(*pairs(200)))
    assert weights(mix) == {(base.WHOLE, 8): 0.75, (base.WHOLE, 2): 0.25}


def test_the_default_cpus_per_gpu_are_its_share_of_the_node() -> None:
    assert mix_estimator.WorkloadMixEstimator(workload_mix.EMPTY_MIX).estimate(
        fleet()
    ).cpu_per_gpu == pytest.approx(1000, rel=0.12)
    assert mix_estimator.WorkloadMixEstimator(EIGHTS).estimate(fleet()).cpu_per_gpu == 1000


def test_it_follows_the_view_and_remembers_nothing_of_what_was() -> None:
    view, held = fleet(), pairs(200)
    estimator = mix_estimator.WorkloadMixEstimator(EIGHTS)
    previous = estimator.estimate(view)
    for claim in held:
        view.set_claim(claim.key, claim)
    assert weights(estimator.estimate(view)) == weights(
        mix_estimator.WorkloadMixEstimator(EIGHTS).estimate(fleet(*held))
    )
    for claim in held:
        view.set_claim(claim.key, None)
    assert estimator.estimate(view) is previous


def test_a_change_that_makes_no_difference_leaves_it_the_same_object() -> None:
    view = fleet(*pairs(200))
    estimator = mix_estimator.WorkloadMixEstimator(EIGHTS)
    previous = estimator.estimate(view)
    more = snapshots.holding("more", "node-59", "gpu-7")
    view.set_claim(more.key, more)
    assert estimator.estimate(view) is previous


def test_kinds_that_shapes_name_are_scarce_by_how_few_there_are() -> None:
    shapes = workload_mix.build_mix(
        [
            (workload_mix.WorkloadShape(base.WHOLE, 1), 0.5),
            (workload_mix.WorkloadShape(base.WHOLE, 1, products=frozenset({"T4"})), 0.25),
            (workload_mix.WorkloadShape(base.WHOLE, 1, products=frozenset({"H100", "A100"})), 0.25),
        ]
    ).shapes
    assert workload_mix.product_scarcity(shapes, {"T4": 10, "H100": 60, "A100": 30}) == {
        "T4": 2.5,
        "H100": 0.3,
        "A100": 0.3,
    }
    assert workload_mix.product_scarcity(shapes, {}) == {}


def test_pods_without_gpus_count_for_the_cpus_of_each_gpu() -> None:
    mix = workload_mix.build_mix(
        [
            (workload_mix.WorkloadShape(base.WHOLE, 1, cpu=4000), 1),
            (workload_mix.WorkloadShape(base.IDLE, 0, cpu=2000), 2),
        ]
    )
    assert mix.cpu_per_gpu == 8000


def test_nodes_without_gpus_have_no_share_in_it() -> None:
    view, estimator = fleet(), mix_estimator.WorkloadMixEstimator(workload_mix.EMPTY_MIX)
    previous = estimator.estimate(view)
    for index in range(500):
        plain = objects.node(f"plain-{index}")
        view.set_node(plain.name, plain)
    assert estimator.estimate(view) is previous
