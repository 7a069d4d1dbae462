"""Two controllers: one leads, a dead one is followed, a frozen one changes nothing afterwards."""

import time

import pytest

from driver import errors, names
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import actions
from driver.scheduling.snapshot import snapshot
from tests.e2e import playground
from tests.e2e.leadership import CONTROLLERS, holder, leader


@pytest.fixture(autouse=True)
def both_running(field: playground.Playground) -> None:
    for name in CONTROLLERS:
        if field.cluster.pid(name) is None:
            field.cluster.start(name)


def test_a_killed_leader_is_followed_within_twenty_seconds(field: playground.Playground) -> None:
    first = leader(field)
    term = holder(field)
    field.cluster.kill(first)
    field.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
    playground.until(lambda: holder(field) not in {term, ""}, 20, "another controller leads")
    field.running("pod")
    field.cluster.start(first)


def test_a_frozen_leader_that_wakes_after_the_takeover_writes_nothing(
    field: playground.Playground,
) -> None:
    first = leader(field)
    term = holder(field)
    field.cluster.freeze(first)
    try:
        playground.until(lambda: holder(field) not in {term, ""}, 30, "another controller leads")
        field.create(playground.a_template("gpu"))
        for number in range(4):
            field.create(playground.a_pod(f"pod-{number}", template="gpu"))
        for number in range(4):
            field.running(f"pod-{number}")
        for claim in field.claims():  # which their plugins say a moment later
            field.says(claim["metadata"]["name"], "Ready", "True")
        previous = without_activity(field)
    finally:
        field.cluster.thaw(first)
    playground.until(lambda: field.cluster.pid(first) is None, 10, "the old leader ends itself")
    time.sleep(2)
    assert without_activity(field) == previous
    managers = {
        m["manager"] for claim in field.claims() for m in claim["metadata"]["managedFields"]
    }
    assert not any(term in manager for manager in managers)
    field.cluster.start(first)


def test_a_new_leader_takes_back_at_once_what_was_refused_before_it_led(
    field: playground.Playground,
) -> None:
    leader(field)
    term = holder(field)
    field.cluster.freeze("kube-scheduler")
    try:
        field.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
        playground.until(lambda: allocated(field, "mine"), 20, "the claim is allocated")
        for name in CONTROLLERS:
            field.cluster.kill(name)
        node = snapshot.pinned_node(claims.parse(field.claim("mine")))
        assert node is not None
        field.cluster.kubectl("cordon", node)
        time.sleep(1)  # moments are whole seconds
    finally:
        field.cluster.thaw("kube-scheduler")
    try:
        playground.until(lambda: refused(field, "pod"), 30, "kube-scheduler refuses it")
        assert refused(field, "pod") > allocated(field, "mine")
        for name in CONTROLLERS:
            field.cluster.start(name)
        playground.until(lambda: holder(field) not in {term, ""}, 30, "another controller leads")
        led = time.monotonic()
        playground.until(lambda: "AllocationCleared" in field.reasons(), 30, "it is taken back")
        assert time.monotonic() - led < actions.BindTimeouts().unchanged_s / 2
        assert field.running("pod")["spec"]["nodeName"] != node
    finally:
        field.cluster.kubectl("uncordon", node)


def without_activity(field: playground.Playground) -> playground.Raw:
    """Return the claims without devices' activity, which plugins may write at any time."""
    result: playground.Raw = {}
    for claim in field.claims():
        meta = claim["metadata"]
        del meta["resourceVersion"]
        meta["managedFields"] = [
            m for m in meta["managedFields"] if m["manager"] != names.PLUGIN_FIELD_MANAGER
        ]
        for device in claim["status"]["devices"]:
            device.pop("data", None)
        result[meta["name"]] = claim
    return result


def allocated(field: playground.Playground, claim: str) -> str:
    """When the claim was allocated."""
    allocation = claims.parse(field.claim(claim)).allocation
    return allocation.stamped if allocation else ""


def refused(field: playground.Playground, pod: str) -> str:
    """When kube-scheduler wrote that it refuses the pod."""
    verdict = pods.parse(field.pod(pod)).verdict
    return verdict.written if verdict.refused else ""


def test_a_write_under_an_old_term_is_refused_by_the_api_server(
    field: playground.Playground,
) -> None:
    leader(field)
    field.create(playground.a_claim("mine"))
    kube = client.KubeClient.connect(field.cluster.controller_kubeconfig, "ration-e2e")

    def write(manager: str) -> playground.Raw:
        return kube.patch(
            gvr.RESOURCE_CLAIMS,
            "mine",
            {"status": {"reservedFor": None}},
            namespace=field.namespace,
            subresource="status",
            field_manager=manager,
        )

    lease = field.kube.get(gvr.LEASES, "ration-controller", "ration-system")["spec"]
    holder_now, transitions = lease["holderIdentity"], lease["leaseTransitions"]
    assert write(f"ration-controller/{holder_now}/{transitions}")
    old = (f"ration-controller/{holder_now}/{transitions - 1}", "ration-controller/other/0", "any")
    for manager in old:
        with pytest.raises(errors.Forbidden, match="does not hold the Lease"):
            write(manager)
