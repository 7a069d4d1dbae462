"""Claims of two namespaces do not meet on one GPU of our controller's (D18)."""

from collections.abc import Iterator
from typing import Any

import pytest

from driver.kube import client
from hack.cluster import api
from simulator import store as machines
from tests.e2e import playground

NODE = "e2e-a"


@pytest.fixture
def other(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[playground.Playground]:
    ground = playground.Playground.open(cluster, kube)
    try:
        yield ground
    finally:
        ground.close()


def ask(ground: playground.Playground, name: str, uuid: str) -> None:
    """A pod with a share of one GPU and no other."""
    text = f'device.attributes["gpu.ration.dev"].uuid == "{uuid}"'
    share: dict[str, Any] = {
        "deviceClassName": "gpu-mps.ration.dev",
        "selectors": [{"cel": {"expression": text}}],
        "capacity": {"requests": {"memory": "8Gi"}},
    }
    ground.create(playground.a_claim(name, **share))
    ground.create(playground.a_pod(name, claims=(name,), nodeSelector=playground.on(NODE)))


def test_a_claim_of_another_namespace_waits_until_the_gpu_is_left(
    field: playground.Playground, other: playground.Playground, cluster: api.Cluster
) -> None:
    uuid = machines.load(cluster.node_dir(NODE) / "gpu").gpus[0].uuid
    ask(field, "first", uuid)
    ask(field, "second", uuid)
    for name in ("first", "second"):
        field.running(name)
    ask(other, "third", uuid)
    message, *_ = other.told("third", "NoFit")
    assert "0 of 1 devices fit, 1 lacking (1 NamespacesApart)" in message
    for name in ("first", "second"):
        field.delete_pod(name)
    other.running("third")
