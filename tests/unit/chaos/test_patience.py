from tests.chaos import invariants, patience

WAITS = invariants.Problem(invariants.Rule.SPEC, "claim-1", "no spec")
OVERLAP = invariants.Problem(invariants.Rule.OVERLAP, "GPU-1")


def test_a_problem_is_reported_once_as_a_breach_after_its_rules_patience() -> None:
    judge = patience.Patience()
    assert judge.look(0.0, [WAITS]) == []
    assert judge.look(29.0, [WAITS]) == []
    (late,) = judge.look(31.0, [WAITS])
    assert late.text == "record-and-spec-differ: claim-1: no spec (for 31 s)"
    assert judge.look(99.0, [WAITS]) == []


def test_a_problem_that_was_away_begins_anew() -> None:
    judge = patience.Patience()
    judge.look(0.0, [WAITS])
    judge.look(20.0, [])
    assert judge.look(40.0, [WAITS]) == []
    assert len(judge.look(71.0, [WAITS])) == 1


def test_a_look_that_saw_nothing_forgets_nothing() -> None:
    judge, away = patience.Patience(), invariants.Problem(invariants.Rule.PROCESS, "API server")
    judge.look(0.0, [WAITS])
    assert judge.look(20.0, [away], blind=True) == []
    (late,) = judge.look(31.0, [WAITS])
    assert late.problem is WAITS
    assert judge.look(40.0, [away], blind=True) == []
    assert judge.look(50.0, [WAITS]) == []


def test_an_impossible_state_is_a_breach_at_the_second_observation() -> None:
    judge = patience.Patience()
    assert judge.look(0.0, [OVERLAP]) == []
    assert len(judge.look(0.2, [OVERLAP])) == 1
