"""Preemption through the decider: held first, then evicted, placed when the victims are gone."""

from driver import errors, names
from tests.fakes.deciding import World
from tests.support.builders import objects
from tests.support.builders.scheduler_objects import a_pod, a_queue
from tests.support.scenarios.scheduled_pods import has, held, leaves, runs, told


def test_a_more_important_pod_has_a_less_important_one_evicted_and_takes_its_place() -> None:
    world = World(1)
    world.add(*a_pod("low"))
    runs(world, "low")
    world.add(*a_pod("high", 1000))
    world.settle()
    world.settle()
    (one,) = held(world)
    assert one["spec"]["for"] == {"pod": "high", "uid": objects.uid_of("high")}
    assert one["status"]["devices"][0]["device"] == "gpu-0"
    assert world.server.evicted == ["low"]
    assert told(world, "Preempted") == [
        "Evicted for pod default/high (priority 1000 > 0), which needs gpu-0 on node-0"
    ]
    assert not has(world, "high")
    leaves(world, "low")
    assert has(world, "high")
    world.settle(2.0)
    assert held(world) == []


def test_devices_freed_for_a_preemptor_go_to_no_other_pod() -> None:
    world = World(1)
    world.add(*a_pod("low"))
    runs(world, "low")
    world.add(*a_pod("high", 1000))
    world.settle()
    world.settle()
    world.add(*a_pod("thief", 2000, spec={"preemptionPolicy": "Never"}))
    leaves(world, "low")
    assert has(world, "high")
    assert not has(world, "thief")


def test_no_pod_is_evicted_before_its_devices_are_reserved() -> None:
    world = World(1)
    world.add(*a_pod("low"))
    runs(world, "low")
    world.server.refuse["create"] = errors.ServerError(500, "InternalError", "no")
    world.add(*a_pod("high", 1000))
    world.settle(0.0)
    assert world.server.evicted == []
    assert held(world) == []


def test_equal_priority_and_preemption_policy_never_evict_nobody() -> None:
    world = World(1)
    world.add(*a_pod("low"))
    runs(world, "low")
    world.add(*a_pod("same", 0), *a_pod("never", 1000, spec={"preemptionPolicy": "Never"}))
    world.settle()
    world.settle(10.0)
    assert held(world) == []
    assert world.server.evicted == []


def test_a_disruption_budget_is_respected() -> None:
    world = World(1)
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": objects.meta("keep", generation=1),
        "spec": {"selector": {"matchLabels": {"app": "low"}}},
        "status": {"disruptionsAllowed": 0, "observedGeneration": 1},
    }
    world.add(budget, *a_pod("low", labels={"app": "low"}))
    runs(world, "low")
    world.add(*a_pod("high", 1000))
    world.settle()
    world.settle(10.0)
    assert world.server.evicted == []


def test_a_budget_that_forbids_it_after_all_is_asked_again() -> None:
    world = World(1)
    world.add(*a_pod("low"))
    runs(world, "low")
    world.server.refuse["evict low"] = errors.TooManyRequests(429, "TooManyRequests", "budget")
    world.add(*a_pod("high", 1000))
    world.settle()
    assert world.server.evicted == []
    for _ in range(8):
        world.settle(1.0)
    assert world.server.evicted == ["low"]


def test_a_new_leader_goes_on_with_what_was_held() -> None:
    first = World(1)
    first.add(*a_pod("low"))
    runs(first, "low")
    first.add(*a_pod("high", 1000))
    first.settle()
    world = World(1)
    (one,) = held(first)
    world.add(first.server.claims["default/low-gpu"], first.pods["low"], one, *a_pod("high", 1000))
    world.settle()
    world.settle()
    assert world.server.evicted == ["low"]
    leaves(world, "low")
    assert has(world, "high")


def test_a_reservation_without_its_preemptor_holds_nothing() -> None:
    world = World(1)
    world.add(*a_pod("low"))
    runs(world, "low")
    world.add(*a_pod("high", 1000))
    world.settle()
    world.remove_pod("high")
    world.settle(31.0)
    world.settle(2.0)
    assert held(world) == []


def test_a_queue_below_its_share_takes_back_what_another_has_borrowed() -> None:
    world = World(4)
    world.add(a_queue("a", reclaim="Any"), a_queue("b"))
    for number in range(4):
        world.add(*a_pod(f"a{number}", queue="a"))
    runs(world, "a0", "a1", "a2", "a3")
    for number in range(4):
        world.add(*a_pod(f"b{number}", queue="b"))
    world.settle()
    for _ in range(4):
        world.settle(6.0)
    assert len({*world.server.evicted}) == 2
    assert told(world, "Preempted")[0].startswith("Evicted for pod default/b")
    assert "queue a has 2 GPUs more than its fair share" in told(world, "Preempted")[0]


def test_a_gang_has_as_many_evicted_as_it_needs() -> None:
    world = World(2)
    world.add(*a_pod("x"), *a_pod("y"))
    runs(world, "x", "y")
    for name in ("m0", "m1"):
        claim, pod = a_pod(name, 1000, annotations={names.GANG_SIZE: "2"})
        pod["metadata"]["labels"] = {names.GANG_LABEL: "train"}
        world.add(claim, pod)
    world.settle()
    world.settle()
    assert sorted(world.server.evicted) == ["x", "y"]
    leaves(world, "x")
    assert not has(world, "m0")
    leaves(world, "y")
    assert has(world, "m0")
    assert has(world, "m1")


def test_a_victim_is_evicted_once_its_minimum_run_time_is_over() -> None:
    world = World(1)
    world.add(a_queue("a", minRunTime="10m"))
    world.add(*a_pod("low", queue="a"))
    runs(world, "low")
    world.add(*a_pod("high", 1000, queue="a"))
    world.settle()
    assert world.server.evicted == []
    assert "RanTooShortly" in told(world, "PreemptionInVain")[0]
    for _ in range(22):
        world.settle(30.0)
    assert {*world.server.evicted} == {"low"}
