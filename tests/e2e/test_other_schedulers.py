"""Pods of other schedulers beside ours: a second kube-scheduler, and binders of these tests.

The controller allocates the claims of a pod whatever its `schedulerName`. A kube-scheduler of
another name then does all that the first one does. A binder that knows nothing of claims is
followed to the node that it binds to, and one that allocates claims leaves our devices alone.
"""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from driver import errors, names
from driver.kube import client, gvr
from driver.resources.dra import claims
from driver.scheduling.snapshot import snapshot
from hack.cluster import api
from tests.e2e import deployments, managed_devices, other_drivers, playground

Raw = playground.Raw
SECOND, BINDER = "second-scheduler", "example-binder"
NIC = "nic.example.com"
NODE = "e2e-a"
Choose = Callable[[Raw], str]
"""The node of a pod, "" to leave it for later."""


@contextlib.contextmanager
def scheduler(cluster: api.Cluster, folder: Path, name: str) -> Iterator[Path]:
    """Run a kube-scheduler whose only profile has this name; yield its log."""
    flags = {
        key: value
        for key, _, value in (word.partition("=") for word in cluster.command("kube-scheduler"))
    }
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": flags["--kubeconfig"]},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": name}],
    }
    path, log = folder / "scheduler.json", folder / "scheduler.log"
    path.write_text(json.dumps(configuration))
    program = cluster.command("kube-scheduler")[0]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [program, f"--config={path}", "--secure-port=0"], stderr=stream, stdout=stream
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(20)


@contextlib.contextmanager
def binder(field: playground.Playground, choose: Choose) -> Iterator[None]:
    """Bind the namespace's pods of `BINDER` to the nodes that are chosen for them meanwhile."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.1):
            for name, node in [(pod, choose(raw)) for pod, raw in waiting(field).items()]:
                if node:
                    bind(field, name, node)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)


def waiting(field: playground.Playground) -> dict[str, Raw]:
    """Return the pods of the binder that are not bound, by name."""
    pods = field.kube.list(gvr.PODS, namespace=field.namespace).items
    return {
        pod["metadata"]["name"]: pod
        for pod in pods
        if pod["spec"]["schedulerName"] == BINDER and not pod["spec"].get("nodeName")
    }


def bind(field: playground.Playground, pod: str, node: str) -> None:
    body: Raw = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    with contextlib.suppress(errors.Conflict, errors.NotFound):  # it has a gate, or is gone
        field.kube.create(gvr.PODS, body, field.namespace, subresource="binding", name=pod)


def deployment(name: str, template: str, replicas: int, scheduler_name: str) -> Raw:
    workload = other_drivers.a_workload("Deployment", name, template, replicas)
    workload["spec"]["template"]["spec"]["schedulerName"] = scheduler_name
    return workload


def running(field: playground.Playground, count: int) -> list[Raw]:
    """Wait until so many pods run, each on the node of its claims; return them."""

    def started() -> list[Raw]:
        items = field.kube.list(gvr.PODS, namespace=field.namespace).items
        pods = [item for item in items if item["status"].get("phase") == "Running"]
        return pods if len(pods) == count else []

    pods = playground.until(started, 60, f"{count} pods run")
    for pod in pods:
        for entry in pod["status"]["resourceClaimStatuses"]:
            claim = claims.parse(field.claim(entry["resourceClaimName"]))
            assert snapshot.pinned_node(claim) == pod["spec"]["nodeName"]
    return pods


def held(field: playground.Playground) -> list[tuple[str, str]]:
    """Return all allocated devices of the namespace."""
    return [
        (result["pool"], result["device"])
        for claim in field.claims()
        for result in other_drivers.results(claim)
    ]


def end(field: playground.Playground, name: str) -> None:
    words = ("delete", "deployment", name, "--cascade=foreground", "--timeout=90s")
    field.cluster.kubectl(*words, "--namespace", field.namespace)


def test_pods_of_a_second_kube_scheduler_run_beside_those_of_the_first(
    field: playground.Playground, tmp_path: Path
) -> None:
    field.create(playground.a_template("gpu"))
    with scheduler(field.cluster, tmp_path, SECOND):
        deployments.apply(
            field,
            deployment("first", "gpu", 4, "default-scheduler"),
            deployment("second", "gpu", 4, SECOND),
        )
        try:
            running(field, 8)
            assert len(set(held(field))) == 8
            scheduled = [
                item["reportingController"]
                for item in field.kube.list(gvr.EVENTS, namespace=field.namespace).items
                if item["reason"] == "Scheduled"
            ]
            assert scheduled.count(SECOND) == 4
        finally:
            end(field, "first")
            end(field, "second")


def test_a_gang_of_a_second_kube_scheduler_starts_as_a_whole(
    field: playground.Playground, tmp_path: Path
) -> None:
    field.create(playground.a_template("four", 4))
    members = [f"rank-{number}" for number in range(4)]
    with scheduler(field.cluster, tmp_path, SECOND):
        for name in members:
            pod = playground.a_pod(name, template="four", schedulerName=SECOND)
            pod["metadata"]["labels"] = {names.GANG_LABEL: "train"}
            pod["metadata"]["annotations"] = {names.GANG_SIZE: "4"}
            field.create(pod)
        for name in members:
            field.running(name)
        assert len(set(held(field))) == 16
        for name in members:
            field.delete_pod(name)


def test_a_pod_that_waits_under_a_second_kube_scheduler_is_told_why(
    field: playground.Playground, tmp_path: Path
) -> None:
    field.create(playground.a_claim("nine", 9))
    with scheduler(field.cluster, tmp_path, SECOND):
        field.create(playground.a_pod("nine", claims=("nine",), schedulerName=SECOND))
        (note, *_) = field.told("nine", "NoFit")
        assert "8 of 9" in note
        field.delete_pod("nine")


def test_a_binder_that_goes_by_the_claims_node_has_its_pods_run(
    field: playground.Playground,
) -> None:
    field.create(playground.a_template("gpu"))

    def choose(pod: Raw) -> str:
        """Return the node of the pod's claims."""
        names_made = pod.get("status", {}).get("resourceClaimStatuses", ())
        parsed = [claims.parse(field.claim(entry["resourceClaimName"])) for entry in names_made]
        nodes = {snapshot.pinned_node(claim) for claim in parsed if claim.allocation}
        return str(nodes.pop()) if len(nodes) == 1 else ""

    with binder(field, choose):
        deployments.apply(field, deployment("web", "gpu", 6, BINDER))
        try:
            running(field, 6)
            assert len(set(held(field))) == 6
        finally:
            end(field, "web")


