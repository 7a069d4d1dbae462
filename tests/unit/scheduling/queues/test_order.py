from tests.support.builders.queues import NOON, a_workload, an_engine, line_of, queue, serve

HOUR = 3600.0


def test_without_queues_priority_then_age_then_name_decide() -> None:
    queue_engine = an_engine(4)
    names = line_of(
        queue_engine,
        a_workload("b", since=5),
        a_workload("a", since=5),
        a_workload("old", since=1),
        a_workload("high", since=9, priority=10),
    )
    assert names == ["high", "old", "a", "b"]


def test_without_queues_nobody_starves() -> None:
    queue_engine = an_engine(4)
    names = line_of(
        queue_engine, a_workload("old"), a_workload("new", since=9, priority=1), at_s=99 * HOUR
    )
    assert names == ["new", "old"]


def test_turns_follow_weights_as_gpus_are_given_out() -> None:
    queue_engine = an_engine(8, queue("a"), queue("b", weight=3))
    waiting = [a_workload(f"{leaf}{n}", leaf, since=n) for leaf in "ab" for n in range(8)]
    served = serve(queue_engine, queue_engine.schedule_order(waiting, NOON), 8)
    assert sorted(served) == ["a0", "a1", "b0", "b1", "b2", "b3", "b4", "b5"]


def test_queues_below_deserved_come_first_by_lowest_usage() -> None:
    queue_engine = an_engine(
        16, queue("a", deserved=4), queue("b", deserved=8), queue("c", weight=99)
    )
    queue_engine.charge("x", "a", a_workload("x", gpus=2).requested)
    queue_engine.charge("y", "b", a_workload("y", gpus=3).requested)
    waiting = [a_workload(f"{leaf}{n}", leaf) for leaf in "abc" for n in range(7)]
    served = serve(queue_engine, queue_engine.schedule_order(waiting, NOON), 7)
    # b 3/8, then a and b are filled in step: a 2/4 when b has 4/8.
    assert served[:2] == ["b0", "a0"]
    assert sorted(served) == ["a0", "a1", "b0", "b1", "b2", "b3", "b4"]


def test_down_the_tree_the_parent_comes_before_the_child() -> None:
    queue_engine = an_engine(
        8, queue("p"), queue("q"), queue("p1", "p"), queue("p2", "p", weight=3), queue("q1", "q")
    )
    waiting = [a_workload(f"{leaf}-{n}", leaf) for leaf in ("p1", "p2", "q1") for n in range(8)]
    served = serve(queue_engine, queue_engine.schedule_order(waiting, NOON), 8)
    assert [sum(name.startswith(leaf) for name in served) for leaf in ("p1", "p2", "q1")] == [
        1,
        3,
        4,
    ]


def test_inside_a_queue_priority_then_age_decide() -> None:
    queue_engine = an_engine(4, queue("a"))
    names = line_of(
        queue_engine,
        a_workload("new", "a", since=5),
        a_workload("old", "a", since=1),
        a_workload("high", "a", since=9, priority=1),
    )
    assert names == ["high", "old", "new"]


def test_the_next_is_looked_for_when_it_is_asked() -> None:
    queue_engine = an_engine(4, queue("a"), queue("b"))
    line = queue_engine.schedule_order(
        [a_workload("a0", "a"), a_workload("a1", "a"), a_workload("b0", "b")], NOON
    )
    assert next(line).key == "a0"
    queue_engine.charge("a0", "a", a_workload("a0").requested)
    assert next(line).key == "b0"
    assert next(line).key == "a1"
    assert [*line] == []


def test_an_unplaced_workload_is_not_tried_again_in_the_cycle() -> None:
    queue_engine = an_engine(4, queue("a"), queue("b"))
    waiting = [a_workload(f"{leaf}{n}", leaf) for leaf in "ab" for n in range(2)]
    assert line_of(queue_engine, *waiting) == ["a0", "a1", "b0", "b1"]


