"""A node moves from NVIDIA's own driver to our plugin and back, by the plan of `ration migrate`.

Its values and its commands, which are those of docs/how-to/controller-only.md, are run as they
stand; a process stands for the DaemonSet of NVIDIA's driver, and ends and starts as that would by
the node's label. Pods on another node keep their GPUs meanwhile.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from driver import names
from driver.kube import gvr
from hack.cluster import api, chart
from tests.e2e import managed_devices, other_drivers, playground, release
from tests.e2e import nvidia_nodes as nvidia
from tests.e2e.conftest import ROOT
from tests.fakes import allocator_history
from tests.support.builders import joint_claims as joint

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
field = release.field
MOVED, OTHER = nvidia.WHOLE, nvidia.DYNAMIC
PAGE = ROOT / "docs/how-to/controller-only.md"
SECTION = "## From there to our plugin, node by node, and back"
WIPED_S = 90.0
"""A kubelet deletes the slices of a driver that has left after half a minute."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    """Two nodes that NVIDIA's driver serves, and our controller alone."""
    source = nvidia.folder()
    with release.a_cluster() as loaded:
        managed_devices.require_rules(loaded)
        with nvidia.controller_alone(loaded, source) as kube:
            loaded.install_nvidia_driver(source, MOVED, OTHER)
            nvidia.wait_managed(kube)
            yield loaded


def claim_for_either() -> dict[str, object]:
    """Return the devices of the page's claim for a GPU of either driver."""
    section = PAGE.read_text().partition(SECTION)[2]
    (text,) = re.findall(r"^    devices:\n(?:     .*\n)+", section, re.MULTILINE)
    devices: dict[str, object] = yaml.safe_load(text)["devices"]
    return devices


def shell(cluster: api.Cluster, command: str) -> str:
    """Run a command of the plan for the moved node; return what it printed."""
    words = shlex.split(command.replace("NODE", MOVED), comments=True)
    programs = {"kubectl": cluster.programs / "kubectl", "ration": Path(sys.executable)}
    program = str(programs[words[0]].with_name(words[0]))
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(
        [program, *words[1:]],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    sys.stdout.write(f"$ {command}\n{done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def drivers(field: playground.Playground) -> set[str]:
    """Return the drivers that publish devices of the moved node."""
    slices = field.kube.list(gvr.RESOURCE_SLICES, field_selector=f"spec.nodeName={MOVED}").items
    return {str(entry["spec"]["driver"]) for entry in slices}


def standing(field: playground.Playground, name: str) -> tuple[str, str, object]:
    """Return what a pod would lose by a restart: its container, and its claim's devices."""
    (container,) = field.running(name)["status"]["containerStatuses"]
    return container["containerID"], name, field.claim(name)["status"]["allocation"]


def run(field: playground.Playground, name: str, device_class: str, node: str) -> None:
    """Have a pod with a device of a class run on a node."""
    field.create(
        joint.a_claim(name, joint.only(device_class)),
        other_drivers.a_pod(name, name, node=node),
    )
    field.running(name, 90)


def test_a_node_moves_to_our_plugin_and_back_while_pods_of_other_nodes_run(
    field: playground.Playground, tmp_path: Path
) -> None:
    run(field, "stays", nvidia.DRIVER, OTHER)
    web = other_drivers.a_workload("Deployment", "web", "gpu", 2)
    web["spec"]["template"]["spec"]["nodeSelector"] = playground.on(MOVED)
    with nvidia.applied(field, [nvidia.template("gpu", nvidia.request()), web]):
        move_there_and_back(field, tmp_path)


def move_there_and_back(field: playground.Playground, folder: Path) -> None:
    """Do as the plan says, with two pods of a Deployment on the node, and one elsewhere."""
    cluster = field.cluster
    playground.until(lambda: nvidia.phases(field) == ["Running"] * 3, 60, "all run")
    earlier = standing(field, "stays")

    command = f"ration migrate --from-dra {nvidia.DRIVER} --node NODE -o json"
    plan = json.loads(shell(cluster, command))
    (moved,) = plan["nodes"]
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(plan["values"]))
    chart.install(release.WHERE, f"--values={values}")
    assert drivers(field) == {nvidia.DRIVER}
    assert standing(field, "stays") == earlier

    drain, label, listing, doctor, uncordon = moved["takeover"]
    shell(cluster, drain)
    shell(cluster, label)
    cluster.stop(nvidia.DRIVER, MOVED)
    playground.until(lambda: drivers(field) == {names.DRIVER}, WIPED_S, "our slices alone")
    assert names.DRIVER in shell(cluster, listing)
    shell(cluster, doctor)
    shell(cluster, uncordon)
    run(field, "ours", names.CLASS_GPU, MOVED)
    assert len(field.uuids("ours")) == 1
    run(field, "theirs", nvidia.DRIVER, OTHER)
    either = claim_for_either()
    for node in (MOVED, OTHER):
        field.create(
            joint.a_claim(f"either-{node}", either),
            other_drivers.a_pod(f"either-{node}", f"either-{node}", node=node),
        )
        field.running(f"either-{node}")
    chosen = {
        result["driver"]
        for node in (MOVED, OTHER)
        for result in other_drivers.results(field.claim(f"either-{node}"))
    }
    assert chosen == {names.DRIVER, nvidia.DRIVER}
    assert standing(field, "stays") == earlier

    for name in ("ours", f"either-{MOVED}"):
        field.delete_pod(name)
    drain, label, listing, uncordon = moved["rollback"]
    shell(cluster, drain)
    shell(cluster, label)
    cluster.start(nvidia.DRIVER, MOVED)
    playground.until(lambda: drivers(field) == {nvidia.DRIVER}, WIPED_S, "their slices alone")
    assert nvidia.DRIVER in shell(cluster, listing)
    shell(cluster, uncordon)
    run(field, "again", nvidia.DRIVER, MOVED)
    assert allocator_history.allocator_of(field.claim("again")) == allocator_history.CONTROLLER
    playground.until(lambda: set(nvidia.phases(field)) == {"Running"}, 60, "all run again")
    assert standing(field, "stays") == earlier
    assert field.events_of("FailedPrepareDynamicResources") == []
