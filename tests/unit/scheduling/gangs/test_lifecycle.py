"""Tests of what is due for a gang, from its pods, their claims and the time alone."""

import datetime as dt
from dataclasses import replace
from typing import Any

from driver import clock, ids, names
from driver.resources.core import node_selectors, pods
from driver.resources.dra import claims, device_status
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.gangs import lifecycle as gang_lifecycle
from driver.scheduling.snapshot import allocation_hold
from tests.support.builders import objects

NOW = dt.datetime(2026, 11, 21, 9, 10, tzinfo=dt.UTC)
KEY = ids.Key("default/train")


def stamp(age_s: float) -> str:
    return clock.rfc3339(NOW - dt.timedelta(seconds=age_s))


def a_pod(name: str, **more: Any) -> pods.Pod:
    return replace(objects.pod(name, f"{name}-gpu"), **more)


def waiting(name: str, **more: Any) -> gang_lifecycle.Member:
    return gang_lifecycle.Member(a_pod(name, **more), (objects.claim(f"{name}-gpu"),))


def written(name: str, age_s: float = 5.0, message: str = "", **more: Any) -> gang_lifecycle.Member:
    """Its devices are written, with the binding condition; `said` is a condition that is set."""
    pod = a_pod(name, **more)
    device = claims.DeviceId(names.DRIVER, "node-a", f"gpu-{name}")
    result = claims.Result("gpu", device, binding=(names.GANG_READY,), failing=(names.GANG_FAILED,))
    node = node_selectors.single_node_selector(ids.NodeName("node-a"))
    conditions = (device_status.Condition(message, "True", "", "", stamp(2.0)),) if message else ()
    claim = replace(
        objects.claim(f"{name}-gpu"),
        allocation=claims.Allocation((result,), selector=node, stamped=stamp(age_s)),
        consumers=(allocation_hold.pod_entry(pod), allocation_hold.pod_hold(pod)),
        device_statuses=(device_status.DeviceStatus(device_status.Device(*device), conditions),),
    )
    return gang_lifecycle.Member(pod, (claim,))


def due(
    *members: gang_lifecycle.Member, expected: int = 2, exact: bool = True
) -> gang_lifecycle.Action:
    gang = gang_index.Gang(KEY, tuple(member.pod for member in members), expected, exact)
    return gang_lifecycle.next_action(gang, members, lambda stamp: (NOW - stamp).total_seconds())


def test_members_that_wait_are_seated_together() -> None:
    result = due(waiting("a"), waiting("b"))
    assert isinstance(result, gang_lifecycle.Place)
    assert [member.pod.name for member in result.members] == ["a", "b"]


def test_members_that_are_written_wait_until_the_scheduler_has_reached_all() -> None:
    node = ids.NodeName("node-a")
    assert due(written("a", nominated=node), written("b")) == gang_lifecycle.Recheck(1.0)
    assert isinstance(
        due(written("a", nominated=node), written("b", nominated=node)), gang_lifecycle.Ready
    )


def test_a_member_that_ran_before_needs_no_nomination() -> None:
    node = ids.NodeName("node-a")
    result = due(written("a", node=node), written("b", nominated=node))
    assert isinstance(result, gang_lifecycle.Ready)
    assert [member.pod.name for member in result.members] == ["b"]


def test_a_ready_gang_waits_until_its_timeout() -> None:
    result = due(written("a", message=names.GANG_READY), written("b", message=names.GANG_READY))
    assert result == gang_lifecycle.Recheck(gang_index.TIMEOUT_S - 5.0)


def test_past_the_timeout_it_is_given_up_and_what_started_with_it_is_told() -> None:
    node = ids.NodeName("node-a")
    result = due(written("a", gang_index.TIMEOUT_S, node=node), written("b", gang_index.TIMEOUT_S))
    assert isinstance(result, gang_lifecycle.Fail)
    assert [member.pod.name for member in result.members] == ["b"]
    assert [member.pod.name for member in result.started] == ["a"]


