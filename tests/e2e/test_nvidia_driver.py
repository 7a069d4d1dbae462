"""NVIDIA's own DRA driver on every node, with our controller alone to allocate its devices.

The driver comes from the folder that RATION_NVIDIA_DRIVER names; without it all is skipped. Left
out: passthrough, and ComputeDomains.

Faults of its own that bear on these tests, by its issues: 563 (`index` is published no more, and
gpu-test6.yaml reads it), 374 and 709 (the lock of the node times out under load). It has no issue
for this one: it goes by the MIG mode that a GPU had when the plugin started, so with DynamicMIG it
takes a GPU in MIG mode for one without MIG devices, and tries to disable MIG mode beside those in
use. NVML refuses, and no pod of the GPU ends before the others have ended too.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from driver import names
from driver.kube import gvr
from hack.cluster import api, chart
from simulator import codes
from tests.e2e import managed_devices, other_drivers, playground, release
from tests.e2e import nvidia_nodes as nvidia

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
Raw = nvidia.Raw
WITHIN_S = 90.0
DEMOS = [
    *(
        f"{version}/gpu-test{number}.yaml"
        for version in ("v1", "v1beta1")
        for number in (1, 2, 3, 4)
    ),
    "gpu-test7.yaml",
    "gpu-test8.yaml",
]
"""All of the quickstart but MPS (mps, test5), passthrough (vfio), ComputeDomains (imex), test6."""


field = release.field


@pytest.fixture(scope="module")
def source() -> Path:
    """The folder of NVIDIA's driver."""
    return nvidia.folder()


@pytest.fixture(scope="module")
def cluster(source: Path) -> Iterator[api.Cluster]:
    """Three nodes that NVIDIA's driver serves."""
    with release.a_cluster() as loaded:
        managed_devices.require_rules(loaded)
        with nvidia.served(loaded, source):
            yield loaded


def run(field: playground.Playground, name: str, node: str, gpu_request: Raw, *config: Raw) -> None:
    """Create a pod with a claim of its own, on a node."""
    field.create(
        nvidia.claim(name, gpu_request, *config), other_drivers.a_pod(name, name, node=node)
    )


def shown(field: playground.Playground, pod: str) -> str:
    """Return what nvidia-smi listed in a pod's container."""
    return playground.until(
        lambda: field.cluster.kubectl("logs", "-n", field.namespace, pod), 20, f"{pod} lists"
    )


def device(field: playground.Playground, claim: str) -> Raw:
    """Return the first result of a claim."""
    return other_drivers.results(field.claim(claim))[0]


def test_each_pod_of_a_deployment_has_a_whole_gpu_of_its_own(field: playground.Playground) -> None:
    workload = other_drivers.a_workload("Deployment", "web", "gpu", 8)
    workload["spec"]["template"]["spec"]["nodeSelector"] = playground.on(nvidia.WHOLE)
    workload["spec"]["template"]["spec"]["tolerations"] = []
    with nvidia.applied(field, [nvidia.template("gpu", nvidia.request()), workload]):
        expected = ["Running"] * 8
        playground.until(lambda: nvidia.phases(field) == expected, WITHIN_S, "eight pods run")
        assert len(set(nvidia.held(field))) == 8


def test_a_claim_by_uuid_has_that_gpu_and_shows_it(field: playground.Playground) -> None:
    uuid = nvidia.machine(field.cluster, nvidia.WHOLE).gpus[5].uuid
    run(field, "chosen", nvidia.WHOLE, nvidia.request(uuid=uuid))
    field.running("chosen")
    assert field.uuids("chosen") == [uuid]


def test_pods_of_two_profiles_share_a_gpu_that_is_then_not_whole(
    field: playground.Playground,
) -> None:
    uuid = nvidia.machine(field.cluster, nvidia.DYNAMIC).gpus[2].uuid
    for name, profile in (("small", "1g.10gb"), ("large", "3g.40gb")):
        gpu_request = nvidia.request("mig", parentUUID=uuid, profile=profile)
        run(field, name, nvidia.DYNAMIC, gpu_request)
        field.running(name)
        assert f"MIG {profile}" in shown(field, name)
    run(field, "whole", nvidia.DYNAMIC, nvidia.request(uuid=uuid))
    (note, *_) = field.told("whole", "NoFit", 40)
    assert "CountersExhausted" in note or "DeviceInUse" in note
    # Both at once: the driver unprepares neither while the other is in use (see above).
    for name in ("small", "large"):
        field.kube.delete(gvr.PODS, name, field.namespace)
    for name in ("small", "large"):
        field.kube.delete(gvr.RESOURCE_CLAIMS, name, field.namespace)
    field.running("whole", 2 * WITHIN_S)
    assert field.uuids("whole") == [uuid]


def test_the_drivers_time_slicing_of_a_claim_reaches_the_gpu(field: playground.Playground) -> None:
    uuid = nvidia.machine(field.cluster, nvidia.WHOLE).gpus[3].uuid
    long = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    config = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": long,
    }
    run(field, "sliced", nvidia.WHOLE, nvidia.request(uuid=uuid), config)
    field.running("sliced")
    machine = nvidia.machine(field.cluster, nvidia.WHOLE)
    assert machine.board(machine.gpus[3]).timeslice == codes.Timeslice.LONG


