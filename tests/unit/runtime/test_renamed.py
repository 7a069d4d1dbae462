"""Former names of flags and environment variables are refused with the present ones."""

from pathlib import Path

import pytest

from driver import errors
from driver.controller.config import ControllerConfig
from driver.kubeletplugin.config import PluginConfig
from driver.mps.config import SupervisorConfig
from driver.runtime import renamed, settings
from driver.webhook.config import AdmissionConfig

PROGRAMS: tuple[type[settings.ProcessSettings], ...] = (
    ControllerConfig,
    PluginConfig,
    SupervisorConfig,
    AdmissionConfig,
)


def program(former: str) -> type[settings.ProcessSettings]:
    """Return the settings that have the present name of the former one."""
    (model,) = [model for model in PROGRAMS if renamed.FLAGS[former] in model.model_fields]
    return model


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@pytest.mark.parametrize("form", ["{}", "{}=1", "--no-{}"])
@pytest.mark.parametrize("former", sorted(renamed.FLAGS))
def test_a_former_flag_is_refused_with_the_present_one(former: str, form: str) -> None:
    argument = form.format(flag(former) if form.startswith("{") else former.replace("_", "-"))
    with pytest.raises(errors.BadInput) as refused:
        program(former).read(["--node-name=a", argument])
    assert f"{flag(former)} has been renamed: use {flag(renamed.FLAGS[former])}" in str(
        refused.value
    )


@pytest.mark.parametrize("former", sorted(renamed.FLAGS))
def test_a_former_variable_is_refused_with_the_present_one(
    monkeypatch: pytest.MonkeyPatch, former: str
) -> None:
    monkeypatch.setenv(f"RATION_{former.upper()}", "1")
    with pytest.raises(errors.BadInput) as refused:
        program(former).read([])
    present = renamed.FLAGS[former].upper()
    assert f"RATION_{former.upper()} has been renamed: use RATION_{present}" in str(refused.value)


def test_all_former_names_of_a_command_line_are_reported_at_once() -> None:
    with pytest.raises(errors.BadInput) as refused:
        ControllerConfig.read(["--usual=a", "--writers", "4"])
    assert "--workload-mix" in str(refused.value)
    assert "--write-workers" in str(refused.value)


def test_a_former_variable_of_another_program_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RATION_BESIDE", "nobody")
    assert ControllerConfig.read([]).write_workers == 8


def test_no_former_name_is_a_present_one() -> None:
    present = {name for model in PROGRAMS for name in model.model_fields}
    assert not present & set(renamed.FLAGS)
    assert set(renamed.FLAGS.values()) <= present


def test_the_upgrade_page_lists_every_renamed_flag() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "upgrade.md").read_text()
    for former, present in renamed.FLAGS.items():
        assert f"| `{flag(former)}` | `{flag(present)}`" in page
