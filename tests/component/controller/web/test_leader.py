import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.controller.web import leader
from driver.kube import client, gvr
from tests.fakes import clock as clocks
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server
from tests.support.builders import objects


@dataclasses.dataclass
class World:
    api: api_server.ApiServer
    time: clocks.FakeClock
    leader: leader.Leader

    def held(self, by: str) -> None:
        meta = {"name": "ration-controller", "namespace": "ration-system"}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
        self.api.put(gvr.LEASES, {**body, "spec": {"holderIdentity": by}})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_server.ApiServer() as api:
        time = clocks.FakeClock()
        kube = client.KubeClient.connect(api.kubeconfig(tmp_path), "test")
        yield World(api, time, leader.Leader(kube, "ration-controller", "ration-system", time))


def test_the_leader_is_the_pod_of_the_leases_holder(world: World) -> None:
    assert world.leader.pod() == ""
    pod = objects.a_pod("ration-controller-7d9-x", "none", status={"podIP": "10.0.0.7"})
    pod["metadata"]["namespace"] = "ration-system"
    world.api.put(gvr.PODS, pod)
    world.held("ration-controller-7d9-x-0a1b2c3d")
    assert world.leader.pod() == ""  # as it was a moment ago
    world.time.advance(leader.CACHE_S)
    assert world.leader.pod() == "ration-controller-7d9-x"
    assert world.leader.address() == "10.0.0.7"


def test_the_leader_is_unknown_while_the_api_server_is_silent(world: World) -> None:
    world.held("a-0a1b2c3d")
    world.api.faults.add(faults.Answer(500), lambda one: "leases" in one.path)
    assert world.leader.pod() == ""
    assert world.leader.address() == ""
