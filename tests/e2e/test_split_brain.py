"""Controllers that wrongly believe that they lead, and one that sees the world seconds late.

Who believes is answered for its Lease by the proxy before it, so nothing it hears can tell it
otherwise: what keeps it from harm is the API server's policy alone. The judge is the history of
every claim, as in test_churn.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import campaign, fleet, load, playground, replicas
from tests.fakes.faultproxy import own_lease, plan

SEED = 20261122
NODES, ZONES = 6, 2
CLAIMS, FEW = 250, 80
LATE_S = 0.05
"""Of every frame, one after the other: under load a watch falls seconds behind."""
IN_VAIN_S = 20.0
TURN_S, SETTLE_S = 8.0, 3.0
"""Of one holder, and between two: what an elector waits after it has won, and a little more."""
TURNS = 20
NOBODY = "nobody"


@pytest.fixture
def ground(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[playground.Playground]:
    opened = playground.Playground.open(cluster, kube)
    yield opened
    opened.kube.delete(gvr.NAMESPACES, opened.namespace)


@contextlib.contextmanager
def begun(ground: playground.Playground, ours: replicas.Replicas) -> Iterator[campaign.Campaign]:
    nodes = fleet.Fleet(ground.kube, NODES, ZONES, full=1)
    owners = dict.fromkeys(nodes.names, "controller")
    with campaign.begun(ground, nodes, ours, owners, SEED) as item:
        yield item


def two(ground: playground.Playground, folder: Path, *choosers: plan.Chooser) -> replicas.Replicas:
    return replicas.Replicas(ground.cluster, ground.kube, folder, choosers)


def refusals(ours: replicas.Replicas, index: int) -> int:
    """Return how often the API server told a replica that it does not hold the Lease."""
    return ours.logs(str(index)).count("does not hold the Lease")


def true_to(believed: own_lease.OwnLease) -> tuple[str, int]:
    """Holder and transitions of the term that a replica believes to be its own."""
    return believed.spec["holderIdentity"], believed.spec["leaseTransitions"]


def writers(ground: playground.Playground) -> set[str]:
    """The holders under whose terms the status of claims was written."""
    managers = [
        managed_field["manager"].split("/")
        for claim in ground.claims()
        for managed_field in claim["metadata"]["managedFields"]
        if managed_field.get("subresource") == "status"
    ]
    return {words[1] for words in managers if words[0] == "ration-controller" and len(words) > 1}


@pytest.mark.timeout(500)
def test_a_replica_that_wrongly_believes_to_lead_changes_nothing(
    ground: playground.Playground, tmp_path: Path
) -> None:
    ours = two(ground, tmp_path, plan.Script(), plan.Script())
    believed = ours.believing(0)
    with begun(ground, ours) as item:
        try:
            item.load.run(load.Measure(CLAIMS, at_once=40), item.stop)
            assert writers(ground) == {str(ours.holder())}
            item.drained(120)
            item.judged()
        finally:
            item.tell("split brain: one believes, one leads")
        assert believed.spec["holderIdentity"].startswith("replica-0-")
        assert str(ours.holder()).startswith("replica-1-")
        assert refusals(ours, 0) > 0
        assert refusals(ours, 1) == 0
        assert item.chronicle.judge.counts["allocated"] >= CLAIMS


@pytest.mark.timeout(500)
def test_only_the_lease_holder_of_two_believing_replicas_allocates(
    ground: playground.Playground, tmp_path: Path
) -> None:
    ours = two(ground, tmp_path, plan.Script(), plan.Script())
    believed = [ours.believing(index) for index in (0, 1)]
    ours.give_lease(NOBODY, transitions := ours.transitions() + 1)
    with begun(ground, ours) as item:
        judge = item.chronicle.judge
        try:
            item.behind(item.load.run, load.Measure(FEW, at_once=30), item.stop)
            playground.until(lambda: all(refusals(ours, entry) for entry in (0, 1)), 60, "both try")
            time.sleep(IN_VAIN_S)
            assert judge.counts["allocated"] == 0
            turns = 0
            while item.load.live or item.load.made["claims"] < FEW:
                ours.give_lease(*true_to(believed[turns % 2]))
                time.sleep(TURN_S)
                turns += 1
                assert turns < TURNS, "too little moves"
                ours.give_lease(NOBODY, transitions + turns)
                time.sleep(SETTLE_S)
            ours.give_lease(*true_to(believed[0]))  # somebody has to let go of the last holds
            item.judged()
        finally:
            item.tell("split brain: two believe, and are given the Lease in turn")
        assert turns >= 2
        assert judge.counts["allocated"] >= FEW


@pytest.mark.timeout(500)
def test_a_leader_that_sees_everything_late_gives_nothing_twice(
    ground: playground.Playground, tmp_path: Path
) -> None:
    late = plan.Seeded(SEED, frames=((1.0, plan.Trickle(LATE_S)),))
    ours = two(ground, tmp_path, late, late)
    with begun(ground, ours) as item:
        item.behind(item.rogue.run, item.kubelets, item.stop)
        try:
            item.load.run(load.Measure(CLAIMS, at_once=40), item.stop)
            ours.kill_leader()
            ours.revive()
            ours.calm()
            item.drained(240)
            item.judged()
        finally:
            item.tell("split brain: a leader that sees late")
        assert ours.faults()["Trickle"] > CLAIMS
        assert item.rogue.cleared > 0
