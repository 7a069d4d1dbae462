from typing import Any

import pytest

from driver.api import queues as api
from driver.reasons import Reason
from driver.resources import disruption_budgets
from driver.resources.core import node_selectors, pods
from driver.scheduling.preemption import policy as preemption_policy
from tests.support.scenarios import preemptions

BATCH = preemption_policy.QueueState("batch", reclaim="Any", surplus=2500)


def one(**more: Any) -> preemptions.Scene:
    scene = preemptions.of_sizes(a=1)
    scene.work("p", "node-a", "gpu-0", **more)
    return scene


def barred(
    scene: preemptions.Scene, right: preemption_policy.PreemptionPolicy | None = None
) -> Reason | None:
    return scene.judged("p", right).ineligible


def test_without_queues_lower_priority_goes_and_equal_does_not() -> None:
    scene = one(priority=5)
    assert barred(scene, scene.right(6)) is None
    assert barred(scene, scene.right(5)) is Reason.PRIORITY_NOT_LOWER


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ({"deleting": True}, Reason.GOING_ALREADY),
        ({"owner": None}, Reason.NOT_MADE_AGAIN),
        ({"owner": pods.Owner("DaemonSet", "d", "u")}, Reason.NOT_MADE_AGAIN),
        ({"owner": pods.Owner("DaemonSet", "d", "u"), "preemptible": True}, Reason.NOT_MADE_AGAIN),
        ({"owner": None, "preemptible": True}, None),
    ],
)
def test_only_who_is_made_again_elsewhere_goes(pod: dict[str, Any], reason: Reason | None) -> None:
    assert barred(one(**pod)) is reason


def reclaimed(
    reclaim: api.Reclaim, priority: int, surplus: int, *, within: bool = True
) -> Reason | None:
    scene = one(labels={"queue": "batch"})
    scene.leaves = {
        "batch": preemption_policy.QueueState("batch", reclaim=reclaim, surplus=surplus)
    }
    return barred(scene, scene.right(priority, "vision", is_within_fair_share=within))


def test_another_queue_gives_back_what_it_has_beyond_its_fair_share() -> None:
    assert reclaimed("Any", 0, 1) is None
    assert reclaimed("Any", 0, 0) is Reason.WITHIN_FAIR_SHARE
    assert reclaimed("Any", 0, 1, within=False) is Reason.BEYOND_FAIR_SHARE
    assert reclaimed("LowerPriority", 1, 1) is None
    assert reclaimed("LowerPriority", 0, 1) is Reason.PRIORITY_NOT_LOWER
    assert reclaimed("Never", 9, 1) is Reason.RECLAIM_NEVER


def test_in_its_own_queue_a_share_says_nothing() -> None:
    scene = one(labels={"queue": "batch"})
    scene.leaves = {"batch": preemption_policy.QueueState("batch", reclaim="Never", surplus=-9)}
    assert barred(scene, scene.right(1, "batch")) is None
    assert (
        barred(scene, scene.right(0, "batch", is_within_fair_share=True))
        is Reason.PRIORITY_NOT_LOWER
    )


def test_a_queue_that_is_not_preemptible_keeps_its_pods() -> None:
    scene = one(labels={"queue": "batch"})
    scene.leaves = {
        "batch": preemption_policy.QueueState("batch", preemptible=False, reclaim="Any", surplus=9)
    }
    assert barred(scene, scene.right(1, "batch")) is Reason.QUEUE_NOT_PREEMPTIBLE


def test_no_pod_is_a_victim_before_its_queues_minimum_run_time() -> None:
    scene = one(labels={"queue": "batch"}, ran=599)
    scene.leaves = {"batch": preemption_policy.QueueState("batch", min_run_s=600)}
    right = scene.right(1, "batch")
    assert barred(scene, right) is Reason.RAN_TOO_SHORTLY
    scene = one(labels={"queue": "batch"}, ran=600)
    scene.leaves = {"batch": preemption_policy.QueueState("batch", min_run_s=600)}
    assert barred(scene, scene.right(1, "batch")) is None


def test_a_pod_that_has_not_started_has_no_run_time() -> None:
    scene = one(labels={"queue": "batch"}, started="", created="2026-11-01T00:00:00Z")
    scene.leaves = {"batch": preemption_policy.QueueState("batch", min_run_s=1)}
    assert barred(scene, scene.right(1, "batch")) is Reason.RAN_TOO_SHORTLY


