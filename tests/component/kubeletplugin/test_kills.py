"""Kills at moments that nobody chose: whatever was half done is whole, or gone, at the retry."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client, resource
from tests.fakes import battering, mpsnode
from tests.fakes.apiserver import server as api_server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
ROUNDS, LONGEST_S = 5, 0.5
NODE = "node-k"


@pytest.fixture
def battered(
    api: api_server.ApiServer, kube: client.KubeClient, tmp_path: Path
) -> Iterator[battering.Battered]:
    api.put(resource.NODES, {"metadata": {"name": NODE, "uid": "node-uid"}})
    with mpsnode.machine() as base:
        node = mpsnode.Node(base)
        made = battering.Battered(node, kube, api.kubeconfig(tmp_path), NODE)
        yield made
        made.close()
        node.close()


def test_killed_under_every_face_at_once_it_prepares_and_releases_all_the_same(
    battered: battering.Battered,
) -> None:
    for when in battering.moments(ROUNDS, LONGEST_S):
        refs = battered.claims()
        battered.survive(refs, when)
        battered.forget(refs)
