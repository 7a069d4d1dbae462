"""BB-6: claims are shared, used again, given back, and never given to two at once."""

import json
from typing import Any

from driver.kube import gvr
from tests.blackbox.catalogue import CLUSTER, case
from tests.blackbox.ground import room
from tests.blackbox.proxy import faults
from tests.e2e import playground

until = playground.until
UNPREPARE = "NodeUnprepareResources"
ENDS = "sleep 2; true"


def is_free(field: room.Room, claim: str) -> bool:
    """Return whether the claim is allocated and reserved no more."""
    status = field.ground.claim(claim).get("status", {})
    return not status.get("reservedFor") and not status.get("allocation")


@case("BB-6.1", f"{CLUSTER}: must unprepare resources for force-deleted pod")
def test_a_pod_that_was_deleted_by_force_is_unprepared(field: room.Room) -> None:
    field.claim("forced")
    field.pod("forced", "forced")
    field.running("forced")
    uid = field.uid("forced")
    field.force_delete("forced")
    field.unprepared("forced", 60)
    assert not field.seat.cdi_files(uid)


@case("BB-6.2", f"{CLUSTER}: blocks new pod after force-delete")
def test_a_new_claim_of_the_same_name_waits_for_the_old_one(field: room.Room) -> None:
    field.claim("same")
    field.pod("old", "same")
    field.running("old")
    previous = field.uid("same")
    field.proxy.faults.plan(UNPREPARE, faults.Fail(), claim="same")
    field.force_delete("old")
    field.kube.delete(gvr.RESOURCE_CLAIMS, "same", field.namespace)
    until(lambda: "same" not in _names(field), 60, "the old claim is gone")
    field.claim("same")
    field.pod("new", "same")
    field.refused("new", 60)
    assert field.phase("new") == "Pending"
    assert not field.prepares(field.uid("same"))
    field.proxy.faults.lift()
    until(
        lambda: any(unprepared.is_good() for unprepared in field.unprepares(previous)),
        120,
        "the old one goes",
    )
    field.soon("new", within_s=90)
    assert len(field.has("new")) == 1


def _names(field: room.Room) -> set[str]:
    return {claim["metadata"]["name"] for claim in field.ground.claims()}


@case("BB-6.3", f"{CLUSTER}: supports sharing a claim concurrently")
def test_pods_share_a_claim_until_the_last_has_gone(field: room.Room) -> None:
    field.claim("shared")
    for name in ("first", "second"):
        field.pod(name, "shared")
    for name in ("first", "second"):
        field.running(name)
    assert field.has("first") == field.has("second")
    field.delete("first")
    assert not field.unprepares("shared")
    assert field.phase("second") == "Running"
    field.delete("second")
    field.unprepared("shared")
    until(lambda: is_free(field, "shared"), 30, "the claim is free")


@case("BB-6.4", f"{CLUSTER}: supports init containers")
def test_init_containers_have_a_claim_that_was_made_for_the_pod(field: room.Room) -> None:
    field.template("each")
    first = field.init_container("first", "made")
    field.pod("inited", template="each", initContainers=[first])
    field.running("inited")
    assert field.has("inited", "first") == field.has("inited", "main")
    assert len(field.has("inited")) == 1


@case("BB-6.5", f"{CLUSTER}: supports init containers with external claims")
def test_init_containers_have_a_claim_of_its_own(field: room.Room) -> None:
    field.claim("outer")
    first = field.init_container("first", "outer")
    field.pod("inited", "outer", containers={"main": []}, initContainers=[first])
    field.running("inited")
    assert len(field.has("inited", "first")) == 1
    assert field.has("inited", "main") == []


@case("BB-6.6", f"{CLUSTER}: supports inline claim referenced by multiple containers")
def test_containers_share_a_claim_that_was_made_for_the_pod(field: room.Room) -> None:
    field.template("each")
    both = {"main": ["made"], "other": ["made"]}
    field.pod("pair", template="each", containers=both)
    field.running("pair")
    assert field.has("pair", "main") == field.has("pair", "other")
    assert len(field.has("pair")) == 1


@case(
    "BB-6.7",
    f"{CLUSTER}: supports external claim referenced by multiple containers of multiple pods",
)
def test_containers_of_pods_share_a_claim(field: room.Room) -> None:
    field.claim("wide")
    for name in ("left", "right"):
        field.pod(name, "wide", containers={"main": ["wide"], "other": ["wide"]})
    for name in ("left", "right"):
        field.running(name)
    seen = {
        tuple(field.has(pod, entry)) for pod in ("left", "right") for entry in ("main", "other")
    }
    assert len(seen) == 1


