"""One GPU in every mode, one after another, as its containers see it; nothing is configured."""

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from driver.kube import client, gvr
from hack.cluster import api
from simulator import control
from tests.e2e import one_gpu, playground

NODE = "e2e-m"
GIB = 1 << 30
TOLD = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/*/*/*-metadata.json"


@pytest.fixture(scope="module")
def node(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[str]:
    with one_gpu.a_node(cluster, kube, NODE, "--usage-seconds=2"):
        yield NODE


def configuration(field: playground.Playground, others: Iterable[str]) -> Any:
    """Return the state that must not change: node, plugin process, pods of other GPUs."""
    result = field.kube.get(gvr.NODES, NODE)
    spec = (result["metadata"]["labels"], result["spec"])
    containers = {
        name: [
            container_status["containerID"]
            for container_status in field.pod(name)["status"]["containerStatuses"]
        ]
        for name in others
    }
    return spec, field.cluster.pid("plugin", NODE), field.cluster.pid("mps", NODE), containers


def test_a_gpu_serves_every_mode_in_turn(field: playground.Playground, node: str) -> None:
    gpu = one_gpu.OneGpu(field, node)
    others = {
        "part": (one_gpu.OneGpu(field, node, 1), one_gpu.A_PART),
        "share": (one_gpu.OneGpu(field, node, 2), one_gpu.MPS),
        "turn": (one_gpu.OneGpu(field, node, 3), one_gpu.TURNS),
    }
    for name, (other, mode) in others.items():
        other.ask(name, mode)
    for name, (other, _) in others.items():
        other.sees(name)
    previous = configuration(field, others)
    for serve in (serve_whole, serve_shares, serve_parts, serve_turns):
        serve(gpu)
        gpu.free()
        board = gpu.board()
        assert (board.compute_mode, board.timeslice, board.instances) == (0, 0, [])
    assert configuration(field, others) == previous
    for other, _ in others.values():
        other.free()


def serve_whole(gpu: one_gpu.OneGpu) -> None:
    gpu.ask("whole", one_gpu.WHOLE)
    seen = gpu.sees("whole")
    assert [device["uuid"] for device in seen["devices"]] == [gpu.uuid]
    assert seen["devices"][0]["limit"] is None
    assert seen["mps"] is None


def serve_shares(gpu: one_gpu.OneGpu) -> None:
    shares = {"a": (20, 10), "b": (30, 40), "c": (25, 50)}
    for name, (gib, percent) in shares.items():
        amounts = {"memory": f"{gib}Gi", "compute": str(percent)}
        gpu.ask(name, one_gpu.MPS, capacity=amounts)
        # kube-scheduler may count a share twice while it binds, and then waits for an event.
        allocated = functools.partial(gpu.field.device_of, name)
        playground.until(allocated, 30, f"{name} is allocated")
    servers = set()
    for name, (gib, percent) in shares.items():
        seen = gpu.sees(name)
        assert seen["devices"][0]["limit"] == gib * GIB
        assert seen["allocated"] == gib * GIB
        assert seen["mps"]["threadPercentage"] == percent
        servers.add(seen["mps"]["server"])
    assert len(servers) == 1


def serve_parts(gpu: one_gpu.OneGpu) -> None:
    profiles = {"one": "1g.10gb", "two": "2g.20gb", "three": "3g.40gb"}
    for name, profile in profiles.items():
        gpu.ask(name, f'$.type == "mig" && $.profile == "{profile}"')
    parts = {name: gpu.sees(name)["devices"][0] for name in profiles}
    assert len({part["uuid"] for part in parts.values()}) == 3
    assert all(part["uuid"].startswith("MIG-") for part in parts.values())
    assert parts["one"]["total"] < parts["two"]["total"] < parts["three"]["total"]


def serve_turns(gpu: one_gpu.OneGpu) -> None:
    long = {"sharing": {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}}
    for name in ("x", "y"):
        gpu.ask(
            name,
            one_gpu.TURNS,
            capacity={"memory": "16Gi"},
            config=long,
            command=f"env | grep RATION_GPU; cat {TOLD}; simclient --allocate 4Gi --hold forever",
        )
    for name in ("x", "y"):
        gpu.field.running(name)
    assert gpu.board().timeslice == 3
    output = gpu.field.cluster.kubectl("logs", "-n", gpu.field.namespace, "x")
    assert f"memory={16 * GIB}," in output
    newest = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    attributes = newest["requests"][0]["devices"][0]["attributes"]
    assert attributes["memory"] == {"int": 16 * GIB}
    assert attributes["uuid"] == {"string": gpu.uuid}


def test_a_client_over_its_limit_is_refused_and_its_neighbour_goes_on(
    field: playground.Playground, node: str
) -> None:
    gpu = one_gpu.OneGpu(field, node)
    gpu.ask(
        "greedy",
        one_gpu.MPS,
        capacity={"memory": "20Gi"},
        command="simclient --allocate 40Gi --hold forever",
    )
    gpu.ask("calm", one_gpu.MPS, capacity={"memory": "30Gi"})
    greedy, calm = gpu.sees("greedy"), gpu.sees("calm")
    assert greedy["refused"]["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert greedy["allocated"] == 20 * GIB
    assert calm["allocated"] == 30 * GIB
    assert calm["refused"] is None or calm["devices"][0]["limit"] == 30 * GIB
    gpu.free()


def test_two_clients_of_one_container_are_summed_and_reported(
    field: playground.Playground, node: str
) -> None:
    gpu = one_gpu.OneGpu(field, node)
    client = "simclient --allocate 15Gi --hold"
    pair = f"{client} 15 & exec {client} forever"
    gpu.ask("pair", one_gpu.MPS, capacity={"memory": "20Gi"}, command=pair)
    gpu.ask("calm", one_gpu.MPS, capacity={"memory": "30Gi"})
    assert gpu.sees("calm")["allocated"] == 30 * GIB

    def both() -> list[Any]:
        lines = field.cluster.kubectl("logs", "-n", field.namespace, "pair").splitlines()
        return [json.loads(line) for line in lines] if len(lines) == 2 else []

    field.running("pair")
    clients = playground.until(both, 20, "both clients say what they have")
    for entry in clients:  # each is within the limit that binds it
        assert (entry["allocated"], entry["devices"][0]["limit"]) == (15 * GIB, 20 * GIB)
        assert entry["refused"] is None
    (message,) = field.told("pair", "ShareExceeded")
    assert f"uses 30.0 GiB of {gpu.uuid}, was given 20.0 GiB" in message
    assert f"of pod {field.namespace}/pair" in message
    for entry in clients:
        assert f"{entry['pid']} (15.0 GiB)" in message
    _, reason, words = field.says("pair", "WithinShare", "False")
    assert (reason, words in message) == ("ShareExceeded", True)
    (retained,) = field.told("pair", "ShareKept", 30)
    assert field.says("pair", "WithinShare", "True")[1] == "ShareKept"
    assert field.conditions("pair").keys() == {"Ready", "WithinShare"}
    assert "uses 15.0 GiB" in retained
    assert field.events("calm", "ShareExceeded") == []
    gpu.free()


def test_a_dead_daemon_is_reported_on_its_claims_and_restarts_without_clients(
    field: playground.Playground, node: str
) -> None:
    gpu = one_gpu.OneGpu(field, node)
    gpu.ask("first", one_gpu.MPS, capacity={"memory": "20Gi"}, restartPolicy="Never")
    previous = gpu.sees("first")["mps"]["server"]
    control.send(gpu.base, "mps_death", gpu.uuid, "0")
    (message, *_) = field.told("first", "MpsFailed", 10)
    assert gpu.uuid in message
    gpu.free()
    gpu.ask("second", one_gpu.MPS, capacity={"memory": "20Gi"})
    after = gpu.sees("second")
    assert after["allocated"] == 20 * GIB
    assert after["mps"]["server"] != previous
    gpu.free()


@pytest.mark.parametrize(
    "terms",
    [one_gpu.WHOLE, one_gpu.MPS, one_gpu.A_PART, one_gpu.TURNS],
    ids=["whole", "mps", "mig", "time-slicing"],
)
def test_a_plugin_killed_during_prepare_leaves_a_running_pod_and_nothing_else(
    field: playground.Playground, node: str, terms: str
) -> None:
    gpu = one_gpu.OneGpu(field, node)
    gpu.ask("pod", terms)
    playground.until(lambda: field.device_of("pod"), 20, "the claim is allocated")
    field.cluster.kill("plugin", node)
    field.cluster.start("plugin", node)
    # A refused call is tried again by the kubelet after a minute or more.
    field.running("pod", 150)
    gpu.free()
    board = gpu.board()
    assert (board.compute_mode, board.timeslice, board.instances) == (0, 0, [])
    state = field.cluster.node_dir(node)
    assert not list((state / "state/claims").iterdir())
    assert not list((state / "mps/desired").glob("*"))
    assert not list((state / "cdi").glob("gpu.ration.dev-*"))


def test_a_force_deleted_pods_gpu_is_prepared_again_once_nothing_runs_on_it(
    field: playground.Playground, node: str
) -> None:
    gpu = one_gpu.OneGpu(field, node)
    modes = [one_gpu.WHOLE, one_gpu.MPS, one_gpu.A_PART, one_gpu.TURNS]
    lasting = f"trap '' TERM; exec {one_gpu.HOLD}"

    def alone_and_running(name: str) -> bool:
        on_it = [process for process in gpu.board().processes if process.memory]
        assert len(on_it) <= 1, (
            on_it
        )  # an one_gpu.MPS server is on it too, and has nothing of its own
        return bool(field.pod(name)["status"].get("phase") == "Running")

    gpu.ask("pod-0", modes[0], command=lasting)
    gpu.sees("pod-0")
    for number in range(1, 21):
        last, name = f"pod-{number - 1}", f"pod-{number}"
        gpu.ask(name, modes[number % len(modes)], command=lasting)
        assert field.device_of(name) is None
        flags = ("--force", "--grace-period=0", "--wait=false")
        field.cluster.kubectl("delete", "pod", "-n", field.namespace, last, *flags)
        field.kube.delete(gvr.RESOURCE_CLAIMS, last, field.namespace)
        gpu.pods.remove(last)
        # Within the wait for a leaving claim: a refusal would be tried again a minute later.
        playground.until(functools.partial(alone_and_running, name), 45, f"{name} runs alone")
        assert field.events(name, "FailedPrepareDynamicResources") == []
        gpu.sees(name)
    gpu.free()
