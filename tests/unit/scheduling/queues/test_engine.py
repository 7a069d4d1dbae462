from dataclasses import replace

import pytest

from driver.resources import queues
from driver.scheduling.queues import engine
from driver.scheduling.queues import resources as queue_resources
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.builders.queues import NOON, a_workload, an_engine, named, queue, some

HOUR = 3600.0


def having(gpus: int, *results: queues.Queue, **has: float) -> engine.QueueEngine:
    """An engine; queues have so many GPUs, each by one claim."""
    queue_engine = an_engine(gpus, *results)
    for leaf, count in has.items():
        queue_engine.charge(f"claim-of-{leaf}", leaf, some(count))
    return queue_engine


def test_a_limit_is_kept_to_the_thousandth() -> None:
    queue_engine = having(16, queue("a", limit=4), a=3.5)
    assert queue_engine.exceeded_limit("a", some(0.5)) is None
    over = queue_engine.exceeded_limit("a", some(0.501))
    assert over is not None
    assert (over.queue, over.used, over.requested, over.bound.limit) == ("a", 3500, 501, 4000)


def test_limits_of_memory_compute_and_models_count_too() -> None:
    limits = queue("a", limit=named(memory=80 << 30)), queue("b", limit=named(compute=150))
    queue_engine = having(16, *limits, queue("c", limit=named(models={"T4": 1000})))
    assert queue_engine.exceeded_limit("a", some(1)) is None
    assert queue_engine.exceeded_limit("a", some(2)) is not None
    assert queue_engine.exceeded_limit("b", some(1)) is None
    assert queue_engine.exceeded_limit("b", some(2)) is not None
    assert queue_engine.exceeded_limit("c", some(9, "A10")) is None
    assert queue_engine.exceeded_limit("c", some(2, "T4")) is not None


def test_the_limit_of_an_ancestor_counts_for_all_below_it() -> None:
    queue_engine = having(16, queue("p", limit=4), queue("a", "p"), queue("b", "p", limit=2), a=3)
    assert queue_engine.exceeded_limit("b", some(1)) is None
    over = queue_engine.exceeded_limit("b", some(2))
    assert over is not None
    assert over.queue == "p"
    nearest = queue_engine.exceeded_limit("b", some(3))
    assert nearest is not None
    assert nearest.queue == "b"


def test_a_workload_without_a_resource_ignores_its_limit() -> None:
    queue_engine = having(16, queue("a", limit=named(models={"T4": 1000})))
    queue_engine.charge("x", "a", some(2, "T4"))
    assert queue_engine.exceeded_limit("a", some(1, "A10")) is None


def test_without_borrowing_what_is_deserved_is_the_limit() -> None:
    queue_engine = having(16, queue("a", deserved=4, limit=8, borrowing=False), a=4)
    over = queue_engine.exceeded_limit("a", some(1))
    assert over is not None
    assert not over.is_limit


def test_no_queue_has_no_limit() -> None:
    queue_engine = an_engine(4)
    assert queue_engine.exceeded_limit("", some(99)) is None
    assert queue_engine.exceeded_limit("gone", some(99)) is None


def test_charges_and_releases_are_idempotent() -> None:
    queue_engine = having(16, queue("a"), a=2)
    queue_engine.charge("claim-of-a", "a", some(3))
    assert queue_engine.usage("a") == some(3)
    queue_engine.charge("claim-of-a", "a", None)
    assert not queue_engine.usage("a")
    queue_engine.charge("claim-of-a", "a", None)
    assert not queue_engine.usage("a")


def test_a_claim_may_pass_from_one_queue_to_another() -> None:
    queue_engine = having(16, queue("p"), queue("a", "p"), queue("b"), a=2)
    queue_engine.charge("claim-of-a", "b", some(2))
    assert [queue_engine.usage(name).gpus for name in ("p", "a", "b")] == [0, 0, 2000]


def test_usage_of_a_deleted_queue_belongs_to_none_until_it_returns() -> None:
    queue_engine = having(16, queue("a"), queue("b"), a=2)
    queue_engine.set_queue("a", None)
    assert (queue_engine.tree.queue_or_implicit("a"), queue_engine.usage("").gpus) == ("", 2000)
    queue_engine.set_queue("a", queue("a"))
    assert (queue_engine.usage("").gpus, queue_engine.usage("a").gpus) == (0, 2000)


