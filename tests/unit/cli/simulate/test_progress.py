import io

import pytest

from driver.cli.simulate import progress
from tests.fakes import clock


def test_a_log_is_told_now_and_then_and_not_of_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    time = clock.FakeClock()
    with progress.show_progress("deciding", time) as report_progress:
        for done in range(1, 31):
            time.advance(0.4)
            report_progress(done, 30)
    assert capsys.readouterr().err.splitlines() == [
        "deciding: 13 of 30",
        "deciding: 26 of 30",
    ]


def test_short_work_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.show_progress("deciding", clock.FakeClock()) as report_progress:
        report_progress(1, 1)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_people_see_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.show_progress("deciding", clock.FakeClock()) as report_progress:
        report_progress(15, 30)
    assert "deciding" in terminal.getvalue()
    assert "50%" in terminal.getvalue()
