"""The judge of the campaign, over histories written by hand."""

from typing import Any

from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold
from tests.agreement import judge
from tests.support.builders import objects


def on(node: str | None, **more: Any) -> pods.Pod:
    spec = {"nodeName": node} if node else {}
    return objects.pod(**spec, **more)


def held(node: str, name: str = "claim", device: str = "gpu-0") -> claims.Claim:
    entries = [claims.render_consumer(allocation_hold.pod_hold(objects.pod()))]
    return objects.claim(name, status=objects.allocated(node, device, reserved=entries))


def kinds(judged: judge.Judge) -> set[str]:
    return {kind for kind, _ in judged.breaches}


def look(judged: judge.Judge, now: float, pod: pods.Pod, *results: claims.Claim) -> None:
    judged.look(now, [pod], {claim.key: claim for claim in results})


def test_a_pod_bound_on_its_claims_node_is_no_breach_and_its_wait_counts() -> None:
    judged = judge.Judge()
    look(judged, 0.0, on(None), held("node-a"))
    look(judged, 2.5, on("node-a"), held("node-a"))
    look(judged, 100.0, on("node-a"), held("node-a"))
    assert not judged.breaches
    assert [*judged.bound_after.values()] == [2.5]


def test_a_pod_bound_away_for_longer_than_the_repair_takes_is_a_breach() -> None:
    judged = judge.Judge()
    for now in (0.0, judge.REPAIR_BOUND_S):
        look(judged, now, on("node-b"), held("node-a"))
    assert not judged.breaches
    look(judged, judge.REPAIR_BOUND_S + 0.1, on("node-b"), held("node-a"))
    assert kinds(judged) == {"bound away"}
    assert [*judged.away_seconds.values()] == [judge.REPAIR_BOUND_S + 0.1]


def test_a_pod_bound_without_an_allocation_counts_as_bound_away() -> None:
    judged = judge.Judge()
    for now in (0.0, judge.REPAIR_BOUND_S + 0.1):
        look(judged, now, on("node-b"), objects.claim())
    assert kinds(judged) == {"bound away"}


def test_a_repaired_pod_is_judged_from_the_next_time_on() -> None:
    judged = judge.Judge()
    look(judged, 0.0, on("node-b"), held("node-a"))
    look(judged, 10.0, on("node-b"), held("node-b"))
    look(judged, 20.0, on("node-b"), held("node-a"))
    assert not judged.breaches


def test_a_pod_that_waits_for_too_long_is_stuck() -> None:
    judged = judge.Judge()
    look(judged, 0.0, on(None))
    look(judged, judge.STUCK_S + 0.1, on(None))
    assert kinds(judged) == {"stuck"}


def test_a_device_of_two_claims_is_a_breach() -> None:
    judged = judge.Judge()
    look(judged, 0.0, on(None), held("node-a", "one"), held("node-a", "two"))
    assert kinds(judged) == {"given twice"}


def test_a_whole_gpu_beside_a_part_of_it_is_a_breach() -> None:
    judged = judge.Judge()
    whole = held("node-a", "one", "gpu-0000-18-00-0")
    part = held("node-a", "two", "gpu-0000-18-00-0-mig-1g10gb-4")
    look(judged, 0.0, on(None), whole, part)
    assert kinds(judged) == {"given twice"}


def test_a_bound_pod_whose_claim_is_gone_is_bound_away() -> None:
    judged = judge.Judge()
    for now in (0.0, judge.REPAIR_BOUND_S + 0.1):
        look(judged, now, on("node-b"))
    assert kinds(judged) == {"bound away"}


def test_claims_allocated_after_a_round_are_a_breach() -> None:
    judged = judge.Judge()
    judged.end_round([objects.claim("free")])
    assert not judged.breaches
    judged.end_round([held("node-a")])
    assert kinds(judged) == {"held for nobody"}


def test_waits_are_counted_by_steps_of_five_seconds() -> None:
    assert judge.histogram([0.1, 4.9, 5.0, 31.0]) == {"0-5": 2, "5-10": 1, "30-35": 1}
    assert judge.percentile([], 0.5) == 0.0
    assert judge.percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert judge.percentile([3.0, 1.0, 2.0], 1.0) == 3.0
