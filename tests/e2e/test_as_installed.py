"""Tests of the installed chart on either ground: the local cluster, or kind's.

Every way to share a GPU, a node that goes down and comes back, a GPU that fails, `helm test`, a pod
written for a device plugin. Where kind is the ground, an image that changed under its tag too.
"""

from pathlib import Path
from typing import Any

import pytest

from driver import names
from driver.kube import gvr
from hack.chart import helm
from hack.cluster import api, errors
from hack.image import build, oci
from hack.kind import driver
from simulator import control
from simulator import store as machines
from tests.e2e import grounds, next_version, playground, release, standing

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
cluster, field = release.cluster, release.field
WHOLE = "4294967295"
GIB = 1 << 30
SHARES = {"gpu-timeslice": {"memory": "4Gi"}, "gpu-mps": {"memory": "4Gi", "compute": "10"}}
BACK_S = 240.0
"""For containers of a node that booted, on a machine that has other work."""


def at_work(field: playground.Playground, mode: str, node: str, name: str = "") -> str:
    """A pod that holds a device of a mode on a node; its name."""
    name = name or f"{mode}-pod"
    template = release.a_template(mode)
    template["metadata"]["name"] = name
    if mode in SHARES:
        exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
        exactly["capacity"] = {"requests": SHARES[mode]}
    location = {"nodeSelector": playground.on(node)}
    field.create(template, release.a_pod(name, template=name, command=standing.WORK, **location))
    return name


def sees(field: playground.Playground, name: str) -> Any:
    """Return what the CUDA client in a running pod says that it has."""
    field.running(name, BACK_S)
    return standing.told(field, name)[-1]


def device(field: playground.Playground, name: str) -> tuple[str, str] | None:
    (resource_claim_status,) = field.pod(name)["status"]["resourceClaimStatuses"]
    return field.device_of(resource_claim_status["resourceClaimName"])


