"""Under --allocator=scheduler the same pods run, allocated by kube-scheduler alone."""

from collections.abc import Iterator

import pytest

from hack.cluster import api
from tests.e2e import playground

NODE = "e2e-s"


@pytest.fixture(scope="module")
def scheduler_node(cluster: api.Cluster) -> Iterator[str]:
    try:
        playground.add_node(cluster, NODE, allocator="scheduler")
        yield NODE
    finally:
        if NODE in cluster.nodes():
            cluster.remove_node(NODE)


@pytest.mark.smoke
def test_pods_run_with_gpus_that_kube_scheduler_chose(
    field: playground.Playground, scheduler_node: str
) -> None:
    on = playground.on(scheduler_node)
    field.create(playground.a_template("gpu"), playground.a_template("eight", 8))
    for name in ("one", "two"):
        field.create(playground.a_pod(name, template="gpu", nodeSelector=on))
    for name in ("one", "two"):
        field.running(name)
    assert field.uuids("one") != field.uuids("two")
    for claim in field.claims():
        managers = {
            managed_field["manager"] for managed_field in claim["metadata"]["managedFields"]
        }
        assert not any(manager.startswith("ration-controller") for manager in managers)
    for name in ("one", "two"):
        field.delete_pod(name)
    field.create(playground.a_pod("big", template="eight", nodeSelector=on))
    field.running("big")
    assert len(set(field.uuids("big"))) == 8
