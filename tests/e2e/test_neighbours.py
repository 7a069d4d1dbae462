"""NVIDIA's GPU Operator, Node Feature Discovery and dcgm-exporter, installed beside ours.

Their charts and the operator's assets are their own; what runs in their pods is ours (`beside`).
One node is the operator's, one is Ration's, and one has no GPU.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.kube import client
from hack.chart import helm
from simulator import control
from simulator import store as machines
from tests.e2e import playground, release, standing
from tests.e2e.beside import charts, program, together

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
Beside = together.Beside
OPERATOR, EXPORTER, NFD = together.OPERATOR, together.EXPORTER, together.NFD
THEIRS, OURS, BARE = together.THEIRS, together.OURS, together.BARE
SOON_S, WITHDRAWN_S = together.SOON_S, together.WITHDRAWN_S
Raw = dict[str, Any]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """All three charts and ours, by ours' default values, installed last."""
    for chart in (OPERATOR, EXPORTER, NFD, "assets"):
        charts.folder(chart)
    with release.a_cluster() as cluster:
        cluster.add_node(BARE)
        assert release.uninstall()[0] == 0
        kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
        created = Beside(cluster, kube, tmp_path_factory.mktemp("charts"))
        together.lose_gpus(cluster, BARE)
        for node in (THEIRS, OURS, BARE):
            created.label(node, f"{program.PRESENT}-")
        try:
            created.install_operator()
            charts.install(cluster, EXPORTER, created.scratch, *together.OF_EXPORTER)
            together.settled(created)
            release.install()
            yield created
        finally:
            together.give_back(created)


@pytest.fixture
def field(beside: Beside) -> Iterator[playground.Playground]:
    """A namespace of a test's own."""
    ground = playground.Playground.open(beside.cluster, beside.kube)
    try:
        yield ground
    finally:
        ground.close()


# Where which pods are.


def test_ours_run_where_node_feature_discovery_has_seen_gpus_and_nowhere_else(
    beside: Beside,
) -> None:
    for node in (THEIRS, OURS):
        labels = beside.labels(node)
        assert labels["feature.node.kubernetes.io/pci-10de.present"] == "true"
        assert labels["nvidia.com/gpu.present"] == "true"
        assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert not any("10de" in label or "nvidia" in label for label in beside.labels(BARE))
    assert beside.plugins().keys() == {THEIRS, OURS}
    component = {"app.kubernetes.io/component": "mps"}
    assert beside.hosts(helm.NAMESPACE, **component) == {THEIRS: True, OURS: True}