def test_a_pod_of_each_mode_has_what_it_asked_for(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    node = cluster.nodes()[0]
    whole = sees(field, at_work(field, "gpu", node))
    assert len(whole["devices"]) == 1
    assert (whole["mps"], whole["devices"][0]["limit"]) == (None, None)
    part = sees(field, at_work(field, "gpu-mig", node))
    assert part["devices"][0]["uuid"].startswith("MIG-")
    shares = [sees(field, at_work(field, "gpu-mps", node, f"mps-{n}")) for n in range(2)]
    assert {share["devices"][0]["limit"] for share in shares} == {4 * GIB}
    assert {share["mps"]["threadPercentage"] for share in shares} == {10}
    assert len({share["mps"]["server"] for share in shares}) == 1
    turns = [sees(field, at_work(field, "gpu-timeslice", node, f"turn-{n}")) for n in range(2)]
    assert len({turn["devices"][0]["uuid"] for turn in turns}) == 1
    assert {turn["mps"] is None for turn in turns} == {True}
    uuids = {entry["devices"][0]["uuid"] for entry in (whole, shares[0], turns[0])}
    assert len(uuids) == 3


def test_after_a_reboot_the_gpus_are_published_and_pods_keep_their_devices(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    node = cluster.nodes()[0]
    pods = [at_work(field, mode, node) for mode in release.MODES]
    previous = {name: (field.running(name), device(field, name)) for name in pods}
    gpus = cluster.node_dir(node) / "gpu"
    boot = machines.load(gpus).boot_id
    cluster.reboot(node)

    def back() -> bool:
        return all(
            any(
                entry["restartCount"] > 0 and "running" in entry["state"]
                for entry in field.pod(name)["status"].get("containerStatuses", ())
            )
            for name in pods
        )

    playground.until(back, BACK_S, f"the pods of {node} run again")
    assert machines.load(gpus).boot_id != boot
    for name, (pod, row) in previous.items():
        assert field.pod(name)["metadata"]["uid"] == pod["metadata"]["uid"]
        assert device(field, name) == row
    whole, part, share = (sees(field, f"{mode}-pod") for mode in ("gpu", "gpu-mig", "gpu-mps"))
    assert len(whole["devices"]) == 1
    assert part["devices"][0]["uuid"].startswith("MIG-")
    assert share["mps"]["threadPercentage"] == 10
    rolled = ("daemonset/ration-kubeletplugin", "-n", helm.NAMESPACE, "--timeout=100s")
    cluster.kubectl("rollout", "status", *rolled)


def test_a_gpu_that_fell_off_the_bus_is_tainted_and_not_allocated(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    node = cluster.nodes()[1]
    name = at_work(field, "gpu", node)
    uuid = sees(field, name)["devices"][0]["uuid"]
    held = device(field, name)
    assert held is not None
    base = cluster.node_dir(node) / "gpu"
    control.send(base, "xid", uuid, "79", WHOLE, WHOLE)
    control.send(base, "recovery", uuid, "NODE_REBOOT")
    try:
        tainted = {"ration.dev/xid", "ration.dev/recovery"}
        playground.until(
            lambda: taints(field, node).get(held[1]) == tainted, 30, "the GPU is tainted"
        )
        eight = playground.a_claim("eight", 8)
        field.create(eight, release.a_pod("all", claims=("eight",), **on(node)))
        note, *_ = field.told("all", "NoFit", 30)
        assert "1 DeviceTainted" in note
    finally:
        control.send(base, "recovery", uuid, "NONE")
        field.delete_pod("all")
    playground.until(lambda: held[1] not in taints(field, node), 60, "the GPU is well again")


def on(node: str) -> dict[str, Any]:
    return {"nodeSelector": playground.on(node)}


def taints(field: playground.Playground, node: str) -> dict[str, set[str]]:
    """The taints of ill health, by device, of a node."""
    return {
        entry["name"]: keys
        for item in field.kube.list(gvr.RESOURCE_SLICES).items
        if item["spec"].get("nodeName") == node
        for entry in item["spec"].get("devices", ())
        if (keys := {taint["key"] for taint in entry.get("taints", ())} - names.OWN_TAINTS)
    }


def helm_test(cluster: api.Cluster, patience: str) -> str:
    """Return the output of `helm test`. Raises CommandFailedError if it does not pass in time."""
    words = ("test", helm.RELEASE, f"--namespace={helm.NAMESPACE}", f"--timeout={patience}")
    return cluster.helm(*words)


def test_helm_test_passes_and_names_the_holders_when_every_gpu_is_in_use(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    assert "Succeeded" in helm_test(cluster, "120s")
    for node in cluster.nodes():
        field.create(playground.a_claim(f"all-{node}", 8))
        field.create(release.a_pod(f"all-{node}", claims=(f"all-{node}",), **on(node)))
    for node in cluster.nodes():
        field.running(f"all-{node}")
    with pytest.raises(errors.CommandFailedError):
        helm_test(cluster, "20s")
    output = cluster.kubectl("describe", "pod", "ration-test", "-n", helm.NAMESPACE)
    assert "No node fits." in output
    for node in cluster.nodes():
        assert f"8 GPUs of {node} are taken by pod {field.namespace}/all-{node}" in output
    cluster.kubectl("delete", "pod", "ration-test", "-n", helm.NAMESPACE)


def test_a_pod_written_for_a_device_plugin_runs_as_it_stands(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    assert cluster.nodes()
    release.converted(field)
    pod = field.running("converted")
    assert pod["spec"]["resourceClaims"]
    resources = pod["spec"]["containers"][0]["resources"]
    assert "nvidia.com/gpu" not in resources.get("limits", {})
    (claim,) = field.claims()
    assert claim["status"]["allocation"]["devices"]["results"][0]["driver"] == names.DRIVER


@pytest.mark.skipif(not grounds.IS_KIND, reason="the local cluster has no Docker")
def test_the_images_archive_loads_in_docker_and_runs_there_as_nobody() -> None:
    docker = grounds.docker()
    archive = build.ensure(driver.IMAGE)
    assert driver.IMAGE in docker.load(archive)
    (image,) = docker.inspect("image", driver.IMAGE)
    assert image["Config"]["User"] == build.USER
    try:
        run = docker.run(
            "run",
            "--rm",
            "--network=none",
            driver.IMAGE,
            *image["Config"]["Cmd"],
            "version",
        )
        assert run.strip()
    finally:
        docker.remove_image(driver.IMAGE)


@pytest.mark.skipif(not grounds.IS_KIND, reason="the local cluster's nodes know tags alone")
def test_a_changed_image_has_a_new_digest_and_rolls_out_under_running_pods(
    cluster: api.Cluster, field: playground.Playground, tmp_path: Path
) -> None:
    users = [at_work(field, mode, cluster.nodes()[0]) for mode in ("gpu", "gpu-mig")]
    previous = {name: standing.of(field, name) for name in users}
    chart = next_version.write(tmp_path)
    archive = build.ensure(next_version.IMAGE, tmp_path)
    cluster.load_image(archive)
    later = f"ration.local/driver@{oci.digest_of(archive)}"
    release.install(f"--set=image.digest={oci.digest_of(archive)}", path=chart)
    try:
        playground.until(
            lambda: all(
                release.images(cluster)[entry] == {later}
                for entry in ("controller", "admission", "kubeletplugin")
            ),
            120,
            "every pod of the release runs the next version",
        )
        assert {name: standing.of(field, name) for name in users} == previous
    finally:
        grounds.run("hack.kind", "up")  # the checkout's image again, by its digest
    now = release.images(cluster)
    for component in ("controller", "admission", "kubeletplugin"):
        assert now[component] != {later}
        assert all("@sha256:" in image for image in now[component])
    assert {name: standing.of(field, name) for name in users} == previous