def test_a_change_of_the_tree_moves_what_is_used() -> None:
    queue_engine = having(16, queue("p"), queue("q"), queue("a", "p"), a=2)
    queue_engine.set_queue("a", queue("a", "q"))
    assert [queue_engine.usage(name).gpus for name in ("p", "q", "a")] == [0, 2000, 2000]


def test_the_fleet_is_looked_at_again_when_the_world_changes() -> None:
    queue_engine = an_engine(4, queue("a", deserved=2))
    view = snapshots.fleet({"node-a": 8})
    queue_engine.refresh(view)
    assert queue_engine.capacity.gpus in {4000, 8000}
    view = snapshots.fleet({"node-a": 8, "node-b": 8, "node-c": 1})
    queue_engine.refresh(view)
    assert queue_engine.capacity.gpus == 17000


def test_within_its_fair_share_is_judged_after_the_placement() -> None:
    queue_engine = having(16, queue("a"), queue("b", weight=3), b=16)
    queue_engine.schedule_order([a_workload(f"a{n}", "a") for n in range(9)], NOON)
    assert queue_engine.is_within_fair_share("a", some(4))
    assert not queue_engine.is_within_fair_share("a", some(5))
    queue_engine.charge("x", "a", some(4))
    assert not queue_engine.is_within_fair_share("a", some(1))


def test_within_counts_what_is_asked_though_it_does_not_wait_in_line() -> None:
    queue_engine = having(16, queue("a"), queue("b", weight=3), b=16)
    assert queue_engine.is_within_fair_share("a", some(4))
    assert not queue_engine.is_within_fair_share("a", some(5))


def test_a_surplus_is_what_is_beyond_the_fair_share() -> None:
    queue_engine = having(16, queue("a"), queue("b", weight=3), a=10, b=6)
    queue_engine.schedule_order([a_workload(f"b{n}", "b") for n in range(9)], NOON)
    # b asks for 15, of which 12 are fair: 4 are left for a... and a is at 10.
    assert queue_engine.surplus("a") == 6000
    assert queue_engine.surplus("b") == -6000


def test_no_queue_has_a_surplus_while_none_is_pending() -> None:
    queue_engine = having(16, queue("a"), queue("b", weight=3), a=16)
    assert queue_engine.surplus("a") == 0


def test_standings_tell_what_is_used_fair_borrowed_and_waiting() -> None:
    queue_engine = having(
        *(16, queue("p"), queue("a", "p", deserved=4, starvation_s=HOUR), queue("b", weight=3)),
        a=6,
        b=10,
    )
    waiting = [a_workload("a0", "a", since=-2 * HOUR), a_workload("b0", "b", gpus=4)]
    queue_engine.schedule_order(waiting, NOON)
    queue_statuses = queue_engine.queue_statuses(NOON)
    queue_status = queue_statuses["a"]
    assert (
        queue_status.usage.gpus,
        queue_status.share,
        queue_status.borrowed,
        queue_status.fair_gpus,
    ) == (6000, 0.375, 2000, 7000)
    assert (queue_status.pending, queue_status.oldest_wait_s, queue_status.is_starving) == (
        1,
        2 * HOUR,
        True,
    )
    assert (queue_statuses["p"].pending, queue_statuses["p"].is_starving) == (1, True)
    assert (
        queue_statuses["b"].fair_gpus,
        queue_statuses["b"].is_starving,
        queue_statuses["b"].oldest_wait_s,
    ) == (
        9000,
        False,
        0.0,
    )
    assert queue_statuses[""].pending == 0


def test_a_single_standing_is_that_of_all_but_for_what_waits() -> None:
    queue_engine = having(16, queue("a", half_life_s=HOUR), queue("b", deserved=4), a=6)
    queue_engine.schedule_order([a_workload("b0", "b", since=-60)], NOON)
    for name, queue_status in queue_engine.queue_statuses(NOON).items():
        assert queue_engine.queue_status(name) == replace(
            queue_status, pending=0, oldest_wait_s=None, is_starving=False
        )


def test_past_use_that_cannot_be_read_is_no_past() -> None:
    queue_engine = engine.QueueEngine(snapshots.DRIVER)
    queue_engine.set_queue(
        "a", queue("a", half_life_s=HOUR, usage=queues.Usage("yesterday", 7200.0))
    )
    queue_engine.set_queue(
        "b", queue("b", half_life_s=HOUR, usage=written("2027-01-15T08:00:00Z", -5.0))
    )
    queue_engine.refresh(snapshots.fleet({"node-a": 4}))
    queue_statuses = queue_engine.queue_statuses(NOON)
    assert (queue_statuses["a"].average_share, queue_statuses["b"].average_share) == (0.0, 0.0)


