"""Gangs on a real cluster: they run as a whole or hold nothing, whoever leads meanwhile."""

import time

import pytest

from driver import names
from driver.kube import gvr
from driver.resources.core import pods
from driver.resources.dra import claims
from tests.e2e import playground
from tests.e2e.leadership import CONTROLLERS, holder, leader

Raw = playground.Raw


@pytest.fixture(autouse=True)
def both_running(field: playground.Playground) -> None:
    for name in CONTROLLERS:
        if field.cluster.pid(name) is None:
            field.cluster.start(name)


def a_member(name: str, gang: str, size: int, template: str = "gpu", **more: str) -> Raw:
    pod = playground.a_pod(name, template=template)
    pod["metadata"]["labels"] = {names.GANG_LABEL: gang}
    pod["metadata"]["annotations"] = {names.GANG_SIZE: str(size), **more}
    return pod


def a_gang(
    field: playground.Playground, gang: str, size: int, template: str = "gpu", **more: str
) -> tuple[str, ...]:
    """Its pods, made one after the other."""
    texts = tuple(f"{gang}-{number}" for number in range(size))
    field.create(*(a_member(name, gang, size, template, **more) for name in texts))
    return texts


def allocated(field: playground.Playground) -> list[str]:
    return [
        claim["metadata"]["name"]
        for claim in field.claims()
        if claim.get("status", {}).get("allocation")
    ]


def devices(field: playground.Playground) -> list[tuple[str, str]]:
    parsed = (claims.parse(claim) for claim in field.claims())
    results = (parsed.allocation.results for parsed in parsed if parsed.allocation is not None)
    return [(result.device.pool, result.device.device) for results in results for result in results]


def bound(field: playground.Playground, members: tuple[str, ...]) -> list[str]:
    return [name for name in members if pods.parse(field.pod(name)).node is not None]


def test_a_gang_over_two_nodes_runs_as_a_whole(field: playground.Playground) -> None:
    field.create(playground.a_template("gpu", 4))
    members = a_gang(field, "train", 4)
    started = [field.running(name) for name in members]
    assert len({entry["spec"]["nodeName"] for entry in started}) == 2
    results = devices(field)
    assert len(results) == len(set(results)) == 16
    assert field.told(members[0], "Allocated")[0].endswith("with all 4 of its gang in the cluster")


def test_a_gang_that_cannot_fit_holds_nothing_and_others_run(field: playground.Playground) -> None:
    field.create(playground.a_template("gpu", 8), playground.a_template("one", 1))
    members = a_gang(field, "large", 3)
    (words,) = field.told(members[2], "NoFit")
    assert "gang" in words
    assert "No place for all 3 of the gang in the cluster" in words
    assert allocated(field) == []
    field.create(playground.a_pod("small", template="one"))
    field.running("small")
    assert len(allocated(field)) == 1


def test_a_gang_waits_for_its_last_pod_and_then_runs(field: playground.Playground) -> None:
    field.create(playground.a_template("gpu", 1))
    first = tuple(f"late-{number}" for number in range(2))
    field.create(*(a_member(name, "late", 3) for name in first))
    playground.until(
        lambda: "GangWaits: waits for 1 more of its 3 pods" in field.events(first[0]),
        20,
        "the gang is said to wait",
    )
    assert allocated(field) == []
    field.create(a_member("late-2", "late", 3))
    for name in (*first, "late-2"):
        field.running(name)


def test_a_gang_that_the_scheduler_will_not_have_starts_no_part_of_it(
    field: playground.Playground,
) -> None:
    """A pod that one member keeps away from comes to each node after the gang was allocated."""
    field.create(playground.a_template("gpu", 1))
    held = a_member("stuck-1", "stuck", 2, **{names.GANG_TIMEOUT: "10s"})
    anti = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {
                        "matchExpressions": [{"key": "e2e-keep", "operator": "Exists"}]
                    },
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    held["spec"]["affinity"] = anti
    other = a_member("stuck-0", "stuck", 2, **{names.GANG_TIMEOUT: "10s"})
    field.cluster.stop("kube-scheduler")
    try:
        field.create(other, held)
        playground.until(lambda: len(allocated(field)) == 2, 30, "the gang is allocated")
        for node in ("e2e-a", "e2e-b"):
            keeper = playground.a_pod(f"keeper-{node}", nodeName=node)
            keeper["metadata"]["labels"] = {"e2e-keep": "here"}
            field.create(keeper)
            field.running(f"keeper-{node}")
    finally:
        field.cluster.start("kube-scheduler")
    field.told("stuck-0", "GangReleased", within_s=60)
    for _ in range(40):
        assert bound(field, ("stuck-0", "stuck-1")) == []
        time.sleep(0.5)
    for node in ("e2e-a", "e2e-b"):
        field.delete_pod(f"keeper-{node}")
    for name in ("stuck-0", "stuck-1"):
        field.running(name, within_s=150)


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.15, 0.4, 1.0])
def test_a_leader_killed_in_the_middle_leaves_no_gang_half_started(
    field: playground.Playground, delay_s: float
) -> None:
    first, term = leader(field), holder(field)
    field.create(playground.a_template("gpu", 1))
    members = a_gang(field, "held", 12)
    time.sleep(delay_s)
    field.cluster.kill(first)
    playground.until(lambda: holder(field) not in {term, ""}, 30, "another controller leads")
    for name in members:
        field.running(name, within_s=90)
    results = devices(field)
    assert len(results) == len(set(results)) == 12
    field.cluster.start(first)


def test_a_gang_larger_than_it_says_is_told_and_others_run(field: playground.Playground) -> None:
    field.create(playground.a_template("gpu", 1))
    # The first one may be a gang of one, and run, by the time the second is there.
    field.create(*(a_member(f"odd-{number}", "odd", 1) for number in range(2)))
    (words,) = field.told("odd-1", "GangInvalid")
    assert words.startswith(
        "GangInvalid: metadata.annotations[ration.dev/gang-size]: 1 is below the 2 pods"
    )
    field.create(playground.a_pod("small", template="gpu"))
    field.running("small")


def test_members_are_evicted_by_nobody(field: playground.Playground) -> None:
    """kube-scheduler preempts nobody for a gang that waits, and the gang's claims are its own."""
    field.create(playground.a_template("gpu", 8))
    members = a_gang(field, "calm", 2)
    for name in members:
        field.running(name)
    preempted = [
        item
        for item in field.kube.list(gvr.EVENTS, namespace=field.namespace).items
        if item.get("reason") == "Preempted"
    ]
    assert preempted == []