def test_the_operator_leaves_the_labels_that_a_node_of_rations_has(beside: Beside) -> None:
    for operand in together.AWAY:
        assert beside.labels(OURS)[f"nvidia.com/gpu.deploy.{operand}"] == "false"
    assert beside.labels(THEIRS)["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert beside.hosts(OPERATOR, app="nvidia-device-plugin-daemonset") == {THEIRS: True}


def test_a_label_from_before_gpus_are_discovered_stays_only_beside_that_of_the_discovery(
    beside: Beside,
) -> None:
    label, text = "nvidia.com/gpu.deploy.device-plugin", program.DISCOVERED[0]
    beside.label(BARE, f"{label}=false")
    playground.until(lambda: label not in beside.labels(BARE), SOON_S, "the operator takes it off")
    try:
        beside.label(BARE, f"{label}=false", f"{text}=true")
        playground.until(
            lambda: beside.labels(BARE).get(program.PRESENT) == "true", SOON_S, "it has GPUs"
        )
        assert beside.labels(BARE)[label] == "false"
    finally:
        beside.label(BARE, f"{text}-")
        playground.until(lambda: label not in beside.labels(BARE), SOON_S, "it is as it was")
        beside.label(BARE, f"{program.PRESENT}-")
    playground.until(lambda: beside.plugins().keys() == {THEIRS, OURS}, SOON_S, "ours left")


# Who serves a node.


def test_beside_the_device_plugin_nothing_is_published_and_the_node_and_doctor_say_why(
    beside: Beside,
) -> None:
    playground.until(lambda: len(beside.published(OURS)), SOON_S, "Ration's node is published")
    assert beside.allocatable(THEIRS) == 8
    assert beside.published(THEIRS) == []
    assert beside.allocatable(OURS) == 0
    note, *_ = playground.until(
        lambda: beside.notes(THEIRS, "DevicePluginPresent"), SOON_S, "the event"
    )
    assert "nvidia.com/gpu: 8" in note
    assert f"kubectl label node {THEIRS} nvidia.com/gpu.deploy.device-plugin=false" in note
    assert beside.plugins() == {THEIRS: True, OURS: True}
    assert "slices: ok, but DevicePluginPresent: " in beside.readiness(THEIRS)
    document = {entry["check"]: entry["found"] for entry in beside.doctor(THEIRS)}
    assert document["device plugin"] == (
        "a device plugin serves nvidia.com/gpu: 8: Ration publishes nothing"
    )
    assert not any(entry["check"] == "device plugin" for entry in beside.doctor(OURS))


def test_a_node_changes_hands_by_the_operators_label_and_goes_back(
    beside: Beside, field: playground.Playground
) -> None:
    playground.until(lambda: beside.allocatable(THEIRS) == 8, SOON_S, "the plugin serves")
    beside.label(THEIRS, "nvidia.com/gpu.deploy.device-plugin=false")
    playground.until(lambda: beside.published(THEIRS), SOON_S, "Ration publishes")
    assert beside.allocatable(THEIRS) == 0
    field.create(playground.a_claim("mine"), release.a_pod("pod", claims=("mine",), **on(THEIRS)))
    field.running("pod")
    beside.label(THEIRS, "nvidia.com/gpu.deploy.device-plugin=true")
    held = field.device_of("mine")
    assert held is not None
    playground.until(
        lambda: [entry["name"] for entry in beside.published(THEIRS)] == [held[1]],
        WITHDRAWN_S,
        "all but the claim's device is withdrawn",
    )
    (published,) = beside.published(THEIRS)
    assert names.WITHDRAWN_TAINT in {taint["key"] for taint in published["taints"]}
    assert field.pod("pod")["status"]["phase"] == "Running"
    field.delete_pod("pod")
    playground.until(lambda: not beside.published(THEIRS), WITHDRAWN_S, "nothing is published")


def on(node: str) -> Raw:
    """A pod's fields that keep it to a node."""
    return {"nodeSelector": playground.on(node)}


def asking(name: str) -> Raw:
    """A pod that asks for a device plugin's GPU."""
    pod = release.a_pod(name)
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return pod


def test_pods_for_the_device_plugin_are_its_own_where_their_namespace_says_so(
    beside: Beside, field: playground.Playground
) -> None:
    playground.until(lambda: beside.allocatable(THEIRS) == 8, SOON_S, "the plugin serves")
    field.create(asking("converted"))
    assert field.running("converted")["spec"]["nodeName"] == OURS
    beside.cluster.kubectl("label", "namespace", field.namespace, "ration.dev/convert=false")
    playground.until(lambda: stays(field), SOON_S, "pods are left as they are")
    assert field.running("served")["spec"]["nodeName"] == THEIRS
    named = {**asking("named")}
    named["spec"]["nodeName"] = THEIRS  # as the operator's validator has it
    field.create(named)
    assert field.running("named")["spec"]["containers"][0]["resources"]["limits"]


def stays(field: playground.Playground) -> bool:
    """Return whether a pod that is made now stays as it is; one that does not is deleted again."""
    field.create(asking("served"))
    limits = field.pod("served")["spec"]["containers"][0]["resources"].get("limits", {})
    if "nvidia.com/gpu" in limits:
        return True
    field.delete_pod("served")
    return False


# Monitoring.


def reads(beside: Beside, namespace: str, pod: str) -> int:
    """Return how many rounds of reading a stand-in of dcgm-exporter has done."""
    text = beside.cluster.kubectl("logs", pod, "-n", namespace, "--tail=1")
    return int(text.split()[1])


def exporters(beside: Beside, node: str) -> dict[tuple[str, str], int]:
    """Both exporters of a node, and how often each was restarted."""
    selectors = {OPERATOR: {"app": "nvidia-dcgm-exporter"}, EXPORTER: {}}
    return {
        (namespace, pod["metadata"]["name"]): pod["status"]["containerStatuses"][0]["restartCount"]
        for namespace, labels in selectors.items()
        for pod in beside.pods(namespace, **labels)
        if pod["spec"]["nodeName"] == node
    }


@pytest.mark.parametrize("mode", release.MODES)
def test_claims_are_prepared_and_run_beside_open_sessions_that_read_on(
    beside: Beside, field: playground.Playground, mode: str
) -> None:
    previous = exporters(beside, OURS)
    assert len(previous) == 2
    template = release.a_template(mode)
    pod = release.a_pod("pod", template=mode, command=standing.WORK, **on(OURS))
    field.create(template, pod)
    field.running("pod")
    assert len(standing.told(field, "pod")[-1]["devices"]) == 1
    counts = {row: reads(beside, *row) for row in previous}
    playground.until(
        lambda: all(reads(beside, *key) > count + 1 for key, count in counts.items()),
        SOON_S,
        "both read on",
    )
    field.delete_pod("pod")
    assert exporters(beside, OURS) == previous


@pytest.fixture
def shy(beside: Beside) -> Iterator[str]:
    """The UUID of a GPU of Ration's node whose mode waits until no other NVML client is open."""
    base = beside.cluster.node_dir(OURS) / "gpu"
    uuid = machines.load(base).gpus[0].uuid
    control.send(base, "shy", uuid, "1")
    try:
        yield uuid
    finally:
        control.send(base, "shy", uuid, "0")
        beside.label(OURS, "nvidia.com/gpu.deploy.dcgm-exporter=true")
        together.settled(beside)


def a_part(name: str, uuid: str) -> Raw:
    """A claim for the smallest part of a GPU."""
    prefix = f'device.attributes["{names.DRIVER}"]'
    text = f'{prefix}.profile == "1g.10gb" && {prefix}.parentUUID == "{uuid}"'
    return playground.a_claim(
        name, deviceClassName="gpu-mig.ration.dev", selectors=[{"cel": {"expression": text}}]
    )


def test_a_mig_mode_that_an_exporter_holds_changes_once_it_is_off(
    beside: Beside, field: playground.Playground, shy: str
) -> None:
    field.create(a_part("part", shy), release.a_pod("pod", claims=("part",), **on(OURS)))
    _, _, message = field.says("part", "Ready", "False", 90)
    assert "it is in use by instances, processes or another program" in message
    assert field.pod("pod")["status"]["phase"] == "Pending"

    def tainted() -> list[Raw]:
        return [entry for entry in beside.published(OURS) if names.MIG_MODE_TAINT in taints(entry)]

    retained = playground.until(tainted, SOON_S, "the devices of the other mode are tainted")
    assert {taints(entry)[names.MIG_MODE_TAINT] for entry in retained} == {"stays-off"}
    reported = [entry for entry in beside.doctor(OURS) if entry["check"] == "mig mode"]
    assert len(reported) == 1
    assert "nvidia.com/gpu.deploy.dcgm-exporter=false" in reported[0]["fix"]
    beside.label(OURS, "nvidia.com/gpu.deploy.dcgm-exporter=false")
    playground.until(lambda: not exporters(beside, OURS), SOON_S, "the exporters have gone")
    field.running("pod", 180)


def taints(device: Raw) -> dict[str, str]:
    """The taints of a device, by key."""
    return {entry["key"]: entry.get("value", "") for entry in device.get("taints", ())}


# Who goes, and who stays.


def theirs(beside: Beside) -> dict[str, Any]:
    """All that neighbours have: their pods with restarts, and what they made of the nodes."""
    pods = {
        pod["metadata"]["uid"]: (pod["metadata"]["name"], pod["status"]["containerStatuses"])
        for namespace in (OPERATOR, EXPORTER)
        for pod in beside.pods(namespace)
    }
    labels = {
        node: {key: value for key, value in beside.labels(node).items() if "ration.dev" not in key}
        for node in (THEIRS, OURS, BARE)
    }
    return {"pods": pods, "labels": labels, "plugin": beside.allocatable(THEIRS)}


def test_uninstalling_ours_leaves_theirs_as_they_were(beside: Beside) -> None:
    together.settled(beside)
    previous = theirs(beside)
    assert release.uninstall()[0] == 0
    try:
        assert theirs(beside) == previous
        assert beside.published(OURS) == []
        assert beside.plugins() == {}
    finally:
        release.install()


def test_uninstalling_the_operator_leaves_ours_and_what_runs_on_it(
    beside: Beside, field: playground.Playground
) -> None:
    template = release.a_template("gpu")
    field.create(template, release.a_pod("pod", template="gpu", command=standing.WORK, **on(OURS)))
    previous = standing.of(field, "pod")
    component = {"app.kubernetes.io/component": "kubeletplugin"}
    pods = {pod["metadata"]["uid"] for pod in beside.pods(helm.NAMESPACE, **component)}
    beside.uninstall_operator()
    try:
        assert not any("feature.node" in label for label in beside.labels(OURS))
        assert beside.labels(OURS)["nvidia.com/gpu.present"] == "true"
        # Nobody serves the other node any more but Ration.
        playground.until(lambda: beside.published(THEIRS), WITHDRAWN_S, "it is Ration's")
        assert standing.of(field, "pod") == previous
        now = {pod["metadata"]["uid"] for pod in beside.pods(helm.NAMESPACE, **component)}
        assert now == pods
    finally:
        beside.install_operator()
        together.settled(beside)


def test_an_update_goes_on_past_a_node_that_the_device_plugin_serves(beside: Beside) -> None:
    playground.until(lambda: beside.allocatable(THEIRS) == 8, SOON_S, "the plugin serves")
    previous = plugin_pods(beside)
    assert previous.keys() == {THEIRS, OURS}
    release.install("--set=kubeletPlugin.podAnnotations.example\\.com/turn=second")
    playground.until(
        lambda: not plugin_pods(beside).items() & previous.items(), SOON_S, "both are replaced"
    )
    assert beside.published(THEIRS) == []
    release.install()


def plugin_pods(beside: Beside) -> dict[str, str]:
    """The UID of the plugin's pod, by node."""
    component = {"app.kubernetes.io/component": "kubeletplugin"}
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["uid"]
        for pod in beside.pods(helm.NAMESPACE, **component)
        if "deletionTimestamp" not in pod["metadata"]
    }


