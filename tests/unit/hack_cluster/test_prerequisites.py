"""Packages that the machine must have."""

import io
from pathlib import Path

import pytest
import rich.console

from hack.cluster import errors, prerequisites, progress


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def steps(tmp_path: Path, output: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> progress.Steps:
    """Steps on a machine without any program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return progress.Steps(rich.console.Console(file=output), tmp_path / "timings.json")


def test_a_missing_program_is_named_with_its_package(steps: progress.Steps) -> None:
    with pytest.raises(errors.ClusterError, match="lacks debootstrap: apt-get install debootstrap"):
        prerequisites.require("debootstrap", "debootstrap", steps)


def test_a_present_program_is_not_installed(
    steps: progress.Steps, output: io.StringIO, tmp_path: Path
) -> None:
    (tmp_path / "debootstrap").touch(mode=0o755)
    prerequisites.require("debootstrap", "debootstrap", steps)
    assert output.getvalue() == ""
