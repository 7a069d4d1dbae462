"""The demo as it stands, its `too-big` waiting, and then pods of every mode beside it.

The cluster has the driver as pods, as `make demo` makes it.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.kube import client
from hack.cluster import api
from tests.e2e import playground, release
from tests.e2e.conftest import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
cluster = release.cluster
Raw = dict[str, Any]
REPLICAS, WHOLE = 8, 4
"""Of each share, and of whole GPUs: what the demo and the shares leave free."""
_MEMORY = {"requests": {"memory": "5Gi"}}
SHARES: dict[str, Raw] = {
    "mps": {"deviceClassName": "gpu-mps.ration.dev", "capacity": _MEMORY},
    "timeslice": {"deviceClassName": "gpu-timeslice.ration.dev", "capacity": _MEMORY},
    "mig": {"deviceClassName": "gpu-mig.ration.dev"},
}
RUN_S = 60.0


@pytest.fixture(scope="module")
def demo(cluster: api.Cluster) -> Iterator[api.Cluster]:
    """The quickstart runs, and `too-big` waits in it."""
    subprocess.run([sys.executable, "-m", "hack.demo"], cwd=ROOT, check=True, timeout=300)
    yield cluster
    cluster.kubectl("delete", "namespace", "quickstart", "--timeout=120s")


@pytest.fixture
def field(demo: api.Cluster) -> Iterator[playground.Playground]:
    kube = client.KubeClient.connect(demo.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(demo, kube)
    try:
        yield ground
    finally:
        demo.kubectl("delete", "deployment", "--all", "-n", ground.namespace, "--timeout=60s")
        ground.close()


def template(mode: str) -> Raw:
    exactly: Raw = {"deviceClassName": names.DRIVER, **SHARES.get(mode, {})}
    if mode == "mig":
        chosen = f'device.attributes["{names.DRIVER}"].profile == "1g.10gb"'
        exactly["selectors"] = [{"cel": {"expression": chosen}}]
    return playground.a_template(mode, 1, **exactly)


def deployment(mode: str, replicas: int) -> Raw:
    labels = {"app": mode}
    pod = release.a_pod(mode, template=mode)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": mode},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


def test_eight_pods_of_every_share_and_whole_gpus_run_beside_a_pod_that_waits(
    demo: api.Cluster, field: playground.Playground
) -> None:
    for mode in (*SHARES, "whole"):
        field.create(template(mode))
    fromkeys = dict.fromkeys(SHARES, REPLICAS) | {"whole": WHOLE}
    begun = time.monotonic()
    for mode, replicas in fromkeys.items():
        document = json.dumps(deployment(mode, replicas))
        demo.kubectl("apply", "-n", field.namespace, "-f", "-", input=document)
    for mode in fromkeys:
        left_s = RUN_S - (time.monotonic() - begun)
        demo.kubectl(
            *("rollout", "status", f"deployment/{mode}", "-n", field.namespace),
            f"--timeout={max(left_s, 1):.0f}s",
        )
    assert phase(demo, "too-big") == "Pending"
    assert warned(demo, field.namespace) == {}


def test_only_the_pod_that_waits_shows_a_warning(demo: api.Cluster) -> None:
    assert warned(demo, "quickstart").keys() == {"too-big"}
    assert gates(demo, "too-big") == ""


def test_the_pending_pod_names_the_nearest_node_and_its_blocker(
    demo: api.Cluster,
) -> None:
    words = told(demo, "too-big")
    assert "node-1" in words
    assert "either" in words


def phase(demo: api.Cluster, pod: str) -> str:
    return demo.kubectl("get", "pod", pod, "-n", "quickstart", "-o", "jsonpath={.status.phase}")


def gates(demo: api.Cluster, pod: str) -> str:
    words = ("get", "pod", pod, "-n", "quickstart", "-o")
    return demo.kubectl(*words, "jsonpath={.spec.schedulingGates}")


def warned(demo: api.Cluster, namespace: str) -> dict[str, str]:
    """Return the pods that have an event of type Warning, each with the words of one."""
    listed = demo.kubectl("get", "events.events.k8s.io", "-n", namespace, "-o", "json")
    return {
        event["regarding"]["name"]: f"{event['reason']}: {event['note']}"
        for event in json.loads(listed)["items"]
        if event["type"] == "Warning" and event["regarding"]["kind"] == "Pod"
    }


def told(demo: api.Cluster, pod: str) -> str:
    """The newest NoFit of a pod."""
    fields = f"reason=NoFit,regarding.name={pod}"
    options = ("-n", "quickstart", "--field-selector", fields, "-o", "json")
    items = json.loads(demo.kubectl("get", "events.events.k8s.io", *options))["items"]
    return str(items[-1]["note"])
