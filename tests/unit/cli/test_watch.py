from collections.abc import Callable, Iterator

import pytest

from driver import errors
from driver.cli import output
from driver.cli import watch as cli_watch
from tests.fakes import clock as fake_clock

AWAY = errors.Unreachable(0, "Unreachable", "GET /api: refused")


def answers(*inputs: int | BaseException) -> Callable[[], output.Answer]:
    """One a call; after the last the user ends it."""
    left: Iterator[int | BaseException] = iter((*inputs, KeyboardInterrupt()))

    def ask() -> output.Answer:
        item = next(left)
        if isinstance(item, BaseException):
            raise item
        return output.Answer({"n": item}, (f"n is {item}",))

    return ask


def test_without_watch_it_is_asked_once(capsys: pytest.CaptureFixture[str]) -> None:
    cli_watch.print_answers(answers(1), output.Format.TABLE, watch=False)
    assert capsys.readouterr().out == "n is 1\n"


def test_only_changes_are_drawn_again_every_two_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = fake_clock.FakeClock()
    cli_watch.print_answers(answers(1, 1, 2, 2, 3), output.Format.TABLE, watch=True, time=time)
    assert capsys.readouterr().out == "n is 1\n\nn is 2\n\nn is 3\n"
    assert set(time.waits) == {2.0}


def test_json_is_one_document_a_line_and_yaml_a_stream(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = fake_clock.FakeClock()
    cli_watch.print_answers(answers(1, 2), output.Format.JSON, watch=True, time=time)
    assert capsys.readouterr().out == '{"n":1}\n{"n":2}\n'
    cli_watch.print_answers(answers(1, 2), output.Format.YAML, watch=True, time=time)
    assert capsys.readouterr().out == "n: 1\n---\nn: 2\n"


def test_a_server_that_goes_away_later_is_told_and_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli_watch.print_answers(
        answers(1, AWAY, 2), output.Format.JSON, watch=True, time=fake_clock.FakeClock()
    )
    shown = capsys.readouterr()
    assert shown.out == '{"n":1}\n{"n":2}\n'
    assert shown.err.count("\n") == 1
    assert "the API server was not reached" in shown.err


def test_a_server_that_was_never_there_is_a_failure() -> None:
    with pytest.raises(errors.Unreachable):
        cli_watch.print_answers(answers(AWAY), output.Format.TABLE, watch=True)
