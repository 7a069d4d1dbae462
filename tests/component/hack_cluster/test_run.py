"""`hack.cluster run` without a name: the command, and nothing else."""

import pytest
from typer.testing import CliRunner

from hack.cluster import cli, errors

RUN = CliRunner()


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_ends_as_it_ended(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.delenv("RATION_CLUSTER", raising=False)
    assert RUN.invoke(cli.app, ["run", "--", "sh", "-c", f"exit {code}"]).exit_code == code


def test_options_of_the_command_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RATION_CLUSTER", raising=False)
    assert RUN.invoke(cli.app, ["run", "--", "test", "-n", "--help"]).exit_code == 0


def test_a_command_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RATION_CLUSTER", raising=False)
    ran = RUN.invoke(cli.app, ["run", "--", "nowhere/kubectl"])
    assert isinstance(ran.exception, errors.ClusterError)
    assert str(ran.exception) == "nowhere/kubectl: No such file or directory; expected a program"
