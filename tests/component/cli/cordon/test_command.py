"""`ration cordon`, `uncordon` and `drain` against an API server."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from driver.cli.lazy import app
from driver.kube import gvr
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support import golden
from tests.support.builders import objects

GPU, OTHER = "gpu-0000-18-00-0", "gpu-0000-2a-00-0"
CORDONED = {"key": "ration.dev/cordoned", "effect": "NoSchedule"}
RULE = "ration-cordon-node-a"
Ration = Callable[..., Result]


def a_pod(name: str, claim: str, owner: str = "", **meta: Any) -> objects.Raw:
    pod = objects.a_pod(name, claim, nodeName="node-a", status={"phase": "Running"})
    if owner:
        kind, _, owner_name = owner.partition("/")
        meta["ownerReferences"] = [
            {"apiVersion": "v1", "kind": kind, "name": owner_name, "uid": "o", "controller": True}
        ]
    pod["metadata"] |= meta
    return pod


def held(name: str, device: str, *pods: str, **result: Any) -> objects.Raw:
    reserved = [{"resource": "pods", "name": pod, "uid": objects.uid_of(pod)} for pod in pods]
    status = objects.allocated("node-a", {"device": device, **result}, reserved=reserved)
    return objects.a_claim(name, status=status)


def published(*cordoned: str) -> objects.Raw:
    """The node's slice, with the taint on some GPUs, as the plugin would write it."""
    results = []
    for gpu in (GPU, OTHER):
        taints = [objects.ALLOCATOR_TAINT, *([CORDONED] if gpu in cordoned else [])]
        for name in (gpu, f"{gpu}-mps"):
            device = objects.a_device(name, taints=taints)
            address = gpu.removeprefix("gpu-").replace("-", ":", 2).replace("-", ".")
            more = {"resource.kubernetes.io/pciBusID": address, "uuid": f"GPU-{gpu}"}
            results.append(objects.with_values(device, **more))
    return objects.a_slice("node-a", results)


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(gvr.NODES, objects.a_node())
        running.put(gvr.RESOURCE_SLICES, published())
        yield running


@pytest.fixture
def ration(api: api_server.ApiServer, tmp_path: Path) -> Ration:
    def run(*words: str) -> Result:
        named = f"--kubeconfig={api.kubeconfig(tmp_path)}"
        return CliRunner().invoke(app, [*words, named])

    return run


def without_rules(api: api_server.ApiServer) -> None:
    """Forget device taint rules, as Kubernetes 1.36."""
    gone = faults.Answer(404, "NotFound")
    api.faults.add(gone, lambda request: "devicetaintrules" in request.path, times=99)


def annotation(api: api_server.ApiServer) -> str | None:
    node = api.read(gvr.NODES, "node-a")
    assert node is not None
    result: dict[str, str] = node["metadata"].get("annotations") or {}
    return result.get("ration.dev/cordon")


def test_a_node_is_cordoned_by_one_rule_and_once(api: api_server.ApiServer, ration: Ration) -> None:
    first, second = ration("cordon", "node-a"), ration("cordon", "node-a")
    assert (first.exit_code, first.output) == (0, "node-a cordoned\n")
    assert (second.exit_code, second.output) == (0, "node-a is already cordoned\n")
    (rule,) = api.all(gvr.DEVICE_TAINT_RULES)
    assert rule["metadata"]["name"] == RULE
    assert rule["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "ration",
        "ration.dev/cordon": "true",
    }
    assert rule["spec"] == {
        "deviceSelector": {"driver": "gpu.ration.dev", "pool": "node-a"},
        "taint": CORDONED,
    }
    assert annotation(api) is None
    assert ration("uncordon", "node-a").output == "node-a uncordoned\n"
    assert not api.all(gvr.DEVICE_TAINT_RULES)
    assert ration("uncordon", "node-a").output == "node-a was not cordoned\n"


def test_without_rules_a_node_is_cordoned_by_its_annotation(
    api: api_server.ApiServer, ration: Ration
) -> None:
    without_rules(api)
    api.put(gvr.RESOURCE_SLICES, published(GPU, OTHER))
    answer = ration("cordon", "node-a")
    assert (answer.exit_code, answer.output) == (0, "node-a cordoned\n")
    assert annotation(api) == "all"
    api.put(gvr.RESOURCE_SLICES, published())
    assert ration("uncordon", "node-a").exit_code == 0
    assert annotation(api) is None