def test_starving_workloads_come_first_by_longest_wait() -> None:
    queue_engine = an_engine(
        4, queue("a", starvation_s=HOUR), queue("b", starvation_s=2 * HOUR), queue("c", deserved=4)
    )
    waiting = [
        a_workload("c0", "c", since=0),
        a_workload("b0", "b", since=60),
        a_workload("a0", "a", since=120),
    ]
    assert line_of(queue_engine, *waiting, at_s=1.5 * HOUR)[0] == "c0"
    assert line_of(queue_engine, *waiting, at_s=2 * HOUR + 30)[:2] == ["c0", "a0"]
    assert line_of(queue_engine, *waiting, at_s=3 * HOUR) == ["c0", "b0", "a0"]
    queue_engine.charge("y", "c", a_workload("y", gpus=3).requested)
    assert line_of(
        queue_engine, *waiting[1:], a_workload("c1", "c", since=9000), at_s=3 * HOUR
    ) == [
        "b0",
        "a0",
        "c1",
    ]


def test_a_queue_gets_one_more_overdue_workload_for_each_bound_that_passes() -> None:
    queue_engine = an_engine(
        9, queue("a", weight=8, starvation_s=HOUR), queue("b", starvation_s=HOUR)
    )
    flood = [a_workload(f"b{n}", "b") for n in range(9)]
    late = [a_workload(f"a{n}", "a", since=1.9 * HOUR) for n in range(9)]
    served = serve(queue_engine, queue_engine.schedule_order([*flood, *late], NOON + 2 * HOUR), 9)
    assert served[0] == "b0"
    assert sum(name.startswith("b") for name in served) == 1
    flood, late = flood[1:], late[8:]
    served = serve(queue_engine, queue_engine.schedule_order([*flood, *late], NOON + 2.5 * HOUR), 1)
    assert served == ["a8"]
    served = serve(queue_engine, queue_engine.schedule_order([*flood, *late], NOON + 3.1 * HOUR), 1)
    assert served == ["b1"]


def test_the_next_workload_of_a_starving_queue_is_tried() -> None:
    queue_engine = an_engine(9, queue("a", starvation_s=HOUR), queue("b", deserved=9))
    waiting = [
        a_workload("a0", "a", gpus=99),
        a_workload("a1", "a", since=1),
        a_workload("b0", "b"),
    ]
    waiting[2] = waiting[2]._replace(since=NOON + 1.9 * HOUR)
    line = queue_engine.schedule_order(waiting, NOON + 2 * HOUR)
    assert next(line).key == "a0"
    assert next(line).key == "a1"
    queue_engine.charge("a1", "a", waiting[1].requested)
    assert [pending_entry.key for pending_entry in line] == ["b0"]


def test_past_use_counts_against_a_queue_with_a_half_life() -> None:
    queue_engine = an_engine(4, queue("a", half_life_s=HOUR), queue("b", half_life_s=HOUR))
    queue_engine.schedule_order((), NOON)
    queue_engine.charge("x", "a", a_workload("x", gpus=4).requested, NOON)
    queue_engine.charge("x", "a", None, NOON + HOUR)
    waiting = [a_workload(f"{leaf}{n}", leaf) for leaf in "ab" for n in range(4)]
    served = serve(queue_engine, queue_engine.schedule_order(waiting, NOON + HOUR), 4)
    assert served[:2] == ["b0", "b1"]
    assert sum(name.startswith("b") for name in served) == 3


def test_past_use_does_not_touch_what_is_deserved() -> None:
    queue_engine = an_engine(
        4, queue("a", deserved=2, half_life_s=HOUR), queue("b", half_life_s=HOUR)
    )
    queue_engine.schedule_order((), NOON)
    queue_engine.charge("x", "a", a_workload("x", gpus=4).requested, NOON)
    queue_engine.charge("x", "a", None, NOON + HOUR)
    waiting = [a_workload(f"{leaf}{n}", leaf) for leaf in "ab" for n in range(4)]
    assert serve(queue_engine, queue_engine.schedule_order(waiting, NOON + HOUR), 2) == ["a0", "a1"]
