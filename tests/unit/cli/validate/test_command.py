"""`ration validate`: what is wrong with files."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from driver import names
from driver.cli.lazy import app
from driver.cli.validate import checks as validate_checks
from driver.cli.validate import standard_classes
from driver.resources.dra import device_classes
from tests.support import golden
from tests.support.builders import objects

ROOT = Path(__file__).parents[4]
CHART = ROOT / "tests" / "data" / "chart" / "default.yaml"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.FOLDER)
    monkeypatch.delenv("COLUMNS", raising=False)


def validate(*flags: str, text: str = "") -> Result:
    return CliRunner().invoke(app, ["validate", *flags], input=text)


def test_each_problem_names_file_object_field_and_what_was_expected() -> None:
    answer = validate("-f", "validate/wrong.yaml")
    assert answer.exit_code == 1
    golden.same("validate.txt", answer.output)
    golden.same("validate.json", validate("-f", "validate/wrong.yaml", "-o", "json").output)


def test_valid_objects_are_only_counted() -> None:
    answer = validate("-f", "validate/good.yaml")
    assert answer.exit_code == 0
    assert answer.output == "7 checked, 1 with nothing of ours: 0 wrong\n"


def test_folders_and_standard_input_are_read() -> None:
    assert validate("-f", "validate").exit_code == 1
    text = (golden.FOLDER / "validate" / "good.yaml").read_text()
    assert validate("-f", "-", text=text).exit_code == 0
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod"}]})
    answer = validate("-f", "-", "-o", "json", text=listed)
    assert [problem["file"] for problem in json.loads(answer.output)["problems"]] == [
        "standard input"
    ]


def test_an_unreadable_file_is_one_line() -> None:
    for flags, text in ((("-f", "nowhere"), ""), (("-f", "-"), "a: [")):
        answer = validate(*flags, text=text)
        assert (answer.exit_code, answer.output.count("\n")) == (2, 1)


def test_a_class_of_the_files_says_what_it_selects() -> None:
    mine = objects.a_class("mine", f'{_of("type")} == "mig"')
    config = objects.a_config("GpuConfig", "gpu")
    claim = objects.a_claim("c", objects.a_request(deviceClassName="mine"), config=[config])
    dra = {"apiVersion": "resource.k8s.io/v1"}
    documents = [{**dra, "kind": "DeviceClass", **mine}, {**dra, "kind": "ResourceClaim", **claim}]
    (problem,) = validate_checks.check_sources(
        [validate_checks.Source("f", document) for document in documents]
    ).problems
    assert problem.object == "ResourceClaim default/c"
    assert "request gpu got a device for MigDeviceConfig" in problem.message


@pytest.mark.parametrize("folder", sorted((ROOT / "examples").iterdir()))
def test_the_examples_have_nothing_wrong(folder: Path) -> None:
    assert validate("-f", str(folder)).exit_code == 0


def test_the_classes_that_are_taken_for_granted_are_the_charts() -> None:
    results = [entry for entry in yaml.safe_load_all(CHART.read_text()) if entry]
    installed = [
        device_classes.parse(result) for result in results if result["kind"] == "DeviceClass"
    ]
    assert {
        device_class.name: device_class for device_class in installed
    } == standard_classes.device_classes(names.DRIVER)


def _of(attribute: str) -> str:
    return f'device.attributes["{names.DRIVER}"].{attribute}'
