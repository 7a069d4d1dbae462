"""Cordon, drain, must-gather and claims from flags on a real cluster, by `kubectl ration`."""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import names
from driver.devices import faces
from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import playground

NODE = "e2e-a"
RULE = f"ration-cordon-{NODE}"


class Ration:
    """The command line, found by kubectl as its plugin."""

    def __init__(self, cluster: api.Cluster) -> None:
        ours = str(Path(sys.executable).parent)
        self._env = {
            **os.environ,
            "PATH": f"{ours}{os.pathsep}{cluster.programs}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(cluster.kubeconfig),
        }

    def __call__(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "ration", *words],
            env=self._env,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def ration(cluster: api.Cluster, field: playground.Playground) -> Iterator[Ration]:
    created = Ration(cluster)
    yield created
    node = field.kube.get(gvr.NODES, NODE)["metadata"]
    created("uncordon", NODE)
    for gpu in filter(None, node.get("annotations", {}).get(names.CORDON, "").split(",")):
        created("uncordon", f"{NODE}/{gpu}")


def published(kube: client.KubeClient) -> dict[str, set[str]]:
    """The keys of the taints of every device of the node."""
    mine = f"spec.driver={names.DRIVER},spec.nodeName={NODE}"
    items = kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
    return {
        device["name"]: {taint["key"] for taint in device.get("taints", ())}
        for item in items
        for device in item["spec"].get("devices", ())
    }


def condition(kube: client.KubeClient) -> str:
    conditions = kube.get(gvr.NODES, NODE)["status"]["conditions"]
    return next(
        str(entry["status"]) for entry in conditions if entry["type"] == names.NODE_CONDITION
    )


def rules(kube: client.KubeClient, cluster: api.Cluster) -> list[dict[str, Any]]:
    if cluster.kubernetes == "1.36":
        return []  # served there on request only, and not used
    return kube.list(gvr.DEVICE_TAINT_RULES).items


@pytest.mark.smoke
def test_a_cordoned_node_takes_nothing_new_until_it_is_uncordoned(
    field: playground.Playground, ration: Ration, kube: client.KubeClient, cluster: api.Cluster
) -> None:
    field.create(playground.a_claim("before"))
    field.create(playground.a_pod("before", claims=("before",), nodeSelector=playground.on(NODE)))
    field.running("before")

    answer = ration("cordon", NODE)
    assert (answer.returncode, answer.stdout) == (0, f"{NODE} cordoned\n"), answer.stderr
    created = rules(kube, cluster)
    assert [entry["metadata"]["name"] for entry in created] == ([RULE] if created else [])
    noted = kube.get(gvr.NODES, NODE)["metadata"].get("annotations", {})
    assert (names.CORDON in noted) == (cluster.kubernetes == "1.36")

    field.create(playground.a_claim("after"))
    field.create(playground.a_pod("after", claims=("after",), nodeSelector=playground.on(NODE)))
    message, *_ = field.told("after", "NoFit")
    assert "8 DeviceCordoned" in message
    assert field.pod("before")["status"]["phase"] == "Running"
    assert condition(kube) == "True"
    assert ration("cordon", NODE).stdout == f"{NODE} is already cordoned\n"

    assert ration("uncordon", NODE).returncode == 0
    field.running("after")
    assert not rules(kube, cluster)


def test_a_cordoned_gpu_is_tainted_on_every_face_and_the_others_are_allocated(
    field: playground.Playground, ration: Ration, kube: client.KubeClient
) -> None:
    gpu = min(name for name in published(kube) if faces.gpu_name(name) == name)
    answer = ration("cordon", f"{NODE}/{gpu}")
    assert (answer.returncode, answer.stdout) == (0, f"{NODE}/{gpu} cordoned\n"), answer.stderr
    tainted = {name for name, keys in published(kube).items() if names.CORDONED_TAINT in keys}
    assert tainted == {name for name in published(kube) if faces.gpu_name(name) == gpu}
    assert len(tainted) > 3

    field.create(playground.a_claim("all", 8))
    field.create(playground.a_pod("all", claims=("all",), nodeSelector=playground.on(NODE)))
    message, *_ = field.told("all", "NoFit")
    assert "7 of 8 devices fit" in message
    assert "1 DeviceCordoned" in message
    field.create(playground.a_claim("seven", 7))
    field.create(playground.a_pod("seven", claims=("seven",), nodeSelector=playground.on(NODE)))
    field.running("seven")
    assert condition(kube) == "True"
    field.delete_pod("seven")

    assert ration("uncordon", f"{NODE}/{gpu}").returncode == 0
    field.running("all")


