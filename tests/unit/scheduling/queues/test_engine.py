from dataclasses import replace

import pytest

from driver.resources import queues
from driver.scheduling.queues import engine
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.builders.queues import NOON, a_workload, an_engine, named, queue, some

HOUR = 3600.0


def having(gpus: int, *found: queues.Queue, **has: float) -> engine.QueueEngine:
    """An engine; queues have so many GPUs, each by one claim."""
    made = an_engine(gpus, *found)
    for leaf, count in has.items():
        made.charge(f"claim-of-{leaf}", leaf, some(count))
    return made


def test_a_limit_is_kept_to_the_thousandth() -> None:
    made = having(16, queue("a", limit=4), a=3.5)
    assert made.exceeded_limit("a", some(0.5)) is None
    over = made.exceeded_limit("a", some(0.501))
    assert over is not None
    assert (over.queue, over.used, over.requested, over.bound.limit) == ("a", 3500, 501, 4000)


def test_limits_of_memory_compute_and_models_count_too() -> None:
    limits = queue("a", limit=named(memory=80 << 30)), queue("b", limit=named(compute=150))
    made = having(16, *limits, queue("c", limit=named(models={"T4": 1000})))
    assert made.exceeded_limit("a", some(1)) is None
    assert made.exceeded_limit("a", some(2)) is not None
    assert made.exceeded_limit("b", some(1)) is None
    assert made.exceeded_limit("b", some(2)) is not None
    assert made.exceeded_limit("c", some(9, "A10")) is None
    assert made.exceeded_limit("c", some(2, "T4")) is not None


def test_the_limit_of_an_ancestor_counts_for_all_below_it() -> None:
    made = having(16, queue("p", limit=4), queue("a", "p"), queue("b", "p", limit=2), a=3)
    assert made.exceeded_limit("b", some(1)) is None
    over = made.exceeded_limit("b", some(2))
    assert over is not None
    assert over.queue == "p"
    nearest = made.exceeded_limit("b", some(3))
    assert nearest is not None
    assert nearest.queue == "b"


def test_who_asks_nothing_of_a_resource_is_not_kept_by_its_limit() -> None:
    made = having(16, queue("a", limit=named(models={"T4": 1000})))
    made.charge("x", "a", some(2, "T4"))
    assert made.exceeded_limit("a", some(1, "A10")) is None


def test_without_borrowing_what_is_deserved_is_the_limit() -> None:
    made = having(16, queue("a", deserved=4, limit=8, borrowing=False), a=4)
    over = made.exceeded_limit("a", some(1))
    assert over is not None
    assert not over.is_limit


def test_no_queue_has_no_limit() -> None:
    made = an_engine(4)
    assert made.exceeded_limit("", some(99)) is None
    assert made.exceeded_limit("gone", some(99)) is None


def test_what_is_freed_is_free_and_what_is_charged_twice_counts_once() -> None:
    made = having(16, queue("a"), a=2)
    made.charge("claim-of-a", "a", some(3))
    assert made.usage("a") == some(3)
    made.charge("claim-of-a", "a", None)
    assert not made.usage("a")
    made.charge("claim-of-a", "a", None)
    assert not made.usage("a")


def test_a_claim_may_pass_from_one_queue_to_another() -> None:
    made = having(16, queue("p"), queue("a", "p"), queue("b"), a=2)
    made.charge("claim-of-a", "b", some(2))
    assert [made.usage(name).gpus for name in ("p", "a", "b")] == [0, 0, 2000]


def test_what_a_queue_that_goes_had_is_of_no_queue_until_it_comes_again() -> None:
    made = having(16, queue("a"), queue("b"), a=2)
    made.set_queue("a", None)
    assert (made.tree.queue_or_implicit("a"), made.usage("").gpus) == ("", 2000)
    made.set_queue("a", queue("a"))
    assert (made.usage("").gpus, made.usage("a").gpus) == (0, 2000)


def test_a_change_of_the_tree_moves_what_is_used() -> None:
    made = having(16, queue("p"), queue("q"), queue("a", "p"), a=2)
    made.set_queue("a", queue("a", "q"))
    assert [made.usage(name).gpus for name in ("p", "q", "a")] == [0, 2000, 2000]


def test_the_fleet_is_looked_at_again_when_the_world_changes() -> None:
    made = an_engine(4, queue("a", deserved=2))
    view = snapshots.fleet({"node-a": 8})
    made.refresh(view)
    assert made.capacity.gpus in {4000, 8000}
    view = snapshots.fleet({"node-a": 8, "node-b": 8, "node-c": 1})
    made.refresh(view)
    assert made.capacity.gpus == 17000


def test_within_its_fair_share_is_judged_after_the_placement() -> None:
    made = having(16, queue("a"), queue("b", weight=3), b=16)
    made.schedule_order([a_workload(f"a{n}", "a") for n in range(9)], NOON)
    assert made.is_within_fair_share("a", some(4))
    assert not made.is_within_fair_share("a", some(5))
    made.charge("x", "a", some(4))
    assert not made.is_within_fair_share("a", some(1))


def test_within_counts_what_is_asked_though_it_does_not_wait_in_line() -> None:
    made = having(16, queue("a"), queue("b", weight=3), b=16)
    assert made.is_within_fair_share("a", some(4))
    assert not made.is_within_fair_share("a", some(5))


def test_a_surplus_is_what_is_beyond_the_fair_share() -> None:
    made = having(16, queue("a"), queue("b", weight=3), a=10, b=6)
    made.schedule_order([a_workload(f"b{n}", "b") for n in range(9)], NOON)
    # b asks for 15, of which 12 are fair: 4 are left for a... and a is at 10.
    assert made.surplus("a") == 6000
    assert made.surplus("b") == -6000