@pytest.mark.parametrize("how", [GPU, f"GPU-{GPU}", "0000:18:00.0", GPU.upper()])
def test_a_gpu_is_named_on_its_node_whatever_it_is_called(
    api: api_server.ApiServer, ration: Ration, how: str
) -> None:
    api.put(gvr.RESOURCE_SLICES, published(GPU))
    assert ration("cordon", f"node-a/{how}").output == f"node-a/{GPU} cordoned\n"
    assert annotation(api) == GPU
    assert not api.all(gvr.DEVICE_TAINT_RULES)
    api.put(gvr.RESOURCE_SLICES, published())
    assert ration("uncordon", f"node-a/{how}").output == f"node-a/{GPU} uncordoned\n"
    assert annotation(api) is None


def test_the_plugin_is_waited_for(api: api_server.ApiServer, ration: Ration) -> None:
    later = threading.Timer(0.7, lambda: api.put(gvr.RESOURCE_SLICES, published(GPU)))
    later.start()
    assert ration("cordon", f"node-a/{GPU}").exit_code == 0
    assert not later.is_alive()
    later.join()


def test_a_gpu_cordoned_for_itself_stays_so_when_its_node_is_uncordoned(
    api: api_server.ApiServer, ration: Ration
) -> None:
    ration("cordon", f"node-a/{GPU}", "--no-wait")
    ration("cordon", "node-a")
    refused = ration("uncordon", f"node-a/{GPU}")
    assert refused.exit_code == 2
    assert refused.output == (
        f"node-a/{GPU}: the whole node is cordoned: ration uncordon node-a, then cordon the "
        "others\n"
    )
    answer = ration("uncordon", "node-a")
    assert answer.exit_code == 0
    assert f"cordoned for themselves, still: {GPU}" in answer.output
    assert annotation(api) == GPU


def test_a_gpu_that_is_gone_can_be_uncordoned(api: api_server.ApiServer, ration: Ration) -> None:
    node = objects.a_node()
    node["metadata"]["annotations"] = {"ration.dev/cordon": "gpu-0000-99-00-0"}
    api.put(gvr.NODES, node)
    assert ration("uncordon", "node-a/gpu-0000-99-00-0", "--no-wait").exit_code == 0
    assert annotation(api) is None


@pytest.mark.parametrize("command", ["cordon", "uncordon", "drain"])
def test_a_missing_object_is_refused_in_one_line(ration: Ration, command: str) -> None:
    answer = ration(command, "node-z")
    assert (answer.exit_code, answer.output.count("\n")) == (2, 1)
    assert "look at the name" in answer.output
    answer = ration(command, "node-a/gpu-9")
    assert (answer.exit_code, answer.output) == (
        2,
        f"node-a/gpu-9: node node-a publishes no such GPU; expected {GPU}, {OTHER}\n",
    )
    assert ration(command, "node-a/").exit_code == 2


def test_an_old_server_is_told_in_one_line(api: api_server.ApiServer, ration: Ration) -> None:
    api.pretend("v1.36.2")
    answer = ration("cordon", "node-a")
    assert (answer.exit_code, answer.output.count("\n")) == (3, 1)
    assert answer.output.startswith("Kubernetes is v1.36.2, below 1.36.4: ")


def test_a_right_that_lacks_is_named(api: api_server.ApiServer, ration: Ration) -> None:
    text = 'nodes "node-a" is forbidden: User "ann" cannot patch resource "nodes" in API group ""'
    api.deny_with(lambda request: text if request.method == "PATCH" else None)
    answer = ration("cordon", f"node-a/{GPU}")
    assert (answer.exit_code, answer.output) == (
        3,
        "you may not patch nodes: ask for the right (kubectl auth can-i patch nodes)\n",
    )


def test_a_dry_run_says_what_it_would_do_and_does_nothing(
    api: api_server.ApiServer, ration: Ration
) -> None:
    text = "".join(
        f"$ ration {' '.join(words)}\n{ration(*words).output}"
        for words in (
            ("cordon", "node-a", "--dry-run"),
            ("cordon", f"node-a/{GPU}", "--dry-run"),
            ("uncordon", "node-a", "--dry-run"),
            ("drain", "node-a", "--dry-run"),
        )
    )
    golden.same("cordon-dry-run.txt", text)
    assert {request.method for request in api.requests} == {"GET"}


def test_a_changed_node_is_read_again(api: api_server.ApiServer, ration: Ration) -> None:
    api.faults.add(
        faults.Answer(409, "Conflict"), lambda request: request.method == "PATCH", times=2
    )
    assert ration("cordon", f"node-a/{GPU}", "--no-wait").exit_code == 0
    assert annotation(api) == GPU