def test_a_protected_member_protects_the_whole_gang() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0", gang="g")
    scene.work("q", "node-a", "gpu-1", gang="g", owner=None)
    victim_eligibility = scene.judged("g")
    assert victim_eligibility.ineligible is Reason.NOT_MADE_AGAIN
    assert victim_eligibility.message == "pod default/q"


def test_the_highest_priority_of_a_gang_counts_for_all() -> None:
    scene = preemptions.of_sizes(a=2)
    scene.work("p", "node-a", "gpu-0", gang="g", priority=1)
    scene.work("q", "node-a", "gpu-1", gang="g", priority=10)
    assert scene.judged("g").ineligible is Reason.PRIORITY_NOT_LOWER


def test_a_preemptor_is_not_its_own_victim() -> None:
    scene = one(gang="g")
    right = scene.right(own_victims=frozenset({("gang", "default/g")}))
    assert scene.judged("g", right).ineligible is Reason.PRIORITY_NOT_LOWER


def three(allowed: int, **more: Any) -> preemptions.Scene:
    scene = preemptions.of_sizes(a=3)
    for index, name in enumerate("pqr"):
        scene.work(name, "node-a", f"gpu-{index}", labels={"app": "a"}, **more)
    app = (node_selectors.Expression("app", "In", ("a",)),)
    scene.disruptions = [disruption_budgets.Budget("default", "web", app, allowed)]
    return scene


def test_no_more_go_than_a_disruption_budget_allows_together() -> None:
    scene = three(2)
    right = scene.right()
    p, q, r = (scene.judged(name, right) for name in "pqr")
    assert right.may_evict([p, q])
    assert not right.may_evict([p, q, r])


def test_a_budget_with_nothing_left_bars() -> None:
    assert three(0).judged("p").ineligible is Reason.DISRUPTION_BUDGET
    victim_eligibility = three(2, gang="g").judged("g")
    assert (victim_eligibility.ineligible, victim_eligibility.message) == (
        Reason.DISRUPTION_BUDGET,
        "default/web",
    )


def test_a_pod_that_two_budgets_guard_is_never_evicted() -> None:
    scene = three(3)
    scene.disruptions = [*scene.disruptions, disruption_budgets.Budget("default", "all", (), 3)]
    victim_eligibility = scene.judged("p")
    assert victim_eligibility.ineligible is Reason.DISRUPTION_BUDGET
    assert victim_eligibility.message == "pod default/p is guarded by default/all and default/web"


def test_a_surplus_is_taken_no_further_than_one_unit_below() -> None:
    scene = preemptions.of_sizes(a=4)
    for index, name in enumerate("pqrs"):
        scene.work(name, "node-a", f"gpu-{index}", labels={"queue": "batch"})
    scene.leaves = {"batch": BATCH}
    right = scene.right(0, "vision", is_within_fair_share=True)
    victim_eligibilities = [scene.judged(name, right) for name in "pqrs"]
    assert right.may_evict(victim_eligibilities[:3])
    assert not right.may_evict(victim_eligibilities)


def test_the_largest_is_let_go_last() -> None:
    assert preemption_policy.Limit(2500, excludes_largest=True).allows([8000, 2000])
    assert not preemption_policy.Limit(2000, excludes_largest=True).allows([8000, 2000])
    assert not preemption_policy.Limit(0, excludes_largest=True).allows([0])


def test_an_idle_victim_costs_nothing_where_the_queue_prefers_it() -> None:
    scene = one(labels={"queue": "batch"})
    scene.leaves = {"batch": preemption_policy.QueueState("batch", is_idle=True)}
    assert scene.judged("p", scene.right(1, "batch")).lost == 0


def test_the_right_is_told() -> None:
    scene = one(labels={"queue": "batch"})
    scene.leaves = {"batch": BATCH}
    mine, other = scene.right(1000, "batch"), scene.right(0, "vision", is_within_fair_share=True)
    assert mine.grounds(scene.judged("p", mine)) == "priority 1000 > 0"
    words = other.grounds(scene.judged("p", other))
    assert words == "queue batch has 2.5 GPUs more than its fair share"
