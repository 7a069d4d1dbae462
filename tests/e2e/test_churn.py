"""Thousands of claims come and go on simulated nodes while all around the controllers breaks.

Real kube-apiserver, etcd, kube-scheduler and kube-controller-manager; twenty nodes whose kubelets
are played by threads; two controllers, each behind a proxy that breaks what passes by a seeded
plan, killed and rotated meanwhile; a rogue that clears allocations. The judge is the history of
every claim as the API server tells it: at no version may a device, a capacity or a counter be
given out beyond what there is.

    .venv/bin/python -m pytest -q -s -p no:randomly tests/e2e/test_churn.py
    CHURN_SEED=7 CHURN_CLAIMS=300 ...   another plan, or a shorter run

Each run prints its seed and what it did: `-s` shows it, a failure does too.
"""

import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import campaign, fleet, load, playground, replicas, storms

SEED = int(os.environ.get("CHURN_SEED", "20261121"))
CLAIMS = int(os.environ.get("CHURN_CLAIMS", "2000"))
NODES = 20
ZONES = 5
FULL = int(os.environ.get("CHURN_FULL", "1"))
"""Nodes that publish MIG placements too: 224 devices instead of 24."""
GATED = 5
ALLOCATORS = ("controller", "scheduler")
HANDOVER_S = 30.0
FLIP_S = float(os.environ.get("CHURN_FLIP_S", "130"))


@pytest.fixture
def ground(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[playground.Playground]:
    """A namespace; its pods are the campaign's to end."""
    opened = playground.Playground.open(cluster, kube)
    yield opened
    opened.kube.delete(gvr.NAMESPACES, opened.namespace)


def begun(
    ground: playground.Playground, folder: Path, allocators: dict[str, str]
) -> Iterator[campaign.Campaign]:
    choosers = (storms.storm(SEED), storms.storm(SEED + 1))
    ours = replicas.Replicas(
        ground.cluster, ground.kube, folder, choosers, ("--relist-seconds=20",)
    )
    nodes = fleet.Fleet(ground.kube, NODES, ZONES, FULL)
    with campaign.begun(ground, nodes, ours, allocators, SEED) as item:
        yield item


@pytest.fixture
def stormy(ground: playground.Playground, tmp_path: Path) -> Iterator[campaign.Campaign]:
    """All nodes are the controllers'."""
    names = [f"sim-{number:02d}" for number in range(NODES)]
    yield from begun(ground, tmp_path, dict.fromkeys(names, "controller"))


@pytest.mark.timeout(780)
def test_claims_come_and_go_and_nothing_is_given_twice_whatever_breaks(
    stormy: campaign.Campaign,
) -> None:
    gated = stormy.load.gated(GATED)
    stormy.behind(stormy.rogue.run, stormy.kubelets, stormy.stop)
    stormy.behind(storms.upset, stormy.ours, stormy.stop, 120.0)
    stormy.behind(storms.revive, stormy.ours, stormy.stop)
    try:
        stormy.load.run(load.Measure(CLAIMS, at_once=100), stormy.stop)
        playground.until(lambda: len(stormy.load.live) <= GATED, 240, "the pods come and go")
        namespace = stormy.ground.namespace
        early = {f"{namespace}/{name}" for name in gated} & stormy.chronicle.judge.ever
        assert early == set()
        stormy.ours.calm()
        stormy.load.ungate(gated)
        stormy.drained(120)
        stormy.judged()
    finally:
        stormy.tell("churn")
    assert set(gated) <= stormy.kubelets.ran
    assert stormy.chronicle.judge.counts["allocated"] >= CLAIMS
    assert stormy.load.made["claims"] >= CLAIMS


@pytest.fixture
def mixed(ground: playground.Playground, tmp_path: Path) -> Iterator[campaign.Campaign]:
    """Every second node is kube-scheduler's."""
    owners = {f"sim-{number:02d}": ALLOCATORS[number % 2] for number in range(NODES)}
    yield from begun(ground, tmp_path, owners)


class Flips:
    """Gives nodes to the other allocator, `lanes` of them at a time, over and over."""

    def __init__(self, nodes: fleet.Fleet, lanes: int) -> None:
        self._nodes = nodes
        self._owners = {name: ALLOCATORS[index % 2] for index, name in enumerate(nodes.names)}
        self._lanes = [nodes.names[lane::lanes] for lane in range(lanes)]
        self.done = 0

    def behind(self, item: campaign.Campaign) -> None:
        for lane in self._lanes:
            item.behind(self._run, lane, item.stop)

    def _run(self, names: tuple[str, ...], stop: threading.Event) -> None:
        for name in itertools.cycle(names):
            previous = self._owners[name]
            after = ALLOCATORS[1 - ALLOCATORS.index(previous)]
            self._nodes.flip(name, previous, after, HANDOVER_S)
            self._owners[name] = after
            self.done += 1
            if stop.wait(2.0):
                return


@pytest.mark.timeout(600)
def test_nodes_change_their_allocator_under_load_and_the_two_never_overlap(
    mixed: campaign.Campaign,
) -> None:
    flips = Flips(mixed.nodes, lanes=5)
    flips.behind(mixed)
    mixed.behind(storms.revive, mixed.ours, mixed.stop)
    try:
        measure = load.Measure(100, 60, load.EITHER, anywhere=1.0, twins=0.0, seconds=FLIP_S)
        mixed.load.run(measure, mixed.stop)
        mixed.ours.calm()
        mixed.drained(120)
        mixed.judged()
    finally:
        mixed.tell(f"flips: {flips.done} done")
    by_us = mixed.ours.logs().count('"event": "allocated"')
    by_scheduler = mixed.chronicle.judge.counts["allocated"] - by_us
    assert flips.done >= 10
    assert min(by_us, by_scheduler) >= 50
