"""Writes without an answer, and claims that others have changed meanwhile."""

from driver import errors, ids, names
from driver.controller.commit import write_pool
from driver.kube import fenced_writer
from tests.fakes.deciding import World
from tests.support.builders import objects


def test_a_gpu_whose_write_got_no_answer_is_given_to_nobody_else_meanwhile() -> None:
    """The write may have happened, and the watch may tell of it late."""
    world = World(1)
    world.server.lose.add("one")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle(0.0)
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle()
    world.settle(5.0)
    assert (world.device("one"), world.device("two")) == ("gpu-0", None)
    status_writes = [name for name, of, _ in world.server.written if of == "status"]
    assert status_writes == ["one"]
    assert [reason for _, reason, _ in world.told.lines].count("Allocated") == 2


def flipped(world: World, version: str = "500") -> None:
    """Node 0 is kube-scheduler's from now on."""
    free = objects.a_slice("node-0", [objects.a_device("gpu-0", taints=[])], generation=2)
    free["metadata"]["resourceVersion"] = version
    world.stores.slices.apply(free)


def test_a_write_without_an_answer_is_not_repeated_once_the_gpu_is_the_schedulers() -> None:
    world = World(1)
    world.server.refuse["one"] = errors.Unreachable(0, "Unreachable", "reset")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.decider.loop.process([write_pool.WorkItem("pod", ids.Key("default/one"))])
    flipped(world)
    world.settle(5.0)
    assert world.device("one") is None
    assert [of for _, of, _ in world.server.written] == [""]


def test_an_unconfirmed_allocation_is_withdrawn_when_kube_scheduler_takes_over_the_gpu() -> None:
    world = World(1)
    world.server.lose.add("one")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.decider.loop.process([write_pool.WorkItem("pod", ids.Key("default/one"))])
    assert world.device("one") == "gpu-0"
    flipped(world)
    world.settle(5.0)
    assert world.device("one") is None


def test_the_nomination_of_an_allocation_that_is_withdrawn_is_taken_back() -> None:
    world = World(1)
    world.server.lose.add("one")
    gates = [{"name": names.ALLOCATION_GATE}]
    world.add(objects.a_claim("one"), objects.a_pod("one", "one", schedulingGates=gates))
    world.decider.loop.process([write_pool.WorkItem("pod", ids.Key("default/one"))])
    assert world.pods["one"]["status"]["nominatedNodeName"] == "node-0"
    flipped(world)
    world.settle(5.0)
    assert "nominatedNodeName" not in world.pods["one"]["status"]


def test_a_refusal_of_the_second_try_does_not_end_the_doubt_about_the_first() -> None:
    world = World(1)
    world.server.lose.add("one")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle(0.0)
    world.server.refuse["one"] = errors.TooManyRequests(429, "TooManyRequests", "busy")
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle(5.0)
    assert (world.device("one"), world.device("two")) == ("gpu-0", None)


def test_an_unconfirmed_claim_stays_with_the_pods_other_claim() -> None:
    world = World(2)
    world.server.lose.add("two")
    world.add(objects.a_claim("one"), objects.a_claim("two"), objects.a_pod("pod", "one", "two"))
    world.settle(0.0)
    world.settle(5.0)
    assert {world.device("one"), world.device("two")} == {"gpu-0", "gpu-1"}
    assert [kind for _, _, kind in world.server.written] == ["STRATEGIC"] * 4


def test_a_claim_that_somebody_labelled_meanwhile_is_written_all_the_same() -> None:
    world = World(1)
    world.add(objects.a_claim("one"))
    behind = world.server.claims["default/one"]
    world.server.claims["default/one"] = world._newer(
        {**behind, "metadata": {**behind["metadata"], "labels": {"a": "b"}}}
    )
    world.add(objects.a_pod("one", "one"))
    world.settle(0.0)
    assert world.device("one") == "gpu-0"
    assert world.server.claims["default/one"]["metadata"]["labels"] == {"a": "b"}


def test_a_claim_that_was_allocated_meanwhile_keeps_that_allocation() -> None:
    world = World(2)
    world.add(objects.a_claim("one"))
    status = objects.allocated("node-0", "gpu-1")
    theirs = world._newer(objects.a_claim("one", status=status))
    world.server.claims["default/one"] = theirs
    world.add(objects.a_pod("one", "one"))
    world.settle(0.0)
    assert world.server.claims["default/one"] == theirs
    found = world.stores.claims.get(ids.Key("default/one"))
    assert found is not None
    assert found.allocation is not None


def test_nothing_is_placed_while_it_is_not_known_who_allocates_what() -> None:
    world = World(1)
    world.stale = True
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    assert (world.device("one"), world.server.written) == (None, [])
    world.stale = False
    world.settle(2.0)
    assert world.device("one") == "gpu-0"


def test_a_write_without_an_answer_is_not_repeated_either_while_that_is_not_known() -> None:
    world = World(1)
    world.server.refuse["one"] = errors.Unreachable(0, "Unreachable", "reset")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.decider.loop.process([write_pool.WorkItem("pod", ids.Key("default/one"))])
    world.stale = True
    world.settle(5.0)
    assert world.device("one") is None
    world.stale = False
    world.settle(5.0)
    assert world.device("one") == "gpu-0"


def test_a_claim_whose_hold_is_dropped_without_a_term_is_freed_with_one() -> None:
    """A frozen leader that wakes has none until it has renewed its Lease, and keeps leading."""
    world = World(1)
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    assert world.device("one") == "gpu-0"
    world.server.refuse["one"] = fenced_writer.NotLeading()
    world.remove_pod("one")
    world.settle()
    assert not world.server.refuse
    assert not world.claim("one").consumers
    assert world.device("one") is None


def test_an_allocation_without_a_term_is_written_once_there_is_one() -> None:
    world = World(1)
    world.server.refuse["one"] = fenced_writer.NotLeading()
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    assert not world.server.refuse
    assert world.device("one") == "gpu-0"
