"""What the decider does for claims that their nodes refused: nudges, evictions, in measure."""

import itertools
from typing import Any

import pytest

from driver import errors, names
from tests.fakes import deciding
from tests.support.builders import objects

NEVER = (("Ready", "False", "ConfigInvalid"), ("Stalled", "True", "ConfigInvalid"))
CLEARED = (("Ready", "Unknown", "RefusalCleared"),)
OVER = (("Ready", "True", "Prepared"), ("WithinShare", "False", "OverShare"))
SINCE = "2026-11-21T09:00:00Z"
BUDGET = errors.TooManyRequests(429, "TooManyRequests", "disruption budget")


@pytest.fixture
def world() -> deciding.World:
    return deciding.World()


def refuse(
    world: deciding.World,
    conditions: tuple[tuple[str, str, str], ...],
    name: str = "pod",
    owner: str = "ReplicaSet",
    phase: str = "Pending",
) -> None:
    """A pod on a node, with a claim of which this is said."""
    entry = {"resource": "pods", "name": name, "uid": objects.uid_of(name)}
    said = [
        {"type": kind, "status": is_so, "reason": reason, "lastTransitionTime": SINCE,
         "message": "in words"}
        for kind, is_so, reason in conditions
    ]  # fmt: skip
    device = {"driver": names.DRIVER, "pool": "node-0", "device": "gpu-0", "conditions": said}
    status = objects.allocated("node-0", "gpu-0", reserved=[entry])
    pod = objects.a_pod(name, f"claim-{name}", status={"phase": phase}, nodeName="node-0")
    if owner:
        reference: dict[str, Any] = {"kind": owner, "name": "web", "uid": "web-uid"}
        pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    world.add(pod, objects.a_claim(f"claim-{name}", status={**status, "devices": [device]}))


def told(world: deciding.World, reason: str) -> list[tuple[str, str]]:
    return [(kind, message) for kind, one, message in world.told.lines if one == reason]


def test_the_kubelet_is_asked_to_try_again_by_an_annotation(world: deciding.World) -> None:
    refuse(world, CLEARED, owner="")
    world.settle()
    assert {one for one, _ in world.server.annotated} == {"pod"}
    assert world.server.annotated[0][1] == {names.PREPARE_AGAIN: SINCE}
    assert world.server.evicted == []


def test_a_pod_that_can_never_be_prepared_is_evicted_and_told_why(world: deciding.World) -> None:
    refuse(world, NEVER)
    world.settle()
    assert world.server.evicted == ["pod"]
    words = (
        "Evicted, so that ReplicaSet web makes another: claim claim-pod: ConfigInvalid: in words"
    )
    assert told(world, "PodEvicted") == [("Pod", words), ("ResourceClaim", words)]


def test_a_bare_pod_that_can_never_be_prepared_stays(world: deciding.World) -> None:
    refuse(world, NEVER, owner="")
    for _ in range(10):
        world.settle(60)
    assert world.server.evicted == []


def test_pods_of_one_owner_are_evicted_ever_more_rarely(world: deciding.World) -> None:
    moments: list[float] = []
    for number in range(4):
        refuse(world, NEVER, name=f"pod-{number}")
        while len(world.server.evicted) == number:
            world.settle(1)
        moments.append(world.clock.elapsed_s)
        gone = objects.a_pod(f"pod-{number}", status={"phase": "Failed"}, nodeName="node-0")
        world.add(gone)
    pauses = [round(after - before) for before, after in itertools.pairwise(moments)]
    assert all(10 * 2**number <= pause <= 10 * 2**number + 3 for number, pause in enumerate(pauses))


def test_evictions_refused_by_a_budget_are_retried_with_the_owners_backoff(
    world: deciding.World,
) -> None:
    refuse(world, NEVER)
    world.server.refuse["evict pod"] = BUDGET
    world.settle(5)
    assert world.server.evicted == []
    assert told(world, "PodEvicted") == []
    world.settle(11)
    assert world.server.evicted == ["pod"]


def test_a_share_that_is_exceeded_evicts_only_where_that_is_asked_for() -> None:
    for asked in (False, True):
        world = deciding.World(evict_over_share=asked)
        refuse(world, OVER, phase="Running")
        world.settle(30)
        assert world.server.evicted == []
        world.settle(40)
        assert world.server.evicted == (["pod"] if asked else [])


def test_a_bare_pod_that_exceeds_its_share_is_told_once_and_stays() -> None:
    world = deciding.World(evict_over_share=True)
    refuse(world, OVER, owner="", phase="Running")
    for _ in range(5):
        world.settle(70)
        refuse(world, OVER, owner="", phase="Running")
    assert world.server.evicted == []
    assert [kind for kind, _ in told(world, "PodKept")] == ["Pod", "ResourceClaim"]
