"""The controller without the kubelet plugin, for the devices of a driver that is there already."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.kube import client, gvr
from hack.chart import helm
from hack.cluster import api, chart
from tests.e2e import managed_devices, playground, release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
cluster = release.cluster
DRIVER = "gpu.example.com"
ONLY = (
    "--set=kubeletPlugin.enabled=false",
    "--set=admission.convert=on",
    managed_devices.managed(DRIVER),
)


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    """A namespace beside devices of another driver, with the controller alone."""
    managed_devices.require_rules(cluster)
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    with managed_devices.unprepared(kube, cluster.nodes()[0], DRIVER, "gpu", 4):
        ground = playground.Playground.open(cluster, kube)
        try:
            chart.install(release.WHERE, *ONLY)
            yield ground
        finally:
            release.install()
            ground.close()


def taints(kube: client.KubeClient) -> set[str]:
    """Return the keys of the controller's rules."""
    selector = f"{names.ALLOCATOR_RULE}=true"
    rules = kube.list(gvr.DEVICE_TAINT_RULES, label_selector=selector).items
    return {str(rule["spec"]["taint"]["key"]) for rule in rules}


def ask(field: playground.Playground, name: str) -> None:
    pod = release.a_pod(name, claims=(name,))
    field.create(playground.a_claim(name, deviceClassName=DRIVER), pod)


def a_request_for_a_labelled_class_is_converted(field: playground.Playground) -> None:
    label = {"metadata": {"labels": {names.CONVERT_LABEL: "true"}}}
    field.kube.patch(gvr.DEVICE_CLASSES, DRIVER, label)
    resource = names.CLASS_RESOURCE_PREFIX + DRIVER

    def converted() -> bool:
        pod = release.a_pod("requests")
        pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
        field.create(pod)
        if names.CONVERTED in field.pod("requests")["metadata"].get("labels", {}):
            return True
        field.delete_pod("requests")
        return False

    playground.until(converted, 60, "the webhook knows the label")

    def allocated() -> bool:
        """Its device has the controller's taint, so nobody else gives it."""
        return any(field.device_of(claim["metadata"]["name"]) for claim in field.claims())

    playground.until(allocated, 60, "the controller allocates the claim")
    field.delete_pod("requests")
    field.kube.patch(
        gvr.DEVICE_CLASSES, DRIVER, {"metadata": {"labels": {names.CONVERT_LABEL: None}}}
    )


def holds(field: playground.Playground, name: str) -> list[dict[str, Any]]:
    """Return the entries by which the controller keeps an allocation."""
    reserved = field.claim(name).get("status", {}).get("reservedFor") or []
    return [entry for entry in reserved if entry["resource"] == names.HOLD_RESOURCE]


def test_the_controller_allocates_without_a_plugin_and_uninstalling_hands_back(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    kube = field.kube
    playground.until(lambda: taints(kube) == {names.ALLOCATOR_TAINT}, 120, "the handover ends")
    text = cluster.kubectl("get", "daemonsets", "-n", helm.NAMESPACE, "--output=json")
    assert json.loads(text)["items"] == []
    a_request_for_a_labelled_class_is_converted(field)
    ask(field, "managed")
    playground.until(lambda: field.device_of("managed") is not None, 60, "a device is allocated")

    release.helm_says("uninstall", helm.RELEASE, f"--namespace={helm.NAMESPACE}")
    playground.until(lambda: not taints(kube), 60, "the rule is gone")
    assert not holds(field, "managed")
    ask(field, "after")
    playground.until(lambda: field.device_of("after") is not None, 60, "kube-scheduler allocates")
    assert not holds(field, "after")