def test_a_placed_workload_is_no_longer_pending() -> None:
    queue_engine = having(16, queue("a"))
    line = queue_engine.schedule_order([a_workload("a0", "a"), a_workload("a1", "a")], NOON)
    pending_entry = next(line)
    queue_engine.charge("claim-0", "a", pending_entry.requested)
    queue_engine.charge("claim-1", "a", pending_entry.requested)
    next(line)
    assert queue_engine.queue_statuses(NOON)["a"].pending == 1


def written(time: str, gpu_seconds: float) -> queues.Usage:
    return queues.Usage(time, gpu_seconds)


def test_past_use_is_resumed_from_the_status_and_written_as_it_was() -> None:
    usage = written("2027-01-15T08:00:00Z", 7200.0)
    queue_engine = engine.QueueEngine(snapshots.DRIVER)
    queue_engine.set_queue("a", queue("a", half_life_s=HOUR, usage=usage))
    queue_engine.refresh(snapshots.fleet({"node-a": 4}))
    queue_status = queue_engine.queue_statuses(NOON)["a"]
    assert queue_status.usage_seconds is not None
    assert queue_status.usage_seconds * 4 == pytest.approx(7200.0)
    # An hour later without use a half is left.
    later = queue_engine.queue_statuses(NOON + HOUR)["a"]
    assert later.usage_seconds == pytest.approx(queue_status.usage_seconds / 2)


def test_our_own_writing_coming_back_changes_nothing() -> None:
    queue_engine = having(4, queue("a", half_life_s=HOUR))
    queue_engine.queue_statuses(NOON)
    queue_engine.charge("x", "a", some(4), NOON)
    previous = queue_engine.queue_statuses(NOON + HOUR)["a"]
    tree = queue_engine.tree
    old = queue("a", half_life_s=HOUR, usage=written("2027-01-15T08:00:00Z", 5.0), version="7")
    queue_engine.set_queue("a", old)
    assert queue_engine.queue_statuses(NOON + HOUR)["a"] == previous
    assert queue_engine.tree is tree


def test_a_queue_of_the_same_name_made_anew_has_no_past() -> None:
    queue_engine = having(4, queue("a", half_life_s=HOUR, uid="1"))
    queue_engine.queue_statuses(NOON)
    queue_engine.charge("x", "a", some(4), NOON)
    queue_engine.queue_statuses(NOON + HOUR)
    queue_engine.set_queue("a", queue("a", half_life_s=HOUR, uid="2"))
    assert queue_engine.queue_statuses(NOON + HOUR)["a"].average_share == 0.0


def test_requests_of_one_template_are_computed_once_per_generation() -> None:
    queue_engine = an_engine(4)
    view = snapshots.fleet({"node-a": 4})
    claim, two = (objects.claim(name, objects.a_request(count=2)) for name in ("x", "y"))
    assert queue_engine.requested_amounts(view, [claim]) is queue_engine.requested_amounts(
        view, [two]
    )
    assert queue_engine.requested_amounts(view, [claim]).gpus == 2000
    assert queue_engine.requested_amounts(view, [claim, two]) == queue_engine.requested_amounts(
        view, [claim]
    ).times(2)


def test_pods_are_of_the_queue_that_takes_them() -> None:
    queue_engine = an_engine(4, queue("a", members=(queues.Member("default"),)))
    pod = objects.pod("p")
    assert queue_engine.pod_queue(pod) == "a"
    assert queue_engine.pod_queue(replace(pod, namespace="other")) == ""
    assert queue_engine.queue("gone").weight == 1


def test_charges_before_the_first_look_at_the_fleet_do_no_harm() -> None:
    queue_engine = engine.QueueEngine(snapshots.DRIVER)
    queue_engine.set_queue("a", queue("a", deserved=3))
    queue_engine.charge("x", "a", some(1))
    assert [
        pending_entry.key
        for pending_entry in queue_engine.schedule_order([a_workload("a0", "a")], NOON)
    ] == ["a0"]
    assert queue_engine.surplus("a") == 0
    assert queue_engine.queue_statuses(NOON)["a"].share == 0.0
    assert queue_engine.usage("a") - some(1) == queue_resources.ZERO