def test_the_drivers_mps_of_a_claim_limits_the_programs_of_its_containers(
    field: playground.Playground, source: Path
) -> None:
    objects = nvidia.demo(source, "v1/gpu-test-mps.yaml")
    (pod,) = (entry for entry in objects if entry["kind"] == "Pod")
    pod["spec"]["nodeSelector"] = playground.on(nvidia.WHOLE)
    for container in pod["spec"]["containers"]:
        container["args"] = ["simclient --hold 1; exec sleep 3600"]
    with nvidia.applied(field, objects):
        field.running("test-pod", 2 * WITHIN_S)
        (claim,) = field.claims()
        (config,) = claim["status"]["allocation"]["devices"]["config"]
        assert config["source"] == "FromClaim"
        assert config["opaque"]["parameters"]["sharing"]["strategy"] == "MPS"
        for container in ("mps-ctr0", "mps-ctr1"):
            seen = nvidia.client_view(field, "test-pod", container)
            assert "error" not in seen, seen
            assert seen["mps"]["threadPercentage"] == 50
        daemons = nvidia.mps_daemons(field)
        assert len(daemons) == 1
        field.delete_pod("test-pod")
        playground.until(lambda: not nvidia.mps_daemons(field), 60, "its control daemon is gone")


def test_fixed_partitions_of_two_pods_are_of_one_gpu(field: playground.Playground) -> None:
    uuid = nvidia.machine(field.cluster, nvidia.STATIC).gpus[0].uuid
    for name, profile in (("small", "1g.5gb"), ("large", "3g.20gb")):
        gpu_request = nvidia.request("mig", parentUUID=uuid, profile=profile)
        run(field, name, nvidia.STATIC, gpu_request)
        field.running(name)
        assert f"MIG {profile}" in shown(field, name)
    assert device(field, "small")["device"] != device(field, "large")["device"]


@pytest.mark.parametrize("name", DEMOS)
def test_a_quickstart_manifest_of_nvidia_runs(
    field: playground.Playground, source: Path, name: str
) -> None:
    objects = nvidia.demo(source, name)
    expected = ["Running"] * nvidia.pods(objects)
    with nvidia.applied(field, objects):
        playground.until(lambda: nvidia.phases(field) == expected, WITHIN_S, f"{name} runs")
        held = nvidia.held(field)
        assert len(set(held)) == len(held)


def test_a_quickstart_manifest_by_a_removed_attribute_waits_and_says_so(
    field: playground.Playground, source: Path
) -> None:
    """Its selectors read `index`, which the driver no longer publishes (its issue 563)."""
    with nvidia.applied(field, nvidia.demo(source, "v1/gpu-test6.yaml")):
        pod = playground.until(lambda: nvidia.first_pod(field), 20, "the Deployment has a pod")
        (note, *_) = field.told(pod, "NoFit", 40)
        assert "index" in note


def test_a_pod_that_asks_for_too_much_is_told_what_each_node_has(
    field: playground.Playground,
) -> None:
    pod = other_drivers.a_pod("nine", "nine")
    pod["spec"] |= {"nodeSelector": {}}
    field.create(nvidia.claim("nine", nvidia.request(count=9)), pod)
    document = nvidia.ration(field, "explain", "pod", "nine", "-n", field.namespace)
    assert document["reason"] == "NoFit"
    (note, *_) = field.told("nine", "NoFit", 40)
    assert "8 of 9" in note


def test_a_cordoned_gpu_of_the_driver_takes_nothing_new_until_it_is_uncordoned(
    field: playground.Playground,
) -> None:
    uuid = nvidia.machine(field.cluster, nvidia.DYNAMIC).gpus[4].uuid
    gpu = f"{nvidia.DYNAMIC}/{uuid}"
    run(field, "holder", nvidia.DYNAMIC, nvidia.request("mig", parentUUID=uuid, profile="1g.10gb"))
    field.running("holder")
    cordoned = nvidia.run_ration(field, "cordon", gpu)
    assert cordoned.returncode == 0, cordoned.stderr
    try:
        for name, request in (
            ("whole", nvidia.request(uuid=uuid)),
            ("part", nvidia.request("mig", parentUUID=uuid, profile="2g.20gb")),
        ):
            run(field, name, nvidia.DYNAMIC, request)
            (note, *_) = field.told(name, "NoFit", 40)
            assert "DeviceCordoned" in note
        drained = nvidia.run_ration(field, "drain", gpu, "--evict", "--force", "--timeout", "60s")
        assert drained.returncode == 0, drained.stdout + drained.stderr
        assert field.find("holder") is None
    finally:
        uncordoned = nvidia.run_ration(field, "uncordon", gpu)
    assert uncordoned.returncode == 0, uncordoned.stderr
    field.delete_pod("whole")
    field.running("part", 2 * WITHIN_S)


