"""The plan of the move from another DRA driver, there and back."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from driver.cli.lazy import app
from driver.cli.migrate import steps

RUN = CliRunner()
PAGE = (Path(__file__).parents[4] / "docs/how-to/controller-only.md").read_text()
SECTION = PAGE.partition("## From there to our plugin")[2].partition("\n## ")[0]


def document(*arguments: str) -> dict[str, Any]:
    answer = RUN.invoke(app, ["migrate", "--from-dra", "gpu.nvidia.com", *arguments])
    assert answer.exit_code == 0, answer.output
    result: dict[str, Any] = yaml.safe_load(answer.stdout)
    return result


def test_a_plan_is_text_json_and_yaml_with_the_same_in_them() -> None:
    nodes = ("--node", "gpu-1", "--node", "gpu-2")
    as_json = document(*nodes, "-o", "json")
    assert document(*nodes, "-o", "yaml") == as_json
    assert [entry["node"] for entry in as_json["nodes"]] == ["gpu-1", "gpu-2"]
    text = RUN.invoke(app, ["migrate", "--from-dra", "gpu.nvidia.com", *nodes]).stdout
    for entry in as_json["nodes"]:
        for command in (*entry["takeover"], *entry["rollback"]):
            assert command in text
    assert "*id" not in text


def test_the_page_has_the_commands_and_the_values_of_the_plan() -> None:
    plan = document("-o", "json")
    (moved,) = plan["nodes"]
    commands = [command.partition("  #")[0] for command in moved["takeover"]]
    assert "\n".join(f"    {command}" for command in commands) in SECTION
    assert f"`{moved['rollback'][1]}`" in SECTION
    (values,) = re.findall(r"(?:^    \w+: \{.*\}\n){4}", SECTION, re.MULTILINE)
    assert yaml.safe_load(values) == plan["values"]
    key, operator = plan["matchExpressionOfTheDriver"].values()
    assert f"- {{key: {key}, operator: {operator}}}" in SECTION


def test_a_node_moves_back_by_the_label_alone() -> None:
    moved = steps.DraPlan("gpu.nvidia.com").node_steps("gpu-1")
    labels = [command for command in (*moved.takeover, *moved.rollback) if " label " in command]
    assert labels == [
        "kubectl label node gpu-1 ration.dev/taken-over=true",
        "kubectl label node gpu-1 ration.dev/taken-over-",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--node", "gpu-1"],
        ["old.yaml", "--from-dra", "gpu.nvidia.com"],
        ["--from-dra", "gpu.nvidia.com", "--configmap", "plugin"],
        ["--from-dra", "gpu.nvidia.com", "--nodes", "nodes.json"],
        ["--from-dra", "gpu.nvidia.com", "--out", "plan"],
    ],
)
def test_a_plan_of_a_dra_driver_takes_nothing_else(arguments: list[str]) -> None:
    answer = RUN.invoke(app, ["migrate", *arguments])
    assert answer.exit_code == 2
    assert "--from-dra, with --node and --output alone" in answer.output
