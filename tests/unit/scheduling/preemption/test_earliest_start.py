import datetime as dt
from dataclasses import replace

from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import step_budget
from driver.scheduling.preemption import earliest_start
from tests.support.builders import gangs
from tests.support.scenarios import occupied_nodes, preemptions

NOW = preemptions.NOW
HOUR = dt.timedelta(hours=1)


def kept(
    scene: preemptions.Scene, *members: allocator_types.Workload, most: int = occupied_nodes.ENOUGH
) -> earliest_start.PlannedStart | None:
    people = [pod for unit in scene.book.all_victims(scene.view).values() for pod in unit.pods]
    return earliest_start.find_earliest_start(
        scene.ask(*members), people, NOW, step_budget.StepBudget(most)
    )


def starts(planned_start: earliest_start.PlannedStart | None) -> dt.datetime | None:
    assert planned_start is not None
    return planned_start.start


def full() -> preemptions.Scene:
    """Two nodes of two GPUs; node-a is free in two hours and three, node-b in one and in four."""
    scene = preemptions.of_sizes(a=2, b=2)
    for name, node, hours in (("p", "a", 2), ("q", "a", 3), ("r", "b", 1), ("s", "b", 4)):
        most = (1 + hours) * 3600
        scene.work(name, f"node-{node}", f"gpu-{'prqs'.index(name) // 2}", max_runtime_s=most)
    return scene


def test_a_fitting_workload_starts_now() -> None:
    scene = preemptions.of_sizes(a=1)
    assert starts(kept(scene, occupied_nodes.gpus())) == NOW


def test_a_pod_starts_where_enough_ends_first() -> None:
    scene = full()
    planned_start, two = kept(scene, occupied_nodes.gpus()), kept(scene, occupied_nodes.gpus(2))
    assert planned_start is not None
    assert two is not None
    assert (planned_start.start, [*planned_start.assignments]) == (NOW + HOUR, ["node-b"])
    assert (two.start, [*two.assignments]) == (NOW + 3 * HOUR, ["node-a"])
    assert [pick.device.device for pick in two.assignments[two.members[0].placement.node]] == [
        "gpu-0",
        "gpu-1",
    ]


def test_a_gang_starts_when_all_of_it_can() -> None:
    assert starts(kept(full(), *gangs.alike(2))) == NOW + 2 * HOUR
    assert starts(kept(full(), *gangs.alike(4))) == NOW + 4 * HOUR
    assert kept(full(), *gangs.alike(5)) is None


def test_overrunning_pods_end_now_and_pending_ones_start_now() -> None:
    scene = preemptions.of_sizes(a=1)
    pod = scene.work("p", "node-a", "gpu-0", max_runtime_s=60.0)
    assert earliest_start.latest_end(pod, NOW) == NOW
    assert earliest_start.latest_end(replace(pod, started=""), NOW) == NOW + dt.timedelta(minutes=1)
    assert earliest_start.latest_end(replace(pod, max_runtime_s=None), NOW) is None
    assert earliest_start.latest_end(replace(pod, max_runtime_s=None, deleting=True), NOW) == NOW


def test_with_unknown_ends_the_fewest_pods_are_awaited_without_a_start_time() -> None:
    scene = preemptions.of_sizes(a=2, b=2)
    scene.work("known", "node-a", "gpu-0", max_runtime_s=7200.0)
    scene.work("p", "node-a", "gpu-1", ran=10)
    scene.work("q", "node-b", "gpu-0", ran=30)
    scene.work("r", "node-b", "gpu-1", ran=20)
    planned_start = kept(scene, occupied_nodes.gpus(2))
    assert planned_start is not None
    assert planned_start.start is None
    assert planned_start.waits_for == ("default/p",)
    assert [*planned_start.assignments] == ["node-a"]
    gang = kept(scene, *gangs.alike(2))
    assert gang is not None
    assert gang.waits_for == ("default/q",)


def test_a_workload_that_never_fits_gets_no_reservation() -> None:
    assert kept(full(), occupied_nodes.gpus(3)) is None


def test_pods_that_come_back_to_their_node_are_not_waited_for() -> None:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0", max_runtime_s=1.0, owner=pods.Owner("DaemonSet", "d", "u"))
    assert kept(scene, occupied_nodes.gpus()) is None