def test_nobody_has_a_surplus_while_nobody_waits() -> None:
    made = having(16, queue("a"), queue("b", weight=3), a=16)
    assert made.surplus("a") == 0


def test_standings_tell_what_is_used_fair_borrowed_and_waiting() -> None:
    made = having(
        *(16, queue("p"), queue("a", "p", deserved=4, starvation_s=HOUR), queue("b", weight=3)),
        a=6,
        b=10,
    )
    waiting = [a_workload("a0", "a", since=-2 * HOUR), a_workload("b0", "b", gpus=4)]
    made.schedule_order(waiting, NOON)
    found = made.queue_statuses(NOON)
    one = found["a"]
    assert (one.usage.gpus, one.share, one.borrowed, one.fair_gpus) == (6000, 0.375, 2000, 7000)
    assert (one.pending, one.oldest_wait_s, one.is_starving) == (1, 2 * HOUR, True)
    assert (found["p"].pending, found["p"].is_starving) == (1, True)
    assert (found["b"].fair_gpus, found["b"].is_starving, found["b"].oldest_wait_s) == (
        9000,
        False,
        0.0,
    )
    assert found[""].pending == 0


def test_a_single_standing_is_that_of_all_but_for_what_waits() -> None:
    made = having(16, queue("a", half_life_s=HOUR), queue("b", deserved=4), a=6)
    made.schedule_order([a_workload("b0", "b", since=-60)], NOON)
    for name, one in made.queue_statuses(NOON).items():
        assert made.queue_status(name) == replace(
            one, pending=0, oldest_wait_s=None, is_starving=False
        )


def test_past_use_that_cannot_be_read_is_no_past() -> None:
    made = engine.QueueEngine(snapshots.DRIVER)
    made.set_queue("a", queue("a", half_life_s=HOUR, usage=queues.Usage("yesterday", 7200.0)))
    made.set_queue("b", queue("b", half_life_s=HOUR, usage=written("2027-01-15T08:00:00Z", -5.0)))
    made.refresh(snapshots.fleet({"node-a": 4}))
    found = made.queue_statuses(NOON)
    assert (found["a"].average_share, found["b"].average_share) == (0.0, 0.0)


def test_who_was_served_waits_no_more() -> None:
    made = having(16, queue("a"))
    line = made.schedule_order([a_workload("a0", "a"), a_workload("a1", "a")], NOON)
    one = next(line)
    made.charge("claim-0", "a", one.requested)
    made.charge("claim-1", "a", one.requested)
    next(line)
    assert made.queue_statuses(NOON)["a"].pending == 1


def written(at: str, gpu_seconds: float) -> queues.Usage:
    return queues.Usage(at, gpu_seconds)


def test_past_use_is_resumed_from_the_status_and_written_as_it_was() -> None:
    usage = written("2027-01-15T08:00:00Z", 7200.0)
    made = engine.QueueEngine(snapshots.DRIVER)
    made.set_queue("a", queue("a", half_life_s=HOUR, usage=usage))
    made.refresh(snapshots.fleet({"node-a": 4}))
    found = made.queue_statuses(NOON)["a"]
    assert found.usage_seconds is not None
    assert found.usage_seconds * 4 == pytest.approx(7200.0)
    # An hour later without use a half is left.
    later = made.queue_statuses(NOON + HOUR)["a"]
    assert later.usage_seconds == pytest.approx(found.usage_seconds / 2)


def test_our_own_writing_coming_back_changes_nothing() -> None:
    made = having(4, queue("a", half_life_s=HOUR))
    made.queue_statuses(NOON)
    made.charge("x", "a", some(4), NOON)
    before = made.queue_statuses(NOON + HOUR)["a"]
    tree = made.tree
    old = queue("a", half_life_s=HOUR, usage=written("2027-01-15T08:00:00Z", 5.0), version="7")
    made.set_queue("a", old)
    assert made.queue_statuses(NOON + HOUR)["a"] == before
    assert made.tree is tree


def test_a_queue_of_the_same_name_made_anew_has_no_past() -> None:
    made = having(4, queue("a", half_life_s=HOUR, uid="1"))
    made.queue_statuses(NOON)
    made.charge("x", "a", some(4), NOON)
    made.queue_statuses(NOON + HOUR)
    made.set_queue("a", queue("a", half_life_s=HOUR, uid="2"))
    assert made.queue_statuses(NOON + HOUR)["a"].average_share == 0.0


def test_what_claims_of_one_template_ask_is_worked_out_once_for_a_world() -> None:
    made = an_engine(4)
    view = snapshots.fleet({"node-a": 4})
    one, two = (objects.claim(name, objects.a_request(count=2)) for name in ("x", "y"))
    assert made.requested_amounts(view, [one]) is made.requested_amounts(view, [two])
    assert made.requested_amounts(view, [one]).gpus == 2000
    assert made.requested_amounts(view, [one, two]) == made.requested_amounts(view, [one]).times(2)


def test_pods_are_of_the_queue_that_takes_them() -> None:
    made = an_engine(4, queue("a", members=(queues.Member("default"),)))
    pod = objects.pod("p")
    assert made.pod_queue(pod) == "a"
    assert made.pod_queue(replace(pod, namespace="other")) == ""
    assert made.queue("gone").weight == 1


def test_charges_before_the_first_look_at_the_fleet_do_no_harm() -> None:
    made = engine.QueueEngine(snapshots.DRIVER)
    made.set_queue("a", queue("a", deserved=3))
    made.charge("x", "a", some(1))
    assert [one.key for one in made.schedule_order([a_workload("a0", "a")], NOON)] == ["a0"]
    assert made.surplus("a") == 0
    assert made.queue_statuses(NOON)["a"].share == 0.0
    assert made.usage("a") - some(1) == queue_resources.ZERO