def test_long_running_members_are_left_alone_when_a_new_one_fails() -> None:
    node = ids.NodeName("node-a")
    result = due(written("a", 9000.0, node=node), written("b", gang_index.TIMEOUT_S))
    assert isinstance(result, gang_lifecycle.Fail)
    assert result.started == ()


def test_devices_are_freed_only_when_the_scheduler_has_heard() -> None:
    result = due(written("a", message=names.GANG_FAILED), written("b", message=names.GANG_FAILED))
    assert result == gang_lifecycle.Recheck(gang_lifecycle.OBSERVED_AFTER_S - 2.0)


def test_a_gang_that_lost_a_member_before_it_started_is_given_up() -> None:
    result = due(written("a"))
    assert isinstance(result, gang_lifecycle.Fail)
    assert result.reason == "waits for 1 more of its 2 pods"


def test_a_member_that_is_done_before_another_is_bound_stops_nobody() -> None:
    """All could be bound: a short one may be over before kube-scheduler has bound the last."""
    left = written("a", message=names.GANG_READY)
    assert isinstance(due(left), gang_lifecycle.Recheck)
    late = written("a", age_s=gang_index.TIMEOUT_S + 1, message=names.GANG_READY)
    assert isinstance(due(late), gang_lifecycle.Fail)


def test_members_with_written_claims_start_before_the_rest_when_fewer_suffice() -> None:
    node = ids.NodeName("node-a")
    result = due(
        written("a", nominated=node),
        written("b", nominated=node),
        waiting("c"),
        expected=2,
        exact=False,
    )
    assert isinstance(result, gang_lifecycle.Ready)


GROUP = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")


def sharing(
    *pods_of_gang: pods.Pod, message: str = "", age_s: float = 5.0, reserved: bool = False
) -> tuple[gang_lifecycle.Member, ...]:
    """Members of one claim, which carries the hold of the first."""
    (claim,) = written("a", age_s, message).pod_claims
    entries = (GROUP,) if reserved else ()
    claim = replace(claim, consumers=(allocation_hold.pod_hold(pods_of_gang[0]), *entries))
    bound = any(pod.node is not None for pod in pods_of_gang)
    in_use = frozenset({claim.key}) if bound else frozenset[ids.Key]()
    return tuple(gang_lifecycle.Member(pod, (claim,), in_use) for pod in pods_of_gang)


def test_members_of_a_shared_claim_are_bound_once_all_of_them_are_reached() -> None:
    node = ids.NodeName("node-a")
    first, second = a_pod("a", nominated=node), a_pod("b")
    assert due(*sharing(first, second)) == gang_lifecycle.Recheck(1.0)
    result = due(*sharing(first, replace(second, nominated=node)))
    assert isinstance(result, gang_lifecycle.Ready)
    assert [member.pod.name for member in result.members] == ["a"]


def test_a_spare_member_of_a_shared_claim_is_not_waited_for() -> None:
    node = ids.NodeName("node-a")
    members = sharing(a_pod("a", nominated=node), a_pod("b", nominated=node), a_pod("c"))
    assert isinstance(due(*members, exact=False), gang_lifecycle.Ready)


def test_a_claim_that_a_bound_member_uses_is_not_taken_back() -> None:
    late = sharing(a_pod("a"), a_pod("b", node=ids.NodeName("node-a")), age_s=500.0)
    assert due(*late) == gang_lifecycle.Nothing()


def test_the_entry_of_a_pod_group_is_left_to_the_scheduler() -> None:
    members = [a_pod(name, pod_group="train") for name in ("a", "b")]
    failed = sharing(*members, message=names.GANG_FAILED, reserved=True)
    later = NOW + dt.timedelta(seconds=100)
    gang = gang_index.Gang(KEY, tuple(members), 2)

    def action(*shared: gang_lifecycle.Member) -> gang_lifecycle.Action:
        return gang_lifecycle.next_action(
            gang, shared, lambda since: (later - since).total_seconds()
        )

    assert action(*failed) == gang_lifecycle.Recheck(1.0)
    unreserved = sharing(*members, message=names.GANG_FAILED)
    assert isinstance(action(*unreserved), gang_lifecycle.Clear)
