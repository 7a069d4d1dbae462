"""A round of `make fresh`, of steps that take no time."""

import os
from pathlib import Path

from tests.fresh import plan, running


def step(name: str, text: str, *, clears: bool = False) -> plan.Step:
    return plan.Step(name, ("sh", "-c", text), clears=clears)


def a_place(tmp_path: Path) -> plan.Place:
    place = plan.Place(tmp_path / "lane")
    place.checkout(1).mkdir(parents=True)
    return place


def test_steps_run_in_the_clone_with_the_lane_s_home(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    environment = plan.environment(os.environ, place, None)
    told = "echo first; echo $HOME $GOTOOLCHAIN; pwd"
    found = running.run(place, 1, [step("one", told)], environment, lambda _: None)
    assert found.is_green
    assert found.steps[0].last == str(place.checkout(1))
    assert place.log(1, "one").read_text().splitlines()[1] == f"{place.home} local"


def test_after_a_failure_only_what_clears_up_is_run(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    steps = [
        step("one", "echo lacks runc >&2; exit 2"),
        step("two", "echo never"),
        step("down", "echo cleared", clears=True),
    ]
    said: list[str] = []
    found = running.run(place, 1, steps, dict(os.environ), said.append)
    assert [(one.code, one.last) for one in found.steps] == [(2, "lacks runc"), (0, "cleared")]
    assert not found.is_green
    assert len(said) == 2


def test_what_a_round_brought_is_measured(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    filled = "mkdir -p $HOME/.cache/ration; head -c 4194304 /dev/zero > $HOME/.cache/ration/x"
    environment = plan.environment(os.environ, place, None)
    found = running.run(place, 1, [step("one", filled)], environment, lambda _: None)
    assert found.mib["ours"] == 4
    assert found.mib["Go modules"] == 0
