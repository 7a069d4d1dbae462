"""Uninstalling by real Helm: refused while claims are in use, nothing left but our two kinds.

It takes the whole driver away, so it has a cluster with the driver's pods to itself.
"""

from collections.abc import Iterator

import pytest

from driver import names
from driver.api import crd
from driver.kube import client, gvr
from driver.resources.dra import claims
from hack.chart import helm
from hack.cluster import api
from tests.e2e import playground, release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
cluster = release.cluster


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    try:
        yield ground
    finally:
        release.install()
        for node in cluster.nodes():
            cluster.kubectl("uncordon", node)
        ground.close()


def only_the_kinds_in_the_api(cluster: api.Cluster) -> None:
    """The pods that cleared the nodes end in a moment: Helm does not wait for what it deletes."""
    playground.until(
        lambda: release.left_in_the_api(cluster) == release.KEPT, 10, "the last pods of ours end"
    )
    assert release.left_in_the_api(cluster) == release.KEPT


def test_a_release_uninstalls_when_no_claim_is_in_use_and_keeps_user_objects(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    users = [*(release.of_mode(field, mode) for mode in release.MODES), release.converted(field)]
    for name in users:
        field.running(name)
    assert release.left_on(cluster, "cdi")
    waiting = release.held(field, cluster.nodes()[0])

    code, words = release.uninstall()
    assert code != 0
    assert "Not uninstalled, and nothing was changed: 5 claims are in use" in words
    for name in users:
        node = field.pod(name)["spec"]["nodeName"]
        assert f"  pod {field.namespace}/{name} on {node}" in words
    assert f"kubectl -n {field.namespace} delete pod {' '.join(sorted(users))}" in words
    assert waiting not in words
    for name in users:
        assert field.pod(name)["status"]["phase"] == "Running"
        field.delete_pod(name)

    name = f"{field.namespace}-kept"
    queue = {"apiVersion": crd.VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": {}}
    field.kube.create(gvr.QUEUES, queue)
    code, words = release.uninstall()
    assert code == 0, words
    assert "Every node is cleared." in words
    only_the_kinds_in_the_api(cluster)
    field.kube.delete(gvr.QUEUES, name)
    assert release.left_on(cluster) == []
    assert release.holds(field) == []
    freed = claims.parse(field.claim(waiting))
    assert (freed.allocation, freed.consumers) == (None, ())
    assert names.CLAIM_FINALIZER in freed.finalizers

    release.install()
    cluster.kubectl("uncordon", cluster.nodes()[0])
    field.running("waiting", within_s=90)


def test_a_forced_uninstall_names_stuck_pods_and_a_reinstall_ends_them(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    users = [release.of_mode(field, mode) for mode in ("gpu", "gpu-mps", "gpu-mig")]
    for name in users:
        field.running(name)
    plugin = ("daemonset", "ration-kubeletplugin", "-n", helm.NAMESPACE)
    cluster.kubectl("annotate", *plugin, f"{names.UNINSTALL}={names.FORCE}")

    code, words = release.uninstall()
    assert code == 0, words
    assert "Uninstalling by force while 3 claims are in use" in words
    for name in users:
        node = field.pod(name)["spec"]["nodeName"]
        assert f"  pod {field.namespace}/{name} on {node}" in words
    only_the_kinds_in_the_api(cluster)
    left_on = release.left_on(cluster)
    assert len([path for path in left_on if path.startswith("cdi/")]) == len(users)
    assert len([path for path in left_on if path.startswith("state/claims/")]) == len(users)

    cluster.kubectl("delete", "pods", "--all", "-n", field.namespace, "--wait=false")
    with pytest.raises(AssertionError, match="the pods end"):
        playground.until(lambda: not any(map(field.find, users)), 15, "the pods end")

    release.install()
    playground.until(lambda: not any(map(field.find, users)), 150, "the pods end")
    playground.until(
        lambda: not release.left_on(cluster, "cdi", "state/claims"), 30, "records are gone"
    )
