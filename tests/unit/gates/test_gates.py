"""The table of gates, what is kept of runs, and the page of both."""

from pathlib import Path

import pytest

from tests.gates import __main__ as command
from tests.gates import page, results, table

ROOT = Path(__file__).parents[3]
FILES = [
    word
    for gate in table.GATES
    for item in gate.commands
    for word in item.words
    if word.startswith("tests/")
]


def test_every_gate_has_its_number_and_is_shown_by_something() -> None:
    assert [gate.number for gate in table.GATES] == list(range(1, 18))
    assert all(gate.commands for gate in table.GATES)


@pytest.mark.parametrize("named", FILES)
def test_every_file_that_a_gate_names_is_there(named: str) -> None:
    assert (ROOT / named).exists()


def test_only_the_result_of_the_run_command_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for code in (1, 0):
        results.keep(results.Result("a", code, 3, f"ended with {code}", "abc"), path)
    results.keep(results.Result("b", 1, 4, "red", "abd"), path)
    stored = results.stored(path)
    assert {name: result.code for name, result in stored.items()} == {"a": 0, "b": 1}
    assert stored["a"].last == "ended with 0"


def test_the_page_says_what_is_green_what_is_red_and_what_was_never_run() -> None:
    first, second, *_ = (item for gate in table.GATES for item in gate.commands)
    retained = {
        first.text: results.Result(first.text, 0, 7, "== 3 passed in 7s ==", "abc"),
        second.text: results.Result(second.text, 1, 9, "1 failed | 2 passed", "abd"),
    }
    text = page.page(retained)
    assert f"| `{first.text}` | green after 7 s: 3 passed in 7s | abc |" in text
    assert f"| `{second.text}` | **red**, exit code 1 after 9 s: 1 failed / 2 passed | abd" in text
    assert "| not run yet | |" in text


def test_a_gate_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "3,18"]) == 2
    assert "no gate 18; expected some of 1 to 17" in capsys.readouterr().err


def test_listing_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "6", "--list"]) == 0
    assert "tests/e2e/test_reclaim.py -k away" in capsys.readouterr().out


def test_some_commands_of_the_gates_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "2,6", "--having", "chaos", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [name.strip() for name in listed[1:]] == ["make chaos"]