@pytest.fixture
def by_discovery_alone(beside: Beside) -> Iterator[Beside]:
    """Node Feature Discovery by its own chart, and no operator."""
    beside.uninstall_operator()
    labels = [f"{name}-" for name in beside.labels(THEIRS) if name.startswith("nvidia.com/")]
    for node in (THEIRS, OURS):
        beside.label(node, *labels)
    charts.install(beside.cluster, NFD, beside.scratch)
    try:
        both = {THEIRS, OURS}
        playground.until(lambda: beside.plugins().keys() == both, SOON_S, "ours are back")
        yield beside
    finally:
        if NFD in beside.cluster.helm("list", "--all-namespaces", "--short").split():
            charts.uninstall(beside.cluster, NFD)
        shutil.rmtree(beside.scratch / NFD)
        beside.install_operator()
        together.settled(beside)


def test_without_the_label_of_node_feature_discovery_our_pods_go_unless_another_label_stays(
    by_discovery_alone: Beside, field: playground.Playground
) -> None:
    beside = by_discovery_alone
    assert beside.labels(OURS)["feature.node.kubernetes.io/pci-0302_10de.present"] == "true"
    for node in (THEIRS, OURS):
        field.create(playground.a_claim(node), release.a_pod(node, claims=(node,), **on(node)))
        field.running(node)
    beside.label(OURS, f"{program.PRESENT}=true")
    charts.uninstall(beside.cluster, NFD)
    playground.until(lambda: beside.plugins().keys() == {OURS}, SOON_S, "one is left")
    playground.until(lambda: not beside.published(THEIRS), WITHDRAWN_S, "its slices have gone")
    document = {entry["check"]: entry for entry in beside.doctor(THEIRS)}
    assert document["devices"]["fix"].endswith(
        f"kubectl label node {THEIRS} {program.PRESENT}=true"
    )
    beside.label(THEIRS, f"{program.PRESENT}=true")
    playground.until(lambda: beside.plugins() == {THEIRS: True, OURS: True}, SOON_S, "it is back")
    for node in (THEIRS, OURS):
        field.delete_pod(node)
