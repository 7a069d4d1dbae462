import json

import pytest
from typer.testing import CliRunner

from driver import reasons
from driver.cli import output
from driver.cli.lazy import app

RUN = CliRunner()


def test_every_reason_is_listed_with_its_meaning() -> None:
    answer = RUN.invoke(app, ["reasons", "-o", "json"])
    assert answer.exit_code == 0
    document = {load["reason"]: load["meaning"] for load in json.loads(answer.output)}
    assert document == {reason.value: reason.meaning for reason in reasons.Reason}


def test_a_single_reason_can_be_queried() -> None:
    answer = RUN.invoke(app, ["reasons", "DeviceTaken", "-o", "yaml"])
    assert "allocated to another claim" in " ".join(answer.output.split())


def test_an_unknown_reason_is_refused_with_what_to_do() -> None:
    answer = RUN.invoke(app, ["reasons", "Nope"])
    assert answer.exit_code == 2
    assert "`ration reasons` lists them all" in answer.output


def test_the_version_is_told_as_json_too() -> None:
    answer = RUN.invoke(app, ["version", "-o", "json"])
    assert json.loads(answer.output)[0]["driver"] == "gpu.ration.dev"


def test_help_names_every_command() -> None:
    answer = RUN.invoke(app, ["--help"])
    assert all(name in answer.output for name in ("doctor", "reasons", "version"))


def test_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_rows([{"found": "spec.devices[0] is [bold] no markup"}], output.Format.TABLE)
    assert "spec.devices[0] is [bold] no markup" in capsys.readouterr().out
