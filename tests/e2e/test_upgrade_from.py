"""An earlier release, with its own chart and image, updated to this checkout and rolled back.

PREVIOUS names a commit of this repository, whose release it is. Pods of every mode live on, their
records, CDI specs and MPS daemons are read by the other version, and each version ends what the
other prepared.
"""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client
from hack.chart import helm
from hack.cluster import api, chart, errors
from hack.image import build
from tests.e2e import playground, release, rollouts, standing
from tests.e2e.conftest import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
cluster = release.cluster
IMAGE = "ration.local/driver:previous"
"""Image of the earlier release."""
TAG = "--set=image.tag=previous"
"""Helm's flag for that image."""
RENAMED = ("controller.writers=8", "controller.writeWorkers")
"""A value of the earlier release, and its present name."""
FAILURES = {"FailedPrepareDynamicResources", "PrepareFailed", "UnprepareFailed"}


@pytest.fixture(scope="module")
def previous(cluster: api.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sources of the earlier release; every node has its image."""
    commit = os.environ.get("PREVIOUS")
    if not commit:
        pytest.skip("no earlier release: PREVIOUS names its commit")
    folder = tmp_path_factory.mktemp("previous")
    archive = subprocess.run(
        ("git", "archive", commit), cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
        sources.extractall(folder, filter="data")
    cluster.load_image(build.ensure(IMAGE, folder))
    return folder


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    """A namespace with a template of each mode; this checkout is installed again at the end."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    try:
        for mode in release.MODES:
            ground.create(release.a_template(mode))
        yield ground
    finally:
        release.install()
        ground.close()


def install_previous(folder: Path) -> str:
    """Install the earlier release by its own chart and values; its revision."""
    values = folder / "hack" / "cluster" / "pods.yaml"
    flags = (f"--namespace={helm.NAMESPACE}", "--create-namespace", f"--values={values}")
    source = str(folder / "deploy" / "helm" / "ration")
    two = "--set=controller.replicas=2"
    release.helm_says(
        "upgrade", "--install", helm.RELEASE, source, *flags, TAG, two, *chart.WAITING
    )
    return rollouts.revision()


def replace_supervisors(cluster: api.Cluster) -> None:
    """Delete the pods that run MPS daemons: they are updated by deletion alone."""
    rollouts.replace(cluster, *rollouts.SUPERVISORS)


def test_an_earlier_release_is_updated_and_rolled_back_under_running_pods(
    cluster: api.Cluster, previous: Path, field: playground.Playground
) -> None:
    first = install_previous(previous)
    replace_supervisors(cluster)
    stays = rollouts.at_work(field, "stays")
    leaves = rollouts.at_work(field, "leaves")
    initial = {pod: standing.of(field, pod) for pod in (*stays, *leaves)}

    release.install()
    replace_supervisors(cluster)
    assert {pod: standing.of(field, pod) for pod in initial} == initial
    for pod in leaves:
        field.delete_pod(pod)
    created = rollouts.at_work(field, "made")
    present = {pod: standing.of(field, pod) for pod in (*stays, *created)}

    release.helm_says("rollback", helm.RELEASE, first, *rollouts.OURS, *chart.WAITING)
    replace_supervisors(cluster)
    assert {pod: standing.of(field, pod) for pod in present} == present
    for pod in (*created, *stays):
        field.delete_pod(pod)
    for pod in rollouts.at_work(field, "last"):
        field.delete_pod(pod)
    assert field.reasons() & FAILURES == set()
    assert release.left_on(cluster, "cdi", "state/claims") == []


def test_a_value_of_the_earlier_release_is_refused_with_its_present_name(
    cluster: api.Cluster, previous: Path
) -> None:
    assert previous.is_dir()
    former, name = RENAMED
    with pytest.raises(errors.ClusterError, match=name):
        release.install(f"--set={former}")
    status = json.loads(release.helm_says("status", helm.RELEASE, *rollouts.OURS, "--output=json"))
    assert status["info"]["status"] == "deployed"
    assert cluster.nodes()
