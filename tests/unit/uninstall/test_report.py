from collections.abc import Iterable
from typing import Any

import pytest

from driver import names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold
from driver.uninstall import report as uninstall_report
from tests.support.builders import objects

RELEASE = uninstall_report.Release(names.DRIVER, "ration-system", "a=b", "ration-kubeletplugin")


def a_pod(name: str, **more: Any) -> pods.Pod:
    return pods.parse(objects.a_pod(name, **more))


def entries(consumers: Iterable[claims.Consumer]) -> list[dict[str, object]]:
    return [claims.render_consumer(consumer) for consumer in consumers]


def a_claim(*users: claims.Consumer, name: str = "claim", **device: str) -> claims.Claim:
    status = objects.allocated("node-a", {"device": "gpu-0", **device}, reserved=entries(users))
    return claims.parse(objects.a_claim(name, status=status))


def there(*results: pods.Pod) -> uninstall_report.Pods:
    return {result.uid: result for result in results}


BOUND = a_pod("bound", nodeName="node-a")
OTHER = a_pod("other", nodeName="node-b")
WAITING = a_pod("waiting")
ENDED = a_pod("ended", nodeName="node-a", status={"phase": "Succeeded"})
USER = claims.Consumer("apps.example.com", "jobs", "job", "job-uid")


def entry(pod: pods.Pod) -> claims.Consumer:
    return allocation_hold.pod_entry(pod)


def test_a_claim_is_in_use_from_its_pods_binding_to_its_end() -> None:
    results = [a_claim(entry(pod), name=pod.name) for pod in (BOUND, WAITING, ENDED)]
    uses = uninstall_report.claims_in_use(results, there(BOUND, WAITING, ENDED), names.DRIVER)
    assert [(use.claim, use.pod.name) for use in uses] == [("default/bound", "bound")]


def test_a_pod_that_is_being_deleted_still_uses_its_claim() -> None:
    raw = objects.a_pod("bound", nodeName="node-a")
    raw["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    pod = pods.parse(raw)
    assert uninstall_report.claims_in_use([a_claim(entry(pod))], there(pod), names.DRIVER)


def test_each_pod_of_a_shared_claim_uses_it() -> None:
    uses = uninstall_report.claims_in_use(
        [a_claim(entry(BOUND), entry(OTHER))], there(BOUND, OTHER), names.DRIVER
    )
    assert [use.pod.name for use in uses] == ["bound", "other"]


def test_another_pod_of_the_same_name_uses_nothing() -> None:
    gone = claims.Consumer("", "pods", BOUND.name, "older")
    assert uninstall_report.claims_in_use([a_claim(gone)], there(BOUND), names.DRIVER) == ()


def test_claims_of_other_drivers_are_no_concern() -> None:
    foreign = a_claim(entry(BOUND), allocation_hold.pod_hold(BOUND), driver="gpu.example.com")
    assert uninstall_report.claims_in_use([foreign], there(BOUND), names.DRIVER) == ()
    assert not list(uninstall_report.pending_releases([foreign], there(BOUND), (names.DRIVER,)))


def test_holds_on_devices_of_a_managed_driver_are_released() -> None:
    held = a_claim(entry(WAITING), allocation_hold.pod_hold(WAITING), driver="gpu.example.com")
    managed = uninstall_report.Release(names.DRIVER, "a", "b", managed=("gpu.example.com",))
    writes = uninstall_report.pending_releases([held], there(WAITING), managed.allocated_drivers)
    assert list(writes) == [uninstall_report.ClearClaim(held)]


def released(
    claim: claims.Claim, *results: pods.Pod
) -> list[uninstall_report.DropHolds | uninstall_report.ClearClaim]:
    return list(uninstall_report.pending_releases([claim], there(*results), (names.DRIVER,)))


def test_the_hold_of_a_bound_pod_goes_and_its_allocation_stays() -> None:
    claim = a_claim(entry(BOUND), allocation_hold.pod_hold(BOUND))
    assert released(claim, BOUND) == [
        uninstall_report.DropHolds(claim, (allocation_hold.pod_hold(BOUND),))
    ]


@pytest.mark.parametrize("pod", [WAITING, ENDED])
def test_an_allocation_that_nobody_is_bound_with_is_taken_back(pod: pods.Pod) -> None:
    claim = a_claim(entry(pod), allocation_hold.pod_hold(pod))
    assert released(claim, pod) == [uninstall_report.ClearClaim(claim)]


def test_a_hold_whose_pod_is_gone_goes_with_its_allocation() -> None:
    for claim in (
        a_claim(allocation_hold.pod_hold(WAITING)),
        a_claim(entry(WAITING), allocation_hold.pod_hold(WAITING)),
    ):
        assert released(claim) == [uninstall_report.ClearClaim(claim)]


def test_claims_reserved_by_others_stay_allocated() -> None:
    reserved = entry(WAITING)  # by kube-scheduler: it has no hold
    for user, pod in ((reserved, WAITING), (USER, OTHER), (entry(BOUND), BOUND)):
        another = a_pod("another")
        claim = a_claim(user, entry(another), allocation_hold.pod_hold(another))
        assert released(claim, pod, another) == [
            uninstall_report.DropHolds(claim, (allocation_hold.pod_hold(another),))
        ]


def test_a_claim_without_a_hold_is_left_alone() -> None:
    assert released(a_claim(entry(BOUND)), BOUND) == []
    assert released(a_claim()) == []


def test_a_refusal_names_each_claim_and_pod_and_both_ways_on() -> None:
    results = [a_claim(entry(BOUND), name="one"), a_claim(entry(OTHER), name="two")]
    uses = uninstall_report.claims_in_use(results, there(BOUND, OTHER), names.DRIVER)
    assert uninstall_report.refusal_message(uses, RELEASE) == (
        "Not uninstalled, and nothing was changed: 2 claims are in use, and only the driver "
        "gpu.ration.dev can end that:\n"
        "  pod default/bound on node-a, claim default/one\n"
        "  pod default/other on node-b, claim default/two\n"
        "Delete these pods, and the controllers that would recreate them, then uninstall again:\n"
        "  kubectl -n default delete pod bound other\n"
        "Or leave them: once deleted they stay Terminating until a driver of this name answers "
        "on their node. For that, before you uninstall again:\n"
        "  kubectl -n ration-system annotate daemonset ration-kubeletplugin "
        "ration.dev/uninstall=force"
    )


def test_a_forced_uninstall_names_pods_that_stay_terminating() -> None:
    uses = uninstall_report.claims_in_use([a_claim(entry(BOUND))], there(BOUND), names.DRIVER)
    words = uninstall_report.forced_message(uses, RELEASE)
    assert "while 1 claim is in use" in words
    assert "stay Terminating until a driver gpu.ration.dev answers" in words
    assert "  pod default/bound on node-a, claim default/claim\n" in words
    assert (
        uninstall_report.forced_message((), RELEASE) == "Uninstalling by force; no claim is in use."
    )


def test_the_bound_pods_of_a_pod_group_use_the_claim_that_it_has_reserved() -> None:
    group = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")
    grouped = [
        a_pod(name, schedulingGroup={"podGroupName": "train"}, **spec)
        for name, spec in (("runs", {"nodeName": "node-a"}), ("waits", {}))
    ]
    listed = there(*grouped, BOUND)
    uses = uninstall_report.claims_in_use([a_claim(group)], listed, names.DRIVER)
    assert [use.pod.name for use in uses] == ["runs"]
