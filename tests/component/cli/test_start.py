"""Tests of the imports of `ration` commands: they are what starting one costs."""

import json
import subprocess
import sys

import pytest

SLOW = {"google", "grpc", "jinja2", "kubernetes", "pydantic", "rich", "typer", "yaml"}
PROGRAM = """
import json, sys
from driver.cli import __main__
sys.argv = ["ration", *sys.argv[1:]]
try:
    __main__.main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules(*arguments: str) -> set[str]:
    """Names of all modules that a command imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("version",)])
def test_help_and_version_import_none_of_the_libraries(arguments: tuple[str, ...]) -> None:
    assert {name.partition(".")[0] for name in modules(*arguments)} & SLOW == set()


def test_help_imports_no_command() -> None:
    ours = {name for name in modules("--help") if name.startswith("driver.")}
    names = {"catalog", "columns", "front", "__main__"}
    assert ours == {"driver.cli", "driver.names", *(f"driver.cli.{name}" for name in names)}


def test_a_command_imports_no_other() -> None:
    loaded = modules("reasons", "-o", "json")
    assert "driver.cli.commands.reasons" in loaded
    assert {
        "driver.cli.commands.who",
        "driver.cli.doctor.command",
        "driver.kube.client",
        "kubernetes",
    } & loaded == (set())


def test_who_through_the_controller_imports_no_allocator() -> None:
    loaded = modules("who", "--server", "http://127.0.0.1:9")
    assert "driver.cli.commands.who" in loaded
    allocators = ("driver.scheduling.allocator", "driver.scheduling.queues", "driver.resources.cel")
    assert [
        name for name in loaded if name.startswith((*allocators, "google.protobuf", "rich"))
    ] == []


def test_the_tunnel_to_the_controller_loads_no_models_of_kubernetes() -> None:
    program = "import driver.kube.http.port_forward, json, sys; print(json.dumps([*sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name.startswith("kubernetes.client.models.")] == []
