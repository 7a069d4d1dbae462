"""Commands that need no server: their text is compared exactly, and no command is without such."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

from driver.cli.lazy import app
from hack import cli_page
from tests.support import golden
from tests.support.builders import objects
from tests.support.scenarios import defrag_dumps

ROOT = Path(__file__).parents[3]
RUN = CliRunner()
OTHERS = {
    "ration cordon": "cordon-dry-run.txt",
    "ration doctor": "doctor.txt",
    "ration drain": "drain.txt",
    "ration generate claim": "generate-claim.yaml",
    "ration must-gather": "must-gather.txt",
    "ration validate": "validate.txt",
    "ration uncordon": "cordon-dry-run.txt",
}
"""Recorded by the tests of their own."""


def a_dump(folder: Path) -> str:
    """A node that two pods share out, one of which may be moved."""
    return defrag_dumps.cluster(
        folder,
        {"node-a": 2, "node-b": 2},
        defrag_dumps.running("one", "node-a", "gpu-0"),
        defrag_dumps.running("two", "node-b", "gpu-0"),
    )


def a_pod(folder: Path) -> str:
    claim = objects.a_claim("wide", objects.a_request("gpu", 2))
    pod = objects.a_pod("wide", "wide")
    del claim["status"], pod["status"]
    results = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim},
        {"apiVersion": "v1", "kind": "Pod", **pod},
    ]
    path = folder / "wide.yaml"
    path.write_text(yaml.safe_dump_all(results))
    return str(path)


Words = Callable[[Path], list[str]]
RECORDED: dict[str, Words] = {
    "defrag": lambda to: ["defrag", "--plan", "-f", a_pod(to), "--cluster", a_dump(to)],
    "dump": lambda to: ["dump", "--cluster", a_dump(to)],
    "migrate": lambda _: [
        "migrate",
        str(ROOT / "examples" / "migrate" / "old.yaml"),
        "--nodes",
        str(ROOT / "examples" / "migrate" / "nodes.yaml"),
    ],
    "reasons": lambda _: ["reasons", "NoFit"],
    "simulate": lambda to: ["simulate", "-f", a_pod(to), "--cluster", a_dump(to)],
    "version": lambda _: ["version"],
}


def printed(words: list[str], folder: Path) -> str:
    """Return what a pipe gets; where files lie and which Python runs is nobody's business."""
    answer = RUN.invoke(app, words)
    text = answer.output.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    text = re.sub(r"\b3\.\d+\.\d+\b", "PYTHON", text)
    return f"{text}exit code {answer.exit_code}\n"


@pytest.mark.parametrize("name", RECORDED)
def test_the_output_equals_the_golden_file(name: str, tmp_path: Path) -> None:
    golden.same(f"{name}.txt", printed(RECORDED[name](tmp_path), tmp_path))


def test_every_command_is_recorded() -> None:
    recorded = {path.name for path in golden.FOLDER.iterdir()}
    for command, _ in cli_page.commands(typer.main.get_command(app), "ration"):
        words = command.removeprefix("ration ").replace(" ", "-")
        file = OTHERS.get(command)
        assert file in recorded or any(name.startswith(words) for name in recorded), command
