"""Former options of the command line are refused with the present ones."""

import pytest
from typer.testing import CliRunner

from driver.cli import renamed
from driver.cli.lazy import app


@pytest.mark.parametrize("form", ["{}", "{}=a"])
@pytest.mark.parametrize("former", sorted(renamed.OPTIONS))
def test_a_former_option_is_refused_with_the_present_one(former: str, form: str) -> None:
    answer = CliRunner().invoke(app, ["nodes", form.format(former)])
    assert answer.exit_code == 2
    assert f"{former} has been renamed: use {renamed.OPTIONS[former]}" in answer.output