def occupied(api: api_server.ApiServer) -> None:
    api.put(gvr.RESOURCE_CLAIMS, held("made", GPU, "web"))
    api.put(gvr.PODS, a_pod("web", "made", "ReplicaSet/web-1"))
    api.put(gvr.RESOURCE_CLAIMS, held("hand-made", OTHER, "lone"))
    api.put(gvr.PODS, a_pod("lone", "hand-made"))
    api.put(gvr.RESOURCE_CLAIMS, held("idle", f"{GPU}-mps"))
    api.put(gvr.RESOURCE_CLAIMS, held("static", f"{OTHER}-mps", "kubeadm"))
    api.put(gvr.PODS, a_pod("kubeadm", "static", "Node/node-a"))
    api.put(gvr.RESOURCE_CLAIMS, held("watching", GPU, "dcgm", adminAccess=True))
    api.put(gvr.PODS, a_pod("dcgm", "watching", "DaemonSet/dcgm"))


def test_holders_of_a_node_are_listed_and_no_pod_is_evicted(
    api: api_server.ApiServer, ration: Ration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    occupied(api)
    answer = ration("drain", "node-a")
    assert answer.exit_code == 1
    golden.same("drain.txt", answer.output)
    golden.same("drain.json", ration("drain", "node-a", "-o", "json").stdout)
    assert len(api.all(gvr.PODS)) == 4


def test_eviction_takes_what_would_be_made_again_and_leaves_the_rest(
    api: api_server.ApiServer, ration: Ration
) -> None:
    occupied(api)

    def end() -> None:
        """End the pod as the kubelet and kube-controller-manager do."""
        pod = None
        while not over.wait(0.05):
            pod = api.read(gvr.PODS, "web", "default")
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                break
        if pod is not None:
            api.remove(gvr.PODS, "web", "default")
        api.remove(gvr.RESOURCE_CLAIMS, "made", "default")

    over = threading.Event()
    thread = threading.Thread(target=end)
    thread.start()
    answer = ration("drain", "node-a", "--evict", "--timeout", "20s")
    over.set()
    thread.join()
    assert answer.exit_code == 1, answer.exception
    assert "pod default/web evicted" in answer.stderr
    assert "claim default/made is gone, 3 to go" in answer.stderr
    assert sorted(entry["metadata"]["name"] for entry in api.all(gvr.PODS)) == [
        "dcgm",
        "kubeadm",
        "lone",
    ]
    assert "default/made" not in answer.stdout
    assert "--force evicts it" in answer.stdout


def test_a_gpu_alone_is_drained(api: api_server.ApiServer, ration: Ration) -> None:
    occupied(api)
    api.remove(gvr.RESOURCE_CLAIMS, "idle", "default")
    api.remove(gvr.RESOURCE_CLAIMS, "made", "default")
    answer = ration("drain", f"node-a/{GPU}")
    assert (answer.exit_code, answer.stdout) == (0, f"nothing holds node-a/{GPU}\n")
    assert annotation(api) == GPU


def test_a_disruption_budget_is_told_and_respected(
    api: api_server.ApiServer, ration: Ration
) -> None:
    api.put(gvr.RESOURCE_CLAIMS, held("made", GPU, "web"))
    api.put(gvr.PODS, a_pod("web", "made", "ReplicaSet/web-1"))
    refused = faults.Answer(429, "TooManyRequests")
    api.faults.add(refused, lambda request: request.path.endswith("/eviction"), times=99)
    answer = ration("drain", "node-a", "--evict", "--timeout", "2s")
    assert answer.exit_code == 1
    assert answer.stderr.count("pod default/web is kept, asked again: injected") == 1
    assert len(api.all(gvr.PODS)) == 1


def test_force_alone_and_a_wrong_time_are_refused(ration: Ration) -> None:
    assert ration("drain", "node-a", "--force").exit_code == 2
    answer = ration("drain", "node-a", "--evict", "--timeout", "soon")
    assert (answer.exit_code, answer.output.count("\n")) == (2, 1)


NVIDIA, NIC = "gpu.nvidia.com", "nic.example.com"


def nvidia_slice() -> objects.Raw:
    """Two GPUs as NVIDIA's driver publishes them, with a MIG device of the first."""
    whole = [
        objects.with_values(objects.a_device(f"gpu-{number}", taints=[]), uuid=f"GPU-{number}")
        for number in range(2)
    ]
    part = objects.a_device("gpu-0-mig-1g10gb-19-0", taints=[])
    part = objects.with_values(part, type="mig", parentUUID="GPU-0", uuid="MIG-0")
    return objects.a_slice("node-a", [*whole, part], NVIDIA)


def cordoned(api: api_server.ApiServer) -> list[objects.Raw]:
    """Return the selectors of the rules that cordon devices."""
    rules = api.all(gvr.DEVICE_TAINT_RULES)
    assert all(rule["spec"]["taint"] == CORDONED for rule in rules)
    selectors = (rule["spec"]["deviceSelector"] for rule in rules)
    return sorted(selectors, key=lambda selector: str(selector.get("device")))


@pytest.fixture
def others(api: api_server.ApiServer) -> api_server.ApiServer:
    """A node whose GPUs NVIDIA's driver publishes, and whose NICs another one does."""
    api.remove(gvr.RESOURCE_SLICES, published()["metadata"]["name"])
    api.put(gvr.RESOURCE_SLICES, nvidia_slice())
    api.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", [objects.a_device("nic-0")], NIC))
    return api


def test_a_node_of_another_gpu_driver_is_cordoned_by_a_rule_for_that_driver(
    others: api_server.ApiServer, ration: Ration
) -> None:
    assert ration("cordon", "node-a").output == "node-a cordoned\n"
    assert ration("cordon", "node-a").output == "node-a is already cordoned\n"
    assert cordoned(others) == [{"driver": NVIDIA, "pool": "node-a"}]
    assert annotation(others) is None
    assert ration("uncordon", "node-a").output == "node-a uncordoned\n"
    assert not cordoned(others)


def test_a_gpu_of_another_driver_is_cordoned_as_all_its_published_devices(
    others: api_server.ApiServer, ration: Ration
) -> None:
    assert ration("cordon", "node-a/GPU-0").output == "node-a/gpu-0 cordoned\n"
    named = [selector["device"] for selector in cordoned(others)]
    assert named == ["gpu-0", "gpu-0-mig-1g10gb-19-0"]
    answer = ration("cordon", "node-a/gpu-9")
    assert "publishes no such GPU; expected gpu-0, gpu-1" in answer.output
    assert ration("cordon", "node-a").exit_code == 0
    assert ration("uncordon", "node-a/gpu-0").exit_code == 2
    assert "cordoned for themselves, still: gpu-0" in ration("uncordon", "node-a").output
    others.remove(gvr.RESOURCE_SLICES, nvidia_slice()["metadata"]["name"])
    answer = ration("uncordon", "node-a/gpu-0", "--driver-name", NVIDIA)
    assert (answer.output, cordoned(others)) == ("node-a/gpu-0 uncordoned\n", [])


def test_devices_that_are_no_gpus_are_cordoned_by_their_drivers_name(
    others: api_server.ApiServer, ration: Ration
) -> None:
    by_name = ("--driver-name", NIC)
    assert ration("cordon", "node-a/nic-0", *by_name).output == "node-a/nic-0 cordoned\n"
    assert cordoned(others) == [{"driver": NIC, "pool": "node-a", "device": "nic-0"}]
    assert ration("uncordon", "node-a/nic-0", *by_name).exit_code == 0
    refused = ration("cordon", "node-a", "--driver-name", "fpga.example.com")
    assert (refused.exit_code, refused.output) == (
        2,
        "node-a: node node-a publishes no device of fpga.example.com\n",
    )


def test_holders_of_another_drivers_gpu_are_those_of_its_devices(
    others: api_server.ApiServer, ration: Ration
) -> None:
    part = {"device": "gpu-0-mig-1g10gb-19-0", "driver": NVIDIA}
    status = objects.allocated("node-a", part, reserved=[])
    others.put(gvr.RESOURCE_CLAIMS, objects.a_claim("part", status=status))
    whole = objects.allocated("node-a", {"device": "gpu-1", "driver": NVIDIA}, reserved=[])
    others.put(gvr.RESOURCE_CLAIMS, objects.a_claim("whole", status=whole))
    answer = ration("drain", "node-a/gpu-0", "-o", "json")
    assert [holder["claim"] for holder in json.loads(answer.stdout)["holders"]] == ["default/part"]


def test_without_rules_another_drivers_devices_are_not_cordoned(
    others: api_server.ApiServer, ration: Ration
) -> None:
    without_rules(others)
    answer = ration("cordon", "node-a")
    assert answer.exit_code == 2
    assert "cordoned by DeviceTaintRules, which the server lacks" in answer.output