def test_draining_evicts_what_would_be_made_again_and_waits_until_nothing_is_held(
    field: playground.Playground, ration: Ration, kube: client.KubeClient, cluster: api.Cluster
) -> None:
    field.create(playground.a_template("one"))
    pod = playground.a_pod("x", template="one", nodeSelector=playground.on(NODE))
    labels = {"app": "drained"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }
    kube.create(gvr.DEPLOYMENTS, deployment, field.namespace)
    playground.until(lambda: len(_running(field)) == 2, 60, "both pods run")

    dry = ration("drain", NODE, "--dry-run", "-o", "json")
    assert dry.returncode == 1, dry.stderr
    held = json.loads(dry.stdout)["holders"]
    assert {entry["fate"] for entry in held} == {"evict"}
    assert {entry["heldBy"].partition("/")[2] for entry in held} == _running(field)
    assert not rules(kube, cluster)

    previous = _running(field)
    answer = ration("drain", NODE, "--evict", "--timeout", "90s")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout == f"nothing holds {NODE}\n"
    for name in previous:
        assert f"pod {field.namespace}/{name} evicted" in answer.stderr
    playground.until(lambda: "NoFit" in field.reasons(), 20, "their successors wait")
    assert not _running(field)

    kube.delete(gvr.DEPLOYMENTS, "web", field.namespace)
    kind = gvr.PODS
    playground.until(lambda: not kube.list(kind, namespace=field.namespace).items, 60, "no pods")


def test_a_bare_pod_is_drained_by_force_only(field: playground.Playground, ration: Ration) -> None:
    field.create(playground.a_claim("lone"))
    field.create(playground.a_pod("lone", claims=("lone",), nodeSelector=playground.on(NODE)))
    field.running("lone")
    answer = ration("drain", NODE, "--evict")
    assert (answer.returncode, "--force evicts it" in answer.stdout) == (1, True)
    assert field.find("lone") is not None
    answer = ration("drain", NODE, "--evict", "--force", "--timeout", "60s")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert field.find("lone") is None


@pytest.mark.parametrize(
    "flags",
    [
        "--whole 2 --same nvlink --product H100",
        "--mig 1g.10gb",
        "--mps --memory 20Gi --compute 25 --template",
        "--time-slice --memory 4Gi",
        "--memory 10Gi --isolation hardware",
    ],
)
def test_a_generated_claim_and_pod_are_taken_by_the_server_and_run(
    field: playground.Playground, ration: Ration, flags: str
) -> None:
    words = (*flags.split(), "--name", "made", "--pod", "-n", field.namespace)
    text = ration("generate", "claim", *words, "--image", "ration.local/workload:latest").stdout
    assert ration("validate", "-f", "-", text=text).returncode == 0
    claim, pod = yaml.safe_load_all(text)
    # What only this lane needs: its image is local, and its nodes are kept apart.
    pod["spec"]["containers"][0] |= {
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", playground.LIST_GPUS],
    }
    pod["spec"]["tolerations"].append(playground.TOLERATION)
    pod["spec"] |= {"nodeSelector": playground.on(NODE), "terminationGracePeriodSeconds": 1}
    field.create(claim, pod)
    field.running("made")


def test_all_that_a_maintainer_needs_is_gathered(
    ration: Ration, tmp_path: Path, cluster: api.Cluster
) -> None:
    to = tmp_path / "found.tar.gz"
    answer = ration("must-gather", "-o", str(to))
    assert answer.returncode == 0, answer.stderr
    with tarfile.open(to) as tar:
        files = {
            member.name.partition("/")[2]: tar.extractfile(member) for member in tar.getmembers()
        }
    assert {"index.json", "cluster.yaml", "doctor.json", "versions.json", "events.json"} <= {*files}
    assert "objects/validatingadmissionpolicies.json" in files
    assert cluster.kubernetes


def _running(field: playground.Playground) -> set[str]:
    items = field.kube.list(gvr.PODS, namespace=field.namespace).items
    return {
        str(item["metadata"]["name"])
        for item in items
        if item["status"].get("phase") == "Running" and "deletionTimestamp" not in item["metadata"]
    }