def test_the_gpus_count_in_the_figures_of_the_cluster(field: playground.Playground) -> None:
    run(field, "whole", nvidia.WHOLE, nvidia.request())
    gpu_request = nvidia.request("mig", profile="1g.10gb")
    run(field, "part", nvidia.DYNAMIC, gpu_request)
    field.running("whole")
    field.running("part")
    gpus = nvidia.ration(field, "devices")
    by_node = {
        node: [gpu for gpu in gpus if gpu["node"] == node]
        for node in (nvidia.WHOLE, nvidia.DYNAMIC, nvidia.STATIC)
    }
    assert [len(entries) for entries in by_node.values()] == [8, 8, 8]
    assert {gpu["product"] for gpu in by_node[nvidia.WHOLE]} == {"NVIDIA H100 80GB HBM3"}
    assert sorted(gpu["mode"] for gpu in by_node[nvidia.WHOLE]) == ["free"] * 7 + ["whole"]
    assert sorted(gpu["mode"] for gpu in by_node[nvidia.DYNAMIC]) == ["free"] * 7 + ["mig"]
    top = nvidia.ration(field, "top", "--once")["fleet"]
    assert (top["gpus"], top["nodes"]) == (24, 3)


def test_a_queues_limit_of_gpus_counts_them(field: playground.Playground) -> None:
    queue = {
        "apiVersion": f"{names.GROUP}/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "e2e-nvidia"},
        "spec": {"members": [{"namespace": field.namespace}], "limit": {"gpus": 1}},
    }
    field.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(queue))
    try:
        run(field, "first", nvidia.WHOLE, nvidia.request())
        field.running("first")
        run(field, "second", nvidia.WHOLE, nvidia.request())
        (note, *_) = field.told("second", "QueueLimitExceeded", 30)
        assert "1 of 1 GPU" in note
        field.delete_pod("first")
        field.running("second")
    finally:
        field.cluster.kubectl("delete", "queue", "e2e-nvidia")


def test_a_hundred_claims_are_prepared_and_no_device_is_given_twice(
    field: playground.Playground,
) -> None:
    field.create(
        nvidia.template("gpu", nvidia.request()),
        nvidia.template("mig", nvidia.request("mig", profile="1g.10gb")),
    )
    kinds = {"gpu": nvidia.WHOLE, "mig": nvidia.DYNAMIC}
    for number in range(50):
        for kind, node in kinds.items():
            pod = other_drivers.a_pod(f"{kind}-{number}", template=kind, node=node)
            pod["spec"] |= {"restartPolicy": "Never", "tolerations": []}
            pod["spec"]["containers"][0]["command"] = ["sh", "-c", "nvidia-smi -L"]
            field.create(pod)
    deadline = time.monotonic() + 400
    while (done := nvidia.phases(field).count("Succeeded")) < 100:
        held = nvidia.held(field)
        assert len(set(held)) == len(held), held
        assert time.monotonic() < deadline, (done, field.reasons())
        time.sleep(0.3)
    refused = nvidia.refused_prepares(field)
    assert [note for note in refused if nvidia.LOCK_TIMEOUT not in note] == []


def test_the_driver_comes_back_with_its_node(field: playground.Playground) -> None:
    pid = field.cluster.pid(nvidia.DRIVER, nvidia.WHOLE)
    field.cluster.reboot(nvidia.WHOLE)
    assert field.cluster.pid(nvidia.DRIVER, nvidia.WHOLE) not in {pid, None}
    run(field, "again", nvidia.WHOLE, nvidia.request())
    field.running("again", 2 * WITHIN_S)


def test_live_pods_keep_their_gpus_when_kube_scheduler_has_the_driver_back(
    field: playground.Playground,
) -> None:
    run(field, "whole", nvidia.WHOLE, nvidia.request())
    run(field, "part", nvidia.DYNAMIC, nvidia.request("mig", profile="2g.20gb"))
    earlier = {name: standing(field, name) for name in ("whole", "part")}
    back = (nvidia.MANAGED, managed_devices.NOWHERE, nvidia.NO_PLUGIN)
    try:
        chart.install(release.WHERE, *back)
        playground.until(lambda: nvidia.rule_taint(field.kube) is None, 120, "the rule is gone")
        assert {name: standing(field, name) for name in earlier} == earlier
        run(field, "after", nvidia.WHOLE, nvidia.request())
        field.running("after")
        assert device(field, "after")["device"] != device(field, "whole")["device"]
        assert "kube-scheduler" in other_drivers.writers(field.claim("after"))
    finally:
        chart.install(release.WHERE, nvidia.MANAGED, nvidia.NO_PLUGIN)
        allocator = names.ALLOCATOR_TAINT
        playground.until(lambda: nvidia.rule_taint(field.kube) == allocator, 120, "it is ours")
    assert {name: standing(field, name) for name in earlier} == earlier


def standing(field: playground.Playground, name: str) -> tuple[str, str, int, Raw]:
    """Return what a pod that runs would lose: its identity, container and allocation."""
    pod = field.running(name)
    (container,) = pod["status"]["containerStatuses"]
    allocation = field.claim(name)["status"]["allocation"]
    return (
        pod["metadata"]["uid"],
        container["containerID"],
        container["restartCount"],
        allocation,
    )
