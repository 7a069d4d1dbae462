"""Tests of a killed plugin, a restarted kubelet and a controller killed between writes."""

import pytest

from driver.kube import client, gvr
from tests.e2e import playground

NODE = "e2e-a"


def container_ids(pod: playground.Raw) -> list[tuple[str, int]]:
    statuses = pod["status"]["containerStatuses"]
    return [(status["containerID"], status["restartCount"]) for status in statuses]


def specs(field: playground.Playground) -> dict[str, str]:
    folder = field.cluster.node_dir(NODE) / "cdi"
    return {path.name: path.read_text() for path in folder.glob("*.json")}


def slices_of(field: playground.Playground, node: str) -> list[playground.Raw]:
    listing = field.kube.list(
        gvr.RESOURCE_SLICES, field_selector=f"spec.nodeName={node},spec.driver=gpu.ration.dev"
    )
    return listing.items


def registrations(field: playground.Playground) -> int:
    return field.cluster.log_path("plugin", NODE).read_text().count("registered with the kubelet")


@pytest.mark.smoke
def test_a_plugin_killed_under_running_pods_disturbs_nothing(
    field: playground.Playground,
) -> None:
    field.create(playground.a_template("gpu"))
    on = playground.on(NODE)
    field.create(playground.a_pod("before", template="gpu", nodeSelector=on))
    ids = container_ids(field.running("before"))
    previous, slices = specs(field), slices_of(field, NODE)
    times = registrations(field)
    field.cluster.kill("plugin", NODE)
    field.cluster.start("plugin", NODE)
    # A pod that comes earlier is refused by the kubelet, which tries again a minute later.
    playground.until(lambda: registrations(field) > times, 20, "the plugin is registered again")
    field.create(playground.a_pod("after", template="gpu", nodeSelector=on))
    field.running("after", 100)
    assert container_ids(field.pod("before")) == ids
    assert {name: specs(field)[name] for name in previous} == previous
    assert field.uuids("after") != field.uuids("before")
    assert slices_of(field, NODE) == slices


@pytest.mark.smoke
def test_slices_are_back_soon_after_the_kubelet_restarted(field: playground.Playground) -> None:
    field.create(playground.a_template("gpu"))
    field.create(playground.a_pod("pod", template="gpu", nodeSelector=playground.on(NODE)))
    ids = container_ids(field.running("pod"))
    uids = [entry["metadata"]["uid"] for entry in slices_of(field, NODE)]
    field.cluster.stop("kubelet", NODE)
    field.cluster.start("kubelet", NODE)

    playground.until(lambda: not slices_of(field, NODE), 40, "the kubelet wipes the slices")
    playground.until(lambda: slices_of(field, NODE), 10, "the plugin publishes them again")
    assert [entry["metadata"]["uid"] for entry in slices_of(field, NODE)] != uids
    assert container_ids(field.pod("pod")) == ids


def test_a_claim_left_with_only_the_finalizer_is_allocated_by_the_next_leader(
    field: playground.Playground,
) -> None:
    """Continue after a controller was killed between its two writes."""
    field.cluster.stop("controller-0")
    field.cluster.stop("controller-1")
    field.create(playground.a_claim("half"))
    body = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    field.kube.patch(
        gvr.RESOURCE_CLAIMS,
        "half",
        body,
        namespace=field.namespace,
        kind=client.PatchType.STRATEGIC,
    )
    field.create(playground.a_pod("pod", claims=("half",)))
    field.cluster.start("controller-0")
    field.cluster.start("controller-1")
    field.running("pod")
