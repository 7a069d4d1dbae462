"""N -> N+1 -> N by real Helm under live claims of every mode, while pods come and go all the time.

N is this checkout; N+1 is `next_version`. It replaces the driver, so it has a cluster with the
driver's pods to itself.
"""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client
from driver.kubeletplugin.records import checkpoint
from hack.chart import helm
from hack.cluster import api, chart
from hack.image import build
from tests.e2e import (
    kubelet_calls,
    next_version,
    passersby,
    playground,
    release,
    rollouts,
    standing,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
cluster = release.cluster
CONTROLLERS = ("controller", "admission")
ROLLED = (*(f"deployment/ration-{name}" for name in CONTROLLERS), "daemonset/ration-kubeletplugin")
ALL_NEXT = f"--set=image.tag={next_version.TAG}"
NOW, NEXT = "ration.local/driver:latest", next_version.IMAGE
SHARES = {"gpu-timeslice": {"memory": "4Gi"}, "gpu-mps": {"memory": "4Gi", "compute": "10"}}
FAILURES = {"FailedPrepareDynamicResources", "PrepareFailed", "UnprepareFailed"}


@pytest.fixture(scope="module")
def later(cluster: api.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The next version's chart; every node has its image."""
    folder = tmp_path_factory.mktemp("next")
    path = next_version.write(folder)
    cluster.load_image(build.ensure(next_version.IMAGE, folder))
    return path


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    try:
        for mode in release.MODES:
            template = release.a_template(mode)
            if mode in SHARES:
                exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
                exactly["capacity"] = {"requests": SHARES[mode]}
            ground.create(template)
        yield ground
    finally:
        release.install()
        ground.close()
        rollouts.replace(cluster, *rollouts.SUPERVISORS)  # nobody uses MPS now


@pytest.fixture
def passing(field: playground.Playground) -> Iterator[passersby.Passersby]:
    result = passersby.Passersby(field, lanes=2)
    result.start()
    try:
        yield result
    finally:
        result.stop()


def images(cluster: api.Cluster) -> dict[str, set[str]]:
    """Return what the release's pods run, by component, once a rollout is over."""
    for name in ROLLED:
        cluster.kubectl("rollout", "status", name, "-n", helm.NAMESPACE, "--timeout=120s")
    query = ("get", "pods", "-n", helm.NAMESPACE, "--output=json")
    result: dict[str, set[str]] = {}
    for name in json.loads(cluster.kubectl(*query))["items"]:
        if "deletionTimestamp" not in name["metadata"]:
            component = name["metadata"]["labels"]["app.kubernetes.io/component"]
            image = name["spec"]["containers"][0]["image"]
            result.setdefault(component, set()).add(image)
    return result


class Watch:
    """Watch of what has to hold at every moment between two versions."""

    def __init__(
        self, field: playground.Playground, passing: passersby.Passersby, pods: list[str]
    ) -> None:
        self._field = field
        self._passing = passing
        self._slices = standing.slices(field)
        self._supervisors = standing.supervisors(field.cluster, helm.NAMESPACE)
        self._pods = {pod: standing.of(field, pod) for pod in pods}

    def schemas(self, pods: list[str]) -> set[int]:
        """Return the schemas of their records."""
        texts = (text for pod in pods for text in self._pods[pod]["record"].values())
        return {json.loads(text)["record"]["version"] for text in texts}

    def add(self, pods: list[str]) -> None:
        """Watch these too."""
        self._pods |= {pod: standing.of(self._field, pod) for pod in pods}

    def end(self, pods: list[str]) -> None:
        """These go."""
        for pod in pods:
            assert standing.of(self._field, pod) == self._pods.pop(pod)
            self._field.delete_pod(pod)

    def holds(self, *, controllers: str, plugins: str) -> None:
        """With these images pods of every mode come and go, and nothing changes for the others."""
        result = images(self._field.cluster)
        assert result.pop("mps") == {NOW}
        assert result.pop("kubeletplugin") == {plugins}
        assert result == {name: {controllers} for name in CONTROLLERS}
        self._passing.go_on()
        assert {pod: standing.of(self._field, pod) for pod in self._pods} == self._pods
        assert standing.slices(self._field) == self._slices
        assert standing.supervisors(self._field.cluster, helm.NAMESPACE) == self._supervisors
        for pod in self._pods:
            if pod.endswith("gpu-mps"):
                self._serves_another(pod)

    def _serves_another(self, pod: str) -> None:
        """A second program of the container meets the server that the first one works with."""
        serves_another(self._field, pod, self._pods[pod]["said"][0]["mps"]["server"])


def serves_another(field: playground.Playground, pod: str, server: int) -> None:
    values = ("exec", "-n", field.namespace, pod, "--")
    document = json.loads(field.cluster.kubectl(*values, "simclient", "--allocate", "1Gi"))
    assert document["mps"]["server"] == server
    assert document["refused"] is None


def of_controllers(tag: str) -> list[str]:
    """Helm's flags for an image of the controllers alone."""
    return [f"--set={name}.image.tag={tag}" for name in CONTROLLERS]


def test_up_and_down_again_no_call_fails_and_nothing_under_a_running_pod_changes(
    cluster: api.Cluster, later: Path, field: playground.Playground, passing: passersby.Passersby
) -> None:
    first = rollouts.revision()
    stays, leaves = rollouts.at_work(field, "stays"), rollouts.at_work(field, "leaves")
    watch = Watch(field, passing, [*stays, *leaves])
    watch.holds(controllers=NOW, plugins=NOW)
    previous = kubelet_calls.count(cluster)
    assert previous.failed == {}

    release.install(*of_controllers(next_version.TAG))
    watch.holds(controllers=NEXT, plugins=NOW)

    release.install(ALL_NEXT, path=later)
    watch.holds(controllers=NEXT, plugins=NEXT)
    watch.end(leaves)
    names = rollouts.at_work(field, "made")
    watch.add(names)
    assert watch.schemas(stays) == {checkpoint.VERSION}
    assert watch.schemas(names) == {next_version.SCHEMA}

    release.install(ALL_NEXT, *of_controllers("latest"), path=later)
    watch.holds(controllers=NOW, plugins=NEXT)

    release.helm_says("rollback", helm.RELEASE, first, *rollouts.OURS, *chart.WAITING)
    watch.holds(controllers=NOW, plugins=NOW)
    watch.end(names)
    last = rollouts.at_work(field, "last")
    watch.add(last)
    assert watch.schemas(last) == {checkpoint.VERSION}
    watch.end(stays)
    watch.end(last)

    passing.stop()
    after = kubelet_calls.count(cluster)
    sys.stdout.write(f"{previous}\n{after}\ncame and went: {dict(passing.served)}\n")
    assert after.failed == {}
    assert min(after.prepared - previous.prepared, after.unprepared - previous.unprepared) > 40
    assert field.reasons() & FAILURES == set()
    assert release.left_on(cluster, "cdi", "state/claims") == []


def daemons(cluster: api.Cluster, node: str) -> float:
    """MPS daemons of a node, as its supervisor tells in its metrics."""
    pod = f"namespaces/{helm.NAMESPACE}/pods/{supervisor(cluster, node)}:8080"
    samples = kubelet_calls.metrics(cluster, pod)
    return sum(sample.value for sample in samples if sample.name == "dra_gpu_mps_daemons")


def supervisor(cluster: api.Cluster, node: str) -> str:
    """The name of a node's pod that runs MPS daemons."""
    query = (
        *rollouts.OURS,
        *rollouts.SUPERVISORS,
        f"--field-selector=spec.nodeName={node}",
        "--output=name",
    )
    return cluster.kubectl("get", "pods", *query).strip().rpartition("/")[2]


def test_a_supervisor_that_runs_no_daemon_is_replaced_by_deleting_its_pod(
    cluster: api.Cluster, later: Path, field: playground.Playground
) -> None:
    idle, busy = cluster.nodes()
    # With the supervisors' version as it is, Helm's own way to wait has an end too.
    release.install(ALL_NEXT, "--set=mps.image.tag=latest", "--wait=watcher", path=later)
    release.install(ALL_NEXT, path=later)
    notes = release.helm_says("get", "notes", helm.RELEASE, *rollouts.OURS).splitlines()
    (advice,) = [note for note in notes if "component=mps" in note]
    listed = cluster.kubectl(*shlex.split(advice)[1:])
    assert [listed.count(name) for name in (idle, busy, NOW, NEXT)] == [1, 1, 2, 0]
    (shared,) = rollouts.at_work(field, "before", {"gpu-mps": busy})
    previous = standing.of(field, shared)
    playground.until(lambda: daemons(cluster, idle) == 0, 20, f"no MPS daemon runs on {idle}")
    assert daemons(cluster, busy) == 1

    rollouts.replace(cluster, supervisor(cluster, idle))
    supervisors = standing.supervisors(cluster, helm.NAMESPACE)
    assert {node: image for node, (_, image) in supervisors.items()} == {idle: NEXT, busy: NOW}
    (new,) = rollouts.at_work(field, "after", {"gpu-mps": idle})
    assert standing.told(field, new)[0]["mps"] is not None
    assert standing.of(field, shared) == previous
    for pod in (shared, new):
        field.delete_pod(pod)


def test_a_supervisor_whose_pod_is_deleted_leaves_daemons_and_their_clients(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    node = cluster.nodes()[0]
    (shared,) = rollouts.at_work(field, "shared", {"gpu-mps": node})
    previous = standing.of(field, shared)
    rollouts.replace(cluster, supervisor(cluster, node))
    assert standing.of(field, shared) == previous
    assert daemons(cluster, node) == 1
    serves_another(field, shared, previous["said"][0]["mps"]["server"])
    (more,) = rollouts.at_work(field, "more", {"gpu-mps": node})
    assert "MpsFailed" not in field.reasons()
    for pod in (shared, more):
        field.delete_pod(pod)
    playground.until(lambda: daemons(cluster, node) == 0, 30, f"no MPS daemon runs on {node}")
