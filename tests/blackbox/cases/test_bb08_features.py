"""BB-8: counters, capacity, taints, admin access, extended resources."""

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from driver.kube import gvr
from tests.blackbox import subject
from tests.blackbox.catalogue import CLUSTER, NODE, case
from tests.blackbox.ground import room, seat
from tests.e2e import playground

until = playground.until
FEATURE = subject.Feature
TAINT = {"key": "example.com/odd", "value": "yes"}
TOLERATED = [{"key": TAINT["key"], "operator": "Exists"}]


@case("BB-8.1", f"{CLUSTER}: must consume and free up counters", FEATURE.COUNTERS)
def test_a_part_waits_until_the_whole_is_free(field: room.Room, tried: subject.Subject) -> None:
    assert tried.counters is not None
    field.claim("whole", field.a_request(count=tried.device.count))
    field.pod("whole", "whole")
    field.running("whole")
    field.claim("part", field.a_request(**tried.counters.part))
    field.pod("part", "part")
    field.stays_pending("part", 5)
    field.delete("whole")
    field.running("part", 90)
    assert [prepared for prepared in field.prepares("part") if prepared.is_good()]


@case(
    "BB-8.2", f"{CLUSTER}: must allow multiple allocations and consume capacity", FEATURE.CAPACITY
)
def test_shares_of_one_device_are_given_to_several(
    field: room.Room, tried: subject.Subject
) -> None:
    assert tried.capacity is not None
    names = ("a", "b", "c")
    for name in names:
        field.claim(name, field.a_request(**tried.capacity.share))
        field.pod(name, name)
    for name in names:
        field.running(name, 120)
    results = [result for name in names for result in field.results(name)]
    assert len({result["shareID"] for result in results}) == len(names)
    assert len({(result["pool"], result["device"]) for result in results}) < len(names)
    assert all(result["consumedCapacity"] for result in results)


@case("BB-8.3", f"{NODE}: same device with two ShareIDs", FEATURE.CAPACITY)
def test_a_claim_may_have_two_shares_of_a_device(field: room.Room, tried: subject.Subject) -> None:
    assert tried.capacity is not None
    share = tried.capacity.share
    field.claim("twice", field.a_request("left", **share), field.a_request("right", **share))
    field.pod("twice", "twice")
    field.running("twice", 120)
    results = field.results("twice")
    assert len({result["shareID"] for result in results}) == 2
    (call, *_) = [prepared for prepared in field.prepares("twice") if prepared.is_good()]
    assert call.cdi[field.uid("twice")]


@case("BB-8.4", f"{CLUSTER}: must consume capacity until it is free again", FEATURE.CAPACITY)
def test_a_share_waits_until_there_is_room(field: room.Room, tried: subject.Subject) -> None:
    assert tried.capacity is not None
    most = {**tried.capacity.most}
    field.claim("full", field.a_request(count=tried.device.count, **most))
    field.pod("full", "full")
    field.running("full", 120)
    field.claim("late", field.a_request(**most))
    field.pod("late", "late")
    field.stays_pending("late", 5)
    field.delete("full")
    field.running("late", 120)


@pytest.fixture
def taint(here: seat.Seat) -> Iterator[Any]:
    """Puts a taint on all devices of the node while the case runs."""
    name = f"blackbox-{here.node}"
    kind = dataclasses.replace(gvr.DEVICE_TAINT_RULES, version="v1")
    pool = here.slices()[0]["spec"]["pool"]["name"]

    def put(effect: str) -> None:
        chosen = {"driver": here.subject.driver, "pool": pool}
        spec = {"deviceSelector": chosen, "taint": {**TAINT, "effect": effect}}
        here.kube.create(kind, {"metadata": {"name": name}, "spec": spec})

    yield put
    here.kube.delete(kind, name)


@case("BB-8.5", f"{CLUSTER}: NoSchedule keeps pod pending; can be tolerated", since="1.37")
def test_a_tainted_device_is_for_who_tolerates_it(field: room.Room, taint: Any) -> None:
    taint("NoSchedule")
    field.claim("plain")
    expected = {**field.seat.subject.device.request, "tolerations": TOLERATED}
    field.claim("hardy", field.a_request(**expected))
    for name in ("plain", "hardy"):
        field.pod(name, name)
    field.running("hardy")
    field.stays_pending("plain", 3)


@case("BB-8.6", f"{CLUSTER}: NoExecute keeps pod pending; can be tolerated", since="1.37")
def test_a_device_to_be_left_is_for_who_tolerates_that(field: room.Room, taint: Any) -> None:
    taint("NoExecute")
    field.claim("plain")
    # The eviction controller goes by tolerations that name the effect, the scheduler by any.
    tolerated = [{**entry, "effect": "NoExecute"} for entry in TOLERATED]
    expected = {**field.seat.subject.device.request, "tolerations": tolerated}
    field.claim("hardy", field.a_request(**expected))
    for name in ("plain", "hardy"):
        field.pod(name, name)
    field.running("hardy")
    field.stays_pending("plain", 3)
    assert field.phase("hardy") == "Running"


@case("BB-8.7", f"{CLUSTER}: DeviceTaintRule evicts pod", since="1.37")
def test_a_pod_leaves_a_device_that_is_to_be_left(field: room.Room, taint: Any) -> None:
    field.claim("evicted")
    field.pod("evicted", "evicted")
    field.running("evicted")
    uid = field.uid("evicted")
    taint("NoExecute")
    until(lambda: field.phase("evicted") == "", 90, "the pod is evicted")
    field.unprepared("evicted")
    assert not field.seat.cdi_files(uid)


@case("BB-8.8", f"{CLUSTER}: DaemonSet with admin access", FEATURE.ADMIN)
def test_an_administrator_sees_a_device_in_use(field: room.Room) -> None:
    """Allocated by hand: kube-scheduler counts the counters of a device that is looked at."""
    label = "resource.kubernetes.io/admin-access=true"
    field.cluster.kubectl("label", "namespace", field.namespace, label)
    field.claim("user")
    field.pod("user", "user")
    field.running("user")
    expected = {**field.seat.subject.device.request, "adminAccess": True}
    field.claim("admin", {"name": "one", "exactly": expected})
    allocation = copy.deepcopy(field.ground.claim("user")["status"]["allocation"])
    allocation["devices"]["results"][0]["adminAccess"] = True
    field.allocate("admin", allocation)
    field.pod("admin", "admin")
    field.running("admin", 90)
    assert field.has("user") == field.has("admin")
    field.delete("admin")
    field.unprepared("admin")
    assert field.phase("user") == "Running"
    field.pod("second", "user")
    field.running("second")
    assert field.has("user") == field.has("second")


@case(
    "BB-8.9",
    f"{CLUSTER}: must run a pod with implicit extended resource with one container one resource",
)
def test_a_class_is_an_extended_resource_too(field: room.Room) -> None:
    name = field.seat.subject.device.request["deviceClassName"]
    pod = field.a_pod("extended")
    expected = {f"deviceclass.resource.kubernetes.io/{name}": "1"}
    pod["spec"]["containers"][0]["resources"] = {"limits": expected}
    field.ground.create(pod)
    field.running("extended", 90)
    assert len(field.has("extended")) == 1
    field.delete("extended")
