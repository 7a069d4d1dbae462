from dataclasses import replace
from typing import Any

import pytest

from driver.api import workload_mix
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator.policies import base, configured_mix, ranking
from driver.scheduling.allocator.policies import workload_mix as policy_mix
from driver.scheduling.snapshot import cluster_state
from tests.fakes import simulated_pool
from tests.support import allocation, snapshots
from tests.support.builders import objects

MACHINES = {"node-a": "dgx-a100", "node-h": "hgx-h100"}
PRODUCTS = {"A100": "NVIDIA A100-SXM4-40GB", "H100": "NVIDIA H100 80GB HBM3"}


def mixed(*entries: dict[str, Any]) -> policy_mix.WorkloadMix:
    return configured_mix.build_mix(workload_mix.read({"workloads": list(entries)}, "usual.yaml"))


@pytest.mark.parametrize(
    ("entry", "demand"),
    [
        ({"gpus": 8, "cpu": 64}, policy_mix.WorkloadShape(base.WHOLE, 8, cpu=64_000)),
        ({"face": "mps", "percent": 25}, policy_mix.WorkloadShape(base.MPS, 1, 250)),
        (
            {"face": "time-slicing", "percent": 5},
            policy_mix.WorkloadShape(base.TIME_SLICING, 1, 50),
        ),
        ({"face": "mig", "percent": 12}, policy_mix.WorkloadShape(base.MIG, 1, 120)),
        (
            {"products": ["T4"]},
            policy_mix.WorkloadShape(base.WHOLE, 1, products=frozenset({"T4"})),
        ),
        ({"gpus": 0, "cpu": "1500m"}, policy_mix.WorkloadShape(base.IDLE, 0, 0, 1500)),
    ],
)
def test_an_entry_is_the_shape_it_says(
    entry: dict[str, Any], demand: policy_mix.WorkloadShape
) -> None:
    assert mixed(entry).shapes == ((demand, 1.0),)


def test_weights_count_beside_each_other() -> None:
    mix = mixed({"gpus": 8, "weight": 3}, {"gpus": 1})
    assert [weight for _, weight in mix.shapes] == [0.75, 0.25]


def test_the_cpus_of_each_gpu_follow_pods_without_gpus_included() -> None:
    assert mixed({"gpus": 1, "cpu": 4}, {"gpus": 0, "cpu": 2, "weight": 2}).cpu_per_gpu == 8000


@pytest.fixture(scope="module")
def view() -> cluster_state.ClusterState:
    """Eight idle A100 and eight idle H100."""
    results = [
        entry
        for name, machine in MACHINES.items()
        for entry in slice_builder.render(
            simulated_pool.of_machine(name, "controller", machine),
            slice_builder.Owner(simulated_pool.node_name(name), "uid"),
            1,
        )
    ]
    return snapshots.view(*results)


@pytest.mark.parametrize(("needed", "taken"), [("A100", "node-h"), ("H100", "node-a")])
def test_a_workload_for_any_model_leaves_the_model_others_need(
    view: cluster_state.ClusterState, needed: str, taken: str
) -> None:
    usual = mixed({"gpus": 1}, {"gpus": 8, "products": [PRODUCTS[needed]], "weight": 3})
    judge = ranking.parse_policies("fragmentation", usual)
    workload = allocation.workload(objects.claim("c", objects.a_request("r", 1)))
    answer = dra_allocator.allocate(view, workload, replace(snapshots.DECIDING, policy_chain=judge))
    assert allocation.placed(answer).node == taken
