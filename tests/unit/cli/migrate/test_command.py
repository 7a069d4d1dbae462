import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from driver.cli.lazy import app
from tests.support import migrate_cases

RUN = CliRunner()
OLD = "version: v1\nflags: {gdsEnabled: true}\n"
QUIET = "version: v1\n"


def written(folder: Path, text: str) -> str:
    path = folder / "old.yaml"
    path.write_text(text)
    return str(path)


def test_a_plan_is_text_json_and_yaml_with_the_same_in_them(tmp_path: Path) -> None:
    old = written(tmp_path, OLD)
    text = RUN.invoke(app, ["migrate", old])
    as_json = RUN.invoke(app, ["migrate", old, "-o", "json"])
    as_yaml = RUN.invoke(app, ["migrate", old, "-o", "yaml"])
    assert text.exit_code == as_json.exit_code == as_yaml.exit_code == 0
    document = json.loads(as_json.output)
    assert yaml.safe_load(as_yaml.output) == document
    settings = {setting["path"]: setting["fate"] for setting in document["configs"][0]["settings"]}
    assert settings == {"version": "used", "flags.gdsEnabled": "changed"}
    assert "changed  flags.gdsEnabled=true: GPUDirect" in text.output


def test_every_old_configuration_can_be_told_as_json_and_yaml(tmp_path: Path) -> None:
    case = next(case for case in migrate_cases.CASES if case.name.startswith("12"))
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"kind": "List", "items": case.nodes}))
    old = written(tmp_path, case.files["configmap.yaml"])
    answer = RUN.invoke(app, ["migrate", old, "--nodes", str(nodes), "-o", "json"])
    document = json.loads(answer.output)
    assert [node["name"] for node in document["nodes"]] == case.expected["order"]
    assert document["values"]["kubeletPlugin"]["offerings"] == case.expected["offerings"]


def test_files_are_written_with_out_and_kept_without_force(tmp_path: Path) -> None:
    old, folder = written(tmp_path, OLD), tmp_path / "plan"
    first = RUN.invoke(app, ["migrate", old, "--out", str(folder)])
    assert first.exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "device-plugin-values.yaml",
        "offerings.yaml",
        "plan.txt",
        "values.yaml",
    ]
    assert (folder / "plan.txt").read_text() == first.output
    (folder / "values.yaml").write_text("mine")
    again = RUN.invoke(app, ["migrate", old, "--out", str(folder)])
    assert again.exit_code == 2
    assert "--force" in again.output
    assert (folder / "values.yaml").read_text() == "mine"
    forced = RUN.invoke(app, ["migrate", old, "--out", str(folder), "--force"])
    assert forced.exit_code == 0
    assert "offerings" in (folder / "values.yaml").read_text()


def test_nothing_is_written_without_out(tmp_path: Path) -> None:
    old = written(tmp_path, OLD)
    RUN.invoke(app, ["migrate", old])
    assert [path.name for path in tmp_path.iterdir()] == ["old.yaml"]


def test_strict_exits_1_where_something_has_to_be_looked_at(tmp_path: Path) -> None:
    assert RUN.invoke(app, ["migrate", written(tmp_path, OLD), "--strict"]).exit_code == 1
    assert RUN.invoke(app, ["migrate", written(tmp_path, QUIET), "--strict"]).exit_code == 0
    unknown = written(tmp_path, "version: v1\ncolor: green\n")
    assert RUN.invoke(app, ["migrate", unknown, "--strict"]).exit_code == 1


def test_an_unreadable_file_exits_2_with_its_location(tmp_path: Path) -> None:
    bad = RUN.invoke(app, ["migrate", written(tmp_path, "version: v9")])
    assert (bad.exit_code, "version" in bad.output) == (2, True)
    absent = RUN.invoke(app, ["migrate", str(tmp_path / "none.yaml")])
    assert (absent.exit_code, "none.yaml" in absent.output) == (2, True)
    neither = RUN.invoke(app, ["migrate"])
    assert (neither.exit_code, "--configmap" in neither.output) == (2, True)


def test_standard_input_is_read() -> None:
    answer = RUN.invoke(app, ["migrate", "-", "-o", "json"], input=QUIET)
    assert json.loads(answer.output)["configs"][0]["offers"] == [{"faces": ["whole"]}]


def test_help_teaches_how_to_begin_and_what_the_exit_codes_are() -> None:
    answer = RUN.invoke(app, ["migrate", "--help"])
    for words in ("get configmap", "kubectl get nodes -o json", "Nothing is applied", "Exit codes"):
        assert words in " ".join(answer.output.split())
