"""Labels beside those of others: ours come, change and go, theirs stay."""

import threading

import pytest

from driver import ids
from driver.controller.nodes import labels as node_labels
from driver.kube import client, gvr
from driver.resources.core import nodes
from driver.resources.dra import slices
from tests.fakes import clock
from tests.fakes.apiserver import server
from tests.support.builders import objects

COUNT, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.product"


class World:
    """One node and its slice, as the controller's caches would hold them."""

    def __init__(self, api: server.ApiServer, kube: client.KubeClient) -> None:
        self.api = api
        self.published: dict[ids.Key, slices.Slice] = {}
        self.stop = threading.Event()
        api.put(gvr.NODES, objects.a_node("node-a"))
        self.labelling = node_labels.NodeLabeler(
            kube, self.known, lambda: self.published, "gpu.ration.dev", clock.FakeClock()
        )

    def known(self) -> dict[ids.Key, nodes.Node]:
        found = self.api.read(gvr.NODES, "node-a")
        return {ids.Key("node-a"): nodes.parse(found)} if found else {}

    def publish(self, count: int, product: str = "NVIDIA A100") -> None:
        told = {"type": {"string": "gpu"}, "productName": {"string": product}}
        devices = [objects.a_device(f"gpu-{at}", attributes=told) for at in range(count)]
        one = slices.parse(objects.a_slice("node-a", devices))
        self.published = {ids.Key("slice"): one} if count else {}
        self.reconcile()

    def reconcile(self) -> None:
        self.labelling.reconcile(self.stop)

    def labels(self) -> dict[str, str]:
        return dict(self.known()[ids.Key("node-a")].labels)


@pytest.fixture
def world(api: server.ApiServer, kube: client.KubeClient) -> World:
    return World(api, kube)


def test_labels_follow_the_gpus_and_go_with_them(world: World) -> None:
    before = world.labels()
    world.publish(2)
    assert world.labels()[COUNT] == "2"
    assert world.labels()[PRODUCT] == "NVIDIA-A100"
    world.publish(1)
    assert world.labels()[COUNT] == "1"
    world.publish(0)
    assert world.labels() == before


def test_devices_of_another_driver_label_no_node(world: World) -> None:
    devices = [objects.a_device("gpu-0")]
    foreign = slices.parse(objects.a_slice("node-a", devices, "gpu.example.com"))
    world.published = {ids.Key("slice"): foreign}
    world.reconcile()
    assert not world.api.requests


def test_nothing_is_written_while_nothing_changes(world: World) -> None:
    world.publish(2)
    asked = len(world.api.requests)
    world.reconcile()
    assert len(world.api.requests) == asked


def test_no_node_is_labelled_after_a_stop(world: World) -> None:
    world.stop.set()
    world.publish(2)
    assert not world.api.requests


def test_a_label_that_somebody_took_away_comes_back(world: World, kube: client.KubeClient) -> None:
    world.publish(2)
    kube.patch(gvr.NODES, "node-a", {"metadata": {"labels": {COUNT: None}}})
    world.reconcile()
    assert world.labels()[COUNT] == "2"


def test_a_node_that_somebody_else_labels_otherwise_is_left_alone(
    world: World, kube: client.KubeClient
) -> None:
    theirs = {"metadata": {"name": "node-a", "labels": {PRODUCT: "NVIDIA-A100-SHARED"}}}
    body = {"apiVersion": "v1", "kind": "Node", **theirs}
    apply = client.PatchType.APPLY
    kube.patch(gvr.NODES, "node-a", body, kind=apply, field_manager="nfd-master")
    world.publish(2)
    assert world.labels()[PRODUCT] == "NVIDIA-A100-SHARED"
    assert COUNT not in world.labels()
    asked = len(world.api.requests)
    world.publish(2)
    assert len(world.api.requests) == asked
    gone = {"metadata": {"name": "node-a", "labels": {}}, "apiVersion": "v1", "kind": "Node"}
    kube.patch(gvr.NODES, "node-a", gone, kind=apply, field_manager="nfd-master")
    world.reconcile()
    assert (world.labels()[PRODUCT], world.labels()[COUNT]) == ("NVIDIA-A100", "2")
