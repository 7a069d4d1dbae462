"""Taints from outside reach our controller's picture, and the limits of a slice are the API's."""

import dataclasses

import pytest

from driver import errors, names
from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import playground
from tests.support.builders import objects

NODE = "e2e-a"
RULE = "e2e-hot"


def rules(cluster: api.Cluster) -> gvr.Resource:
    """1.36 serves them as v1beta2 only, and kube-scheduler there does not look at them."""
    version = "v1beta2" if cluster.kubernetes == "1.36" else "v1"
    return dataclasses.replace(gvr.DEVICE_TAINT_RULES, version=version)


def test_a_rule_keeps_a_device_from_our_pods_until_it_goes(
    field: playground.Playground, kube: client.KubeClient, cluster: api.Cluster
) -> None:
    device = min(
        entry["name"]
        for item in kube.list(gvr.RESOURCE_SLICES).items
        for entry in item["spec"].get("devices", ())
        if item["spec"]["nodeName"] == NODE
    )
    selector = {"driver": names.DRIVER, "pool": NODE, "device": device}
    taint = {"key": "example.com/hot", "value": "yes", "effect": "NoSchedule"}
    kind = rules(cluster)
    kube.create(
        kind, {"metadata": {"name": RULE}, "spec": {"deviceSelector": selector, "taint": taint}}
    )
    try:
        playground.until(lambda: _condition(kube) == "False", 10, "the node's condition")
        field.create(playground.a_claim("all", 8))
        field.create(playground.a_pod("all", claims=("all",), nodeSelector=playground.on(NODE)))
        message, *_ = field.told("all", "NoFit")
        assert "7 of 8 devices fit" in message
        assert "1 DeviceTainted" in message
    finally:
        kube.delete(kind, RULE)
    field.running("all")
    playground.until(lambda: _condition(kube) == "True", 10, "the node's condition")


def _condition(kube: client.KubeClient) -> str:
    conditions = kube.get(gvr.NODES, NODE)["status"]["conditions"]
    return next(
        str(condition["status"])
        for condition in conditions
        if condition["type"] == names.NODE_CONDITION
    )


@pytest.mark.smoke
def test_the_api_server_refuses_a_ninth_counter_set_with_words(
    kube: client.KubeClient, cluster: api.Cluster
) -> None:
    entry = objects.a_slice(cluster.nodes()[0], [], "ninth.test.ration.dev")
    entry["metadata"] = {"name": "ninth"}
    del entry["spec"]["devices"]
    entry["spec"]["sharedCounters"] = [
        {"name": f"gpu-{index}", "counters": {"gpu": {"value": "1"}}} for index in range(9)
    ]
    with pytest.raises(errors.Invalid, match=r"spec\.sharedCounters: Too many: 9"):
        kube.create(gvr.RESOURCE_SLICES, entry)
