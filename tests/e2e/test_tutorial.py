"""The tutorial, command by command, as its page has them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.cluster import api
from tests.e2e.conftest import ROOT
from tests.fakes import waiting
from tests.support import docs_commands

PAGE = ROOT / "docs" / "tutorial" / "first-shared-gpu.md"
pytestmark = [pytest.mark.cluster, pytest.mark.smoke, pytest.mark.usefixtures("nodes")]


def commands(heading: str) -> list[str]:
    lines = docs_commands.commands(PAGE, heading)
    return [line for line in lines if line.split()[0] in ("kubectl", "ration")]


@pytest.fixture(scope="module")
def environment(cluster: api.Cluster) -> dict[str, str]:
    folders = (cluster.kubeconfig.parent / "bin", Path(sys.executable).parent)
    path = os.pathsep.join((*map(str, folders), os.environ["PATH"]))
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}


def run(command: str, environment: dict[str, str], *, code: int = 0) -> str:
    ended = subprocess.run(
        command.split(), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == code, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def test_a_reader_of_the_tutorial_sees_what_it_says(environment: dict[str, str]) -> None:
    slices, devices = (run(command, environment) for command in commands("Look at the GPUs"))
    assert "gpu.ration.dev" in slices
    assert "H100" in devices
    try:
        share(environment)
        pending(environment)
    finally:
        (remove,) = commands("Clean up")
        run(remove, environment)


def share(environment: dict[str, str]) -> None:
    *apply, shown, logs, events, who = commands("Share one")
    for command in apply:
        run(command, environment)
    assert run(shown, environment).count("allocated,reserved") == 2
    lines = run(logs, environment).splitlines()
    assert len({line.partition("UUID: ")[2] for line in lines if "UUID: " in line}) == 1
    for limit in ("ACTIVE_THREAD_PERCENTAGE=40", "PINNED_DEVICE_MEM_LIMIT=0=20480M"):
        assert sum(line.endswith(limit) for line in lines) == 2
    assert "inference" in run(events, environment)
    assert run(who, environment).count("inference-") >= 2


def pending(environment: dict[str, str]) -> None:
    apply, events, explain = commands("See why a pod is pending")
    run(apply, environment)
    waiting.until(lambda: "No node fits" in run(events, environment), within_s=60)
    assert "No node here has 9 GPUs" in run(explain, environment, code=1)
    assert "too-big" in json.dumps(json.loads(run(f"{explain} -o json", environment, code=1)))
