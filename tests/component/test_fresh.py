"""A round of `make fresh`, of steps that take no time."""

import os
from pathlib import Path

from tests.fresh import plan, running


def step(name: str, text: str, *, clears: bool = False) -> plan.Step:
    return plan.Step(name, ("sh", "-c", text), clears=clears)


def a_place(tmp_path: Path) -> plan.Place:
    position = plan.Place(tmp_path / "lane")
    position.checkout(1).mkdir(parents=True)
    return position


def test_steps_run_in_the_clone_with_the_lane_s_home(tmp_path: Path) -> None:
    position = a_place(tmp_path)
    environment = plan.environment(os.environ, position, None)
    message = "echo first; echo $HOME $GOTOOLCHAIN; pwd"
    run = running.run(position, 1, [step("one", message)], environment, lambda _: None)
    assert run.is_green
    assert run.steps[0].last == str(position.checkout(1))
    assert position.log(1, "one").read_text().splitlines()[1] == f"{position.home} local"


def test_after_a_failure_only_what_clears_up_is_run(tmp_path: Path) -> None:
    position = a_place(tmp_path)
    steps = [
        step("one", "echo lacks runc >&2; exit 2"),
        step("two", "echo never"),
        step("down", "echo cleared", clears=True),
    ]
    messages: list[str] = []
    run = running.run(position, 1, steps, dict(os.environ), messages.append)
    assert [(ended.code, ended.last) for ended in run.steps] == [(2, "lacks runc"), (0, "cleared")]
    assert not run.is_green
    assert len(messages) == 2


def test_cache_growth_of_a_round_is_measured(tmp_path: Path) -> None:
    position = a_place(tmp_path)
    filled = "mkdir -p $HOME/.cache/ration; head -c 4194304 /dev/zero > $HOME/.cache/ration/x"
    environment = plan.environment(os.environ, position, None)
    run = running.run(position, 1, [step("one", filled)], environment, lambda _: None)
    assert run.mib["ours"] == 4
    assert run.mib["Go modules"] == 0
