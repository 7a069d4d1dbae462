from benchmarks.queues import fairness

HOUR = fairness.HOUR
FLEET = fairness.NODES * fairness.A_NODE


def row(name: str, time_s: float, gpus: int, hours: float, team: str = "LM") -> fairness.Row:
    return fairness.Row(name, team, time_s, gpus, hours * HOUR, priority=2)


def test_alone_a_job_takes_no_less_than_it_runs() -> None:
    assert fairness.alone([row("a", 0.0, 1, 5.0)], teams=1) == 5.0


def test_alone_jobs_flow_through_a_teams_part_one_after_another() -> None:
    rows = [row("a", 0.0, FLEET, 1.0), row("b", 0.0, FLEET, 1.0)]
    # Half of the fleet: two hours for the first, four for the second.
    assert fairness.alone(rows, teams=2) == 6.0


def test_large_jobs_are_gangs_of_pods_with_a_nodes_gpus() -> None:
    job = fairness.job(row("a", 7.0, 24, 1.0), priority=1)
    assert (len(job.tasks), job.leaf, job.at, job.duration_s, job.priority) == (
        3,
        "LM",
        7.0,
        HOUR,
        1,
    )
    assert fairness.job(row("b", 0.0, 4, 1.0), 0).tasks[0].claims[0].spec.requests[0].count == 4


def test_an_order_is_fair_where_all_teams_have_what_is_fair() -> None:
    even = fairness.Outcome({"a": [1.0], "b": [3.0]}, {}, {"a": 0.9, "b": 0.9})
    assert (even.jain, even.worst_team) == (1.0, 3.0)
    uneven = fairness.Outcome({}, {}, {"a": 1.0, "b": 0.0})
    assert uneven.jain == 0.5


def test_our_order_gives_teams_turns_where_first_come_first_served_does_not() -> None:
    flood = [row(f"x{n}", 0.0, 8, 1.0) for n in range(24)]
    late = [row("y", 60.0, 8, 1.0, "A3C")]
    ours = fairness.play([*flood, *late], fairness.OURS)
    fifo = fairness.play([*flood, *late], fairness.FIFO)
    assert ours.waits["A3C"][0] < 1.0
    assert fifo.waits["A3C"][0] > 2.0
    assert ours.jain > fifo.jain
