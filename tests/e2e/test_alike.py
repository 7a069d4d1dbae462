"""The same claims end alike under both allocators: `--allocator=scheduler` and `=controller`.

Two nodes of one cluster, of equal machines, one a side; scenarios/*.yaml say what is asked. The
pods of a scenario run or wait on both alike, and what stands in the claims is the same down to the
devices, their shares and their configuration. Our controllers have no placement policy meanwhile:
kube-scheduler has none.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from driver.kube import client
from hack.cluster import api
from tests.e2e import alike, playground

THEIRS, OURS = "al-s", "al-c"
SCENARIOS = list(alike.scenarios())
SMOKE = {
    "two GPUs of one request",
    "two halves of one GPU",
    "a share of 20Gi",
    "none of the alternatives",
}


@pytest.fixture(scope="module")
def sides(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[tuple[alike.Side, alike.Side]]:
    shared = ("--share-domain=cluster",)
    grounds = [playground.Playground.open(cluster, kube) for _ in range(2)]
    meanwhile = ExitStack()
    try:
        for controller in cluster.controllers():
            meanwhile.enter_context(cluster.with_flags(controller, "--policies="))
        playground.add_node(cluster, THEIRS, allocator="scheduler", plugin_flags=shared)
        playground.add_node(cluster, OURS, allocator="controller", plugin_flags=shared)
        theirs, ours = grounds
        yield alike.Side(theirs, THEIRS, ours=False), alike.Side(ours, OURS, ours=True)
    finally:
        for ground in grounds:
            ground.close()
        for name in (THEIRS, OURS):
            if name in cluster.nodes():
                cluster.remove_node(name)
        meanwhile.close()


def test_there_are_sixty_scenarios_at_least() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 60


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            scenario, id=scenario.name, marks=[pytest.mark.smoke] if scenario.name in SMOKE else []
        )
        for scenario in SCENARIOS
    ],
)
def test_both_allocators_come_to_the_same(
    scenario: alike.Scenario, sides: tuple[alike.Side, alike.Side]
) -> None:
    theirs, ours = alike.run(scenario, sides)
    assert ours == theirs
    assert theirs["pods"] == {
        pod["name"]: pod["expect"] for pod in scenario.pods if pod["expect"] != "Succeeded"
    }
