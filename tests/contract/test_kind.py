"""`hack/kind-up.sh` where no Docker is: what it tells docker, kind and helm, and that these hold.

The programs are recorded, not run: only the machines it lays out, the images it makes here and the
chart are real.
"""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chart import helm
from hack.cluster import layout

ROOT = helm.ROOT
RECORD = """\
#!/bin/sh
printf '%s ' "$(basename "$0")" "$@" >> "$RECORDS/calls"
echo >> "$RECORDS/calls"
case "$*" in *"--config -"*) cat > "$RECORDS/kind.yaml" ;; esac
"""
WORKERS = ("gpus-worker", "gpus-worker2")

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="the machines have device nodes"),
]


class Run:
    """The script, with recorders in the place of the programs that need Docker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs = folder / "bin"
        self._programs.mkdir()
        for name in ("docker", "kind", "kubectl", "helm"):
            program = self._programs / name
            program.write_text(RECORD)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def __call__(self, *words: str) -> list[str]:
        """What it called, a line each."""
        (self.folder / "calls").write_text("")
        environment = {
            **os.environ,
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "RECORDS": str(self.folder),
            "FOLDER": str(self.folder / "machines"),
            "CLUSTER": "gpus",
            "MACHINE": "t4",
        }
        script = str(ROOT / "hack" / "kind-up.sh")
        subprocess.run([script, *words], env=environment, check=True, capture_output=True)
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def nodes(run: Run) -> list[dict[str, Any]]:
    found = yaml.safe_load((run.folder / "kind.yaml").read_text())
    assert found["name"] == "gpus"
    return list(found["nodes"])


def test_each_worker_has_a_machine_of_its_own_where_the_charts_values_look_for_it(run: Run) -> None:
    run("up")
    plain, *workers = nodes(run)
    assert "extraMounts" not in plain
    for name, worker in zip(WORKERS, workers, strict=True):
        machine = run.folder / "machines" / "gpus" / name
        mounts = {one["containerPath"]: Path(one["hostPath"]) for one in worker.pop("extraMounts")}
        assert mounts == {
            str(layout.HOST_ROOT): machine / "host-root",
            "/run/nvidia/driver": machine / "driver-root",
            f"{layout.HOST_ROOT}/run/nvidia/driver": machine / "driver-root",
        }
        assert (machine / "driver-root/dev/nvidia0").is_char_device()
        assert (machine / "host-root/proc/driver/nvidia/version").is_file()
    untouched = yaml.safe_load((ROOT / "kind-config.yaml").read_text())
    assert [plain, *workers] == untouched["nodes"]


def test_a_machines_process_shares_its_nodes_numbers_and_folder(run: Run) -> None:
    started = [one for one in run("up") if one.startswith("docker run")]
    for name, call in zip(WORKERS, started, strict=True):
        machine = run.folder / "machines" / "gpus" / name
        assert f"--pid container:{name} --volume {machine}:{machine} " in call
        assert call.endswith(f"ration:dev python -m simulator run {machine} ")


def test_the_chart_takes_the_values_and_puts_the_node_parts_on_workers_only(run: Run) -> None:
    (call,) = [one for one in run("up") if one.startswith("helm ")]
    words = call.split()
    values = [
        f"{word}={words[at + 1]}"
        for at, word in enumerate(words)
        if word in {"--set", "--set-string", "--values"}
    ]
    found = helm.objects(helm.template(*values))
    daemons = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in found
        if one["kind"] == "DaemonSet"
    }
    assert set(daemons) == {"ration-kubeletplugin", "ration-mps"}
    for pod in daemons.values():
        assert pod["nodeSelector"] == {"ration.dev/allocator": "controller"}
        assert {one["image"] for one in pod["containers"]} == {"ration:dev"}
    _, *workers = nodes(run)
    assert all(one["labels"] == {"ration.dev/allocator": "controller"} for one in workers)


def test_images_are_loaded_before_the_chart_is_installed(run: Run) -> None:
    calls = run("up")
    steps = ("docker build", "kind create", "docker run", "kind load", "helm upgrade")
    places = [next(at for at, call in enumerate(calls) if call.startswith(one)) for one in steps]
    assert places == sorted(places)
    (archive,) = [one.split()[3] for one in calls if one.startswith("kind load image-archive")]
    assert Path(archive).is_file()


def test_down_takes_away_what_up_made(run: Run) -> None:
    run("up")
    calls = run("down")
    for one in (f"docker rm --force {name}-gpus " for name in WORKERS):
        assert one in calls
    assert "kind delete cluster --name gpus " in calls
    assert not (run.folder / "machines" / "gpus").exists()


def test_what_it_does_not_know_is_refused(run: Run) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run("upp")
    assert refused.value.returncode == 2
    assert b"usage: hack/kind-up.sh" in refused.value.stderr
