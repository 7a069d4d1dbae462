"""Levels include the ones before, and only the last changes anything."""

import pytest

from hack.hardware import __main__ as program
from hack.hardware import steps


def names(level: str) -> list[str]:
    return [step.name for step in steps.upto(level)]


def test_a_level_begins_with_the_steps_of_the_levels_before() -> None:
    read, mps, own = (names(level) for level in steps.LEVELS)
    assert mps[: len(read)] == read
    assert own[: len(mps)] == mps
    assert own == [step.name for step in steps.ALL]


def test_only_steps_of_the_level_own_change_settings_and_undo_them() -> None:
    changing = {"mig", "compute-mode", "time-slice"}
    assert {step.name for step in steps.ALL if step.undo is not None} == changing
    assert changing.isdisjoint(names("mps"))


def test_chosen_steps_are_those_of_the_level_alone() -> None:
    assert [step.name for step in steps.upto("read", ["events", "mig"])] == ["events"]


def test_a_step_of_no_such_name_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--level", "own", "--step", "magic"]) == 2
    assert "no step 'magic'" in capsys.readouterr().err


def test_the_list_says_what_each_step_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--level", "read", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == names("read")
    assert all(len(line.split()) > 4 for line in lines)


def test_a_folder_without_facts_makes_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["page", "nowhere"]) == 2
    assert "has no facts.jsonl" in capsys.readouterr().err
