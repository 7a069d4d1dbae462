"""The end-to-end lane: a real cluster. It uses this checkout's when it is up, with nodes of its
own, so that whatever else runs there is left alone; else it brings one up and takes it down.

With GROUND=kind it is kind's, whose nodes are its workers (`grounds`).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client
from hack.cluster import api, errors, state, versions
from tests.e2e import grounds, playground

ROOT = Path(__file__).parents[2]
NODES = ("e2e-a", "e2e-b")


def hack(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "hack.cluster", *arguments], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[api.Cluster]:
    """The cluster that is up, or one for this run, of the Kubernetes that K8S asks for."""
    expected = versions.load().line(os.environ.get("K8S"))
    try:
        load, ours = grounds.load(), False
    except errors.ClusterError:
        load, ours = grounds.up(nodes=1), True
    if load.kubernetes != expected:
        pytest.exit(
            f"a cluster of Kubernetes {load.kubernetes} is up, this run is for {expected}: "
            f"set K8S={load.kubernetes}, or end the cluster: make cluster-down",
            returncode=1,
        )
    if not grounds.IS_KIND and load.driver is not state.Driver.PROCESSES:
        pytest.exit(
            f"the cluster that is up has the driver as {load.driver}, these tests stop and start "
            "its processes: end the cluster first, make cluster-down",
            returncode=1,
        )
    try:
        yield load
    finally:
        if ours:
            grounds.down()


@pytest.fixture(scope="session")
def nodes(cluster: api.Cluster) -> Iterator[tuple[str, ...]]:
    """Two nodes of eight simulated GPUs each, for this run alone."""
    if grounds.IS_KIND:
        with playground.labelled(cluster, cluster.nodes()):
            yield cluster.nodes()
        return
    try:
        for name in NODES:
            playground.add_node(cluster, name)
        yield NODES
    finally:
        for name in NODES:
            if name in cluster.nodes():
                cluster.remove_node(name)


@pytest.fixture(scope="session")
def kube(cluster: api.Cluster) -> client.KubeClient:
    """The administrator's client."""
    return client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")


@pytest.fixture
def field(
    cluster: api.Cluster, nodes: tuple[str, ...], kube: client.KubeClient
) -> Iterator[playground.Playground]:
    """A namespace of the test's own; what it made is gone before the next test."""
    assert nodes
    ground = playground.Playground.open(cluster, kube)
    try:
        yield ground
    finally:
        ground.close()
