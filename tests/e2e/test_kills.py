"""Kills at every point, and two hundred at moments that nobody chose, against the real API server.

The process, its sockets, the MPS supervisor and the library are real too; the kubelet is not, which
would try again only once a minute.
"""

import contextlib
from collections.abc import Iterator

import pytest

from driver.kube import client, gvr
from hack.cluster import api
from tests.fakes import battering

ROUNDS, LONGEST_S = 100, 0.5
POINTS = {"whole": (6, 3), "mps": (10, 7), "mig": (13, 10), "ts": (9, 6)}
"""Of prepare and unprepare: writes of record, spec and what is told, and each step."""


@contextlib.contextmanager
def a_node(
    cluster: api.Cluster, kube: client.KubeClient, name: str, program: str
) -> Iterator[battering.Battered]:
    taint = {"key": "ration.dev/lane", "value": "e2e", "effect": "NoSchedule"}
    kube.create(gvr.NODES, {"metadata": {"name": name}, "spec": {"taints": [taint]}})
    try:
        with battering.battered(kube, cluster.kubeconfig, name, program) as created:
            yield created
    finally:
        kube.delete(gvr.NODES, name)


@pytest.fixture
def battered(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[battering.Battered]:
    with a_node(cluster, kube, "e2e-k", battering.PLUGIN) as node:
        yield node


@pytest.fixture(scope="module")
def doomed(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[battering.Battered]:
    with a_node(cluster, kube, "e2e-d", battering.DOOMED) as node:
        yield node


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("face", "points"), POINTS.items())
def test_a_kill_at_every_point_of_a_call_leaves_nothing_half_done(
    doomed: battering.Battered, face: str, points: tuple[int, int]
) -> None:
    passed = [doomed.perish(face, call) for call in ("prepare", "unprepare")]
    assert tuple(map(len, passed)) == points, passed


@pytest.mark.timeout(1800)
def test_two_hundred_kills_under_every_face_at_once_leave_nothing_half_done(
    battered: battering.Battered,
) -> None:
    battered.endure(ROUNDS, LONGEST_S)
