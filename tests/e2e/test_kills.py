"""Two hundred kills at moments that nobody chose, against the real API server.

The process, its sockets, the MPS supervisor and the library are real too; the kubelet is not, which
would try again only once a minute.
"""

from collections.abc import Iterator

import pytest

from driver.kube import client, resource
from hack.cluster import api
from tests.fakes import battering

NODE = "e2e-k"
ROUNDS, LONGEST_S = 100, 0.5


@pytest.fixture
def battered(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[battering.Battered]:
    taint = {"key": "ration.dev/lane", "value": "e2e", "effect": "NoSchedule"}
    kube.create(resource.NODES, {"metadata": {"name": NODE}, "spec": {"taints": [taint]}})
    try:
        with battering.battered(kube, cluster.kubeconfig, NODE) as made:
            yield made
    finally:
        kube.delete(resource.NODES, NODE)


@pytest.mark.timeout(1800)
def test_two_hundred_kills_under_every_face_at_once_leave_nothing_half_done(
    battered: battering.Battered,
) -> None:
    battered.endure(ROUNDS, LONGEST_S)