def test_a_binder_that_knows_no_claims_is_followed_to_its_node(
    field: playground.Playground,
) -> None:
    field.create(playground.a_template("gpu"))
    with binder(field, lambda _pod: NODE):
        deployments.apply(field, deployment("web", "gpu", 6, BINDER))
        try:
            assert {pod["spec"]["nodeName"] for pod in running(field, 6)} == {NODE}
            assert len(set(held(field))) == 6
        finally:
            end(field, "web")


def test_a_pod_bound_where_no_device_is_left_says_so_and_runs_later(
    field: playground.Playground,
) -> None:
    field.create(playground.a_claim("all", 8), playground.a_claim("more"))
    field.create(playground.a_pod("all", claims=("all",), nodeSelector=playground.on(NODE)))
    field.running("all")
    with binder(field, lambda _pod: NODE):
        field.create(playground.a_pod("more", claims=("more",), schedulerName=BINDER))
        playground.until(lambda: field.pod("more")["spec"].get("nodeName"), 20, "it is bound")
        playground.until(
            lambda: any("bound to e2e-a" in note for note in field.events("more")),
            30,
            "it says that its claims can only be allocated there",
        )
        field.delete_pod("all")
        field.running("more")
    assert field.device_of("more") is not None


def test_a_scheduler_that_allocates_claims_keeps_those_of_its_own_devices(
    field: playground.Playground, kube: client.KubeClient
) -> None:
    managed_devices.require_rules(field.cluster)
    with managed_devices.unprepared(kube, NODE, NIC, "nic", 2):
        field.create(playground.a_claim("nic", deviceClassName=NIC), playground.a_claim("gpu"))
        pod = playground.a_pod("both", claims=("nic", "gpu"), schedulerName=BINDER)
        field.create(pod)
        playground.until(lambda: field.device_of("gpu"), 30, "ours is allocated")
        assert snapshot.pinned_node(claims.parse(field.claim("gpu"))) == NODE
        assert field.device_of("nic") is None
        other_drivers.allocate(field, "nic", allocation(NIC, "nic-0"))
        time.sleep(5)
        assert field.device_of("nic") == (NODE, "nic-0")
        assert not claims.parse(field.claim("nic")).consumers
        field.delete_pod("both")
        playground.until(lambda: field.device_of("gpu") is None, 30, "ours is free again")
        assert field.device_of("nic") == (NODE, "nic-0")
        field.kube.delete(gvr.RESOURCE_CLAIMS, "nic", field.namespace)
        playground.until(lambda: not exists(field, "nic"), 30, "the claim is gone")


def exists(field: playground.Playground, claim: str) -> bool:
    with contextlib.suppress(errors.NotFound):
        return bool(field.claim(claim))
    return False


def allocation(driver: str, device: str) -> dict[str, Any]:
    """Return an allocation of a device of the node, as an allocator writes it."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
    result = {"request": "gpu", "driver": driver, "pool": NODE, "device": device}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
