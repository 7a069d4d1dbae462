from pathlib import Path

import pytest

from driver.devices import mps_files
from driver.mps import status_files
from tests.fakes import clock

READY, FAILED = mps_files.State.READY, mps_files.State.FAILED


@pytest.fixture
def time() -> clock.FakeClock:
    return clock.FakeClock()


def a_file(tmp_path: Path, time: clock.FakeClock, boot: str = "b1") -> status_files.StatusFile:
    return status_files.StatusFile(mps_files.Layout(tmp_path), "k", boot, time)


def said(tmp_path: Path) -> mps_files.Status:
    return mps_files.Status.parse(mps_files.Layout(tmp_path).status("k").read_bytes(), "k.json")


def test_since_is_when_the_state_began(tmp_path: Path, time: clock.FakeClock) -> None:
    status = a_file(tmp_path, time)
    status.write(READY, "", {"clients": 1})
    began = said(tmp_path).since
    time.advance(5)
    status.write(READY, "a fault", {"clients": 2})
    assert (said(tmp_path).since, said(tmp_path).clients) == (began, 2)
    status.write(FAILED, "it died", {})
    assert said(tmp_path).since > began


def test_nothing_is_written_that_says_nothing_new(tmp_path: Path, time: clock.FakeClock) -> None:
    status = a_file(tmp_path, time)
    status.write(READY, "", {})
    path = mps_files.Layout(tmp_path).status("k")
    previous = path.stat().st_ino
    time.advance(5)
    status.write(READY, "", {})
    assert path.stat().st_ino == previous


def test_a_status_is_inherited_within_the_same_boot(tmp_path: Path, time: clock.FakeClock) -> None:
    assert a_file(tmp_path, time).read_previous() is None
    a_file(tmp_path, time).write(READY, "", {"pid": 7})
    assert a_file(tmp_path, time).read_previous() == said(tmp_path)
    assert a_file(tmp_path, time, boot="b2").read_previous() is None
    mps_files.Layout(tmp_path).status("k").write_text("{")
    assert a_file(tmp_path, time).read_previous() is None


def test_a_long_problem_is_cut(tmp_path: Path, time: clock.FakeClock) -> None:
    a_file(tmp_path, time).write(FAILED, "x" * 10_000, {})
    assert len(said(tmp_path).problem) == 4096
