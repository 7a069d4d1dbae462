"""Tests of how the suites are run one after the other."""

import importlib.util
import subprocess

import pytest

from benchmarks import readme, suites


class Runs:
    """Takes half a minute for each command, and fails where it is told to."""

    def __init__(self, fails: str = "") -> None:
        self.commands: list[str] = []
        self._fails = fails

    def __call__(self, command: str) -> float:
        self.commands.append(command)
        if self._fails and self._fails in command:
            raise subprocess.CalledProcessError(1, [command])
        return 30.0


def test_all_suites_are_run_those_on_a_cluster_last() -> None:
    runs = Runs()
    assert suites.main([], runs) == 0
    here, cluster = len(suites.HERE), len(suites.ON_CLUSTER)
    assert len(runs.commands) == here + cluster + 2
    assert "cluster up" in runs.commands[here]
    assert "cluster down" in runs.commands[-1]


def test_suites_that_need_no_cluster_bring_none_up() -> None:
    runs = Runs()
    suites.main(["page", "hold"], runs)
    assert runs.commands == ["benchmarks.page", "benchmarks.hold"]


def test_the_cluster_ends_when_a_suite_fails() -> None:
    runs = Runs(fails="herd")
    assert suites.main(["herd", "node"], runs) == 1
    assert "cluster down" in runs.commands[-1]


def test_a_suite_that_fails_ends_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Runs(fails="beside")
    assert suites.main([], runs) == 1
    assert runs.commands == ["benchmarks.allocator", "benchmarks.beside"]
    assert "failed: benchmarks.beside" in capsys.readouterr().err


def test_the_table_tells_minutes_and_seconds_and_the_total() -> None:
    rows = suites.table({"allocator": 312.4, "page": 29.0}).splitlines()
    assert [row.split(maxsplit=1) for row in rows] == [
        ["allocator", "5 m 12 s"],
        ["page", "0 m 29 s"],
        ["total", "5 m 41 s"],
    ]


@pytest.mark.parametrize("name", [*suites.HERE, *suites.ON_CLUSTER])
def test_every_suite_is_a_module_and_has_a_title_on_the_page(name: str) -> None:
    command = {**suites.HERE, **suites.ON_CLUSTER}[name]
    assert importlib.util.find_spec(f"benchmarks.{command.split()[0]}")
    assert name in readme.SUITES