@case("BB-6.8", f"{CLUSTER}: supports reusing resources")
def test_pods_use_a_claim_one_after_another(field: room.Room) -> None:
    field.claim("again")
    for name in ("first", "second", "third"):
        field.pod(name, "again")
        field.running(name)
        assert len(field.has(name)) == 1
        field.delete(name)
    assert (
        len([unprepared for unprepared in field.unprepares("again") if unprepared.is_good()]) >= 3
    )


@case("BB-6.9", f"{CLUSTER}: must deallocate after use")
def test_a_claim_is_free_after_use(field: room.Room) -> None:
    field.claim("used")
    field.pod("used", "used", ends=ENDS)
    field.ended("used")
    until(lambda: is_free(field, "used"), 60, "the claim is free")
    field.unprepared("used")


@case("BB-6.10", f"{CLUSTER}: removes reservation from claim when pod is done")
def test_a_pod_that_is_done_reserves_nothing(field: room.Room) -> None:
    field.claim("done")
    field.pod("done", "done", ends=ENDS)
    field.running("done")
    assert field.ground.claim("done")["status"]["reservedFor"]
    field.ended("done")
    until(
        lambda: not field.ground.claim("done").get("status", {}).get("reservedFor"),
        60,
        "the reservation is gone",
    )
    assert field.phase("done") == "Succeeded"


@case("BB-6.11", f"{CLUSTER}: deletes generated claims when pod is done")
def test_a_claim_that_was_made_goes_with_the_work(field: room.Room) -> None:
    field.template("each")
    field.pod("brief", template="each", ends=ENDS)
    made_for = field.made_for("brief")
    field.ended("brief")
    until(lambda: made_for not in _names(field), 60, "the claim is gone")
    field.unprepared(made_for)


@case("BB-6.12", f"{CLUSTER}: does not delete generated claims when pod is restarting")
def test_a_claim_that_was_made_stays_while_containers_restart(field: room.Room) -> None:
    field.template("each")
    field.pod("crashing", template="each", ends="exit 1", restartPolicy="Always")
    made_for = field.made_for("crashing")

    def restarts() -> int:
        result = field.ground.pod("crashing")["status"].get("containerStatuses") or [{}]
        return int(result[0].get("restartCount", 0))

    until(lambda: restarts() >= 2, 90, "the container restarted twice")
    assert made_for in _names(field)
    assert field.results(made_for)
    assert not field.unprepares(made_for)
    assert len(field.has("crashing")) == 1


@case("BB-6.13", f"{CLUSTER}: requests an already allocated and a new claim for a pod")
def test_a_pod_joins_a_claim_in_use_and_brings_another(field: room.Room) -> None:
    field.claim("taken")
    field.claim("fresh")
    field.pod("first", "taken")
    field.running("first")
    field.pod("both", "taken", "fresh")
    field.running("both")
    assert len(field.has("both")) == 2
    assert set(field.has("first")) < set(field.has("both"))


@case("BB-6.14", f"{CLUSTER}: uses all resources")
def test_every_device_is_given_once(field: room.Room) -> None:
    count = field.seat.subject.device.count
    names = [f"p{number}" for number in range(count)]
    field.template("each")
    for name in names:
        field.pod(name, template="each")
    for name in names:
        field.running(name, 120)
    seen = [text for name in names for text in field.has(name)]
    assert len(set(seen)) == len(seen) == count
    field.pod("late", template="each")
    field.stays_pending("late", 3)
    field.delete(names[0])
    field.running("late", 120)


@case("BB-6.15", f"{CLUSTER}: retries pod scheduling after creating device class")
def test_a_pod_waits_for_its_class(field: room.Room) -> None:
    name = f"{field.namespace}.example.com"
    plain = field.seat.subject.device.request["deviceClassName"]
    expected = {**field.seat.subject.device.request, "deviceClassName": name}
    field.claim("classless", field.a_request(**expected))
    field.pod("classless", "classless")
    field.stays_pending("classless", 3)
    spec = json.loads(field.cluster.kubectl("get", "deviceclass", plain, "-o", "json"))["spec"]
    body: dict[str, Any] = {"metadata": {"name": name}, "spec": spec}
    field.kube.create(gvr.DEVICE_CLASSES, body)
    try:
        field.running("classless", 60)
    finally:
        field.kube.delete(gvr.DEVICE_CLASSES, name)


@case("BB-6.16", f"{CLUSTER}: keeps pod pending because of CEL runtime errors")
def test_a_selector_that_fails_keeps_a_pod_waiting(field: room.Room) -> None:
    broken = {"cel": {"expression": 'device.attributes["no.such.domain"].thing == "x"'}}
    expected = {**field.seat.subject.device.request, "selectors": [broken]}
    field.claim("broken", field.a_request(**expected))
    field.pod("broken", "broken")
    field.stays_pending("broken", 5)
    assert not field.prepares("broken")
