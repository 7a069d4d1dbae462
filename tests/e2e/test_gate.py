"""The optional scheduling gate, on the real API server: who is gated, and when it goes (D2)."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from driver import errors, names
from driver.kube import client, gvr
from hack.cluster import api
from tests.e2e import playground

FOREIGN_CLASS = "e2e-foreign"
ANOTHERS = "example.com/wait"
QUIET_S = 3.0


@pytest.fixture
def gated(
    cluster: api.Cluster, nodes: tuple[str, ...], kube: client.KubeClient
) -> Iterator[playground.Playground]:
    """A namespace whose pods wait for the controller behind our gate."""
    assert nodes
    ground = playground.Playground.open(cluster, kube, **{names.GATE_LABEL: "true"})
    try:
        yield ground
    finally:
        ground.close()


@pytest.fixture
def foreign_class(kube: client.KubeClient) -> Iterator[str]:
    """A class of devices that no driver here publishes."""
    selector = {"cel": {"expression": 'device.driver == "nic.example.com"'}}
    body = {"metadata": {"name": FOREIGN_CLASS}, "spec": {"selectors": [selector]}}
    kube.create(gvr.DEVICE_CLASSES, body)
    try:
        yield FOREIGN_CLASS
    finally:
        kube.delete(gvr.DEVICE_CLASSES, FOREIGN_CLASS)


def gates(field: playground.Playground, name: str = "pod") -> list[str]:
    return [entry["name"] for entry in field.pod(name)["spec"].get("schedulingGates", ())]


def scheduled(field: playground.Playground, name: str = "pod") -> str:
    """The reason of the pod's condition PodScheduled."""
    result = field.pod(name)["status"].get("conditions", ())
    return next(
        (entry.get("reason", "") for entry in result if entry["type"] == "PodScheduled"), ""
    )


def made(field: playground.Playground, pod: dict[str, Any]) -> list[str]:
    """The gates of a pod as the API server answers its creation."""
    answer = field.kube.create(gvr.PODS, pod, field.namespace)
    return [entry["name"] for entry in answer["spec"].get("schedulingGates", ())]


def test_a_pod_is_made_gated_allocated_and_ungated_and_runs(gated: playground.Playground) -> None:
    gated.create(playground.a_template("whole"))
    for name in ("one", "two"):
        assert made(gated, playground.a_pod(name, template="whole")) == [names.ALLOCATION_GATE]
    for name in ("one", "two"):
        gated.running(name)
        assert gates(gated, name) == []
        assert gated.events(name, "FailedScheduling") == []
    assert gated.uuids("one") != gated.uuids("two")


def test_without_a_controller_pods_stay_gated_and_with_one_they_run(
    gated: playground.Playground,
) -> None:
    controllers = gated.cluster.controllers()
    for controller in controllers:
        gated.cluster.stop(controller)
    try:
        gated.create(playground.a_claim("mine"), playground.a_pod("pod", claims=("mine",)))
        playground.until(lambda: scheduled(gated) == "SchedulingGated", 10, "the pod is gated")
        time.sleep(QUIET_S)
        assert gates(gated) == [names.ALLOCATION_GATE]
        assert gated.device_of("mine") is None
    finally:
        for controller in controllers:
            gated.cluster.start(controller)
    gated.running("pod")
    assert gates(gated) == []


def test_a_pod_that_fits_nowhere_stays_gated_and_is_told(gated: playground.Playground) -> None:
    gated.create(playground.a_claim("huge", count=9), playground.a_pod("pod", claims=("huge",)))
    gated.told("pod", "NoFit")
    assert gates(gated) == [names.ALLOCATION_GATE]
    assert scheduled(gated) == "SchedulingGated"


def test_claims_that_are_kube_schedulers_delay_no_pod(
    gated: playground.Playground, foreign_class: str
) -> None:
    gated.create(playground.a_claim("nic", deviceClassName=foreign_class))
    assert made(gated, playground.a_pod("pod", claims=("nic",))) == [names.ALLOCATION_GATE]
    playground.until(lambda: not gates(gated), 5, "the gate goes")
    playground.until(lambda: scheduled(gated) == "Unschedulable", 10, "kube-scheduler tries")


def test_pods_without_claims_bound_pods_and_other_namespaces_are_not_gated(
    gated: playground.Playground, field: playground.Playground
) -> None:
    for ground in (gated, field):
        ground.create(playground.a_claim("mine"))
    assert made(gated, playground.a_pod("bare", command="exec sleep 3600")) == []
    assert made(field, playground.a_pod("pod", claims=("mine",))) == []
    placed = playground.a_pod("placed", claims=("mine",), nodeName="e2e-a")
    assert made(gated, placed) == []
    gated.running("bare")


def test_anothers_gate_keeps_everything_as_it_is_until_it_goes(
    gated: playground.Playground,
) -> None:
    gated.create(playground.a_claim("mine"))
    pod = playground.a_pod("pod", claims=("mine",), schedulingGates=[{"name": ANOTHERS}])
    assert set(made(gated, pod)) == {ANOTHERS, names.ALLOCATION_GATE}
    time.sleep(QUIET_S)
    assert set(gates(gated)) == {ANOTHERS, names.ALLOCATION_GATE}
    assert gated.device_of("mine") is None
    take_away(gated.kube, gated, ANOTHERS)
    gated.running("pod")


def take_away(
    kube: client.KubeClient, field: playground.Playground, gate: str, **more: Any
) -> None:
    """Remove a gate of the pod, and change what `more` says of its spec; under the true term."""
    lease = field.kube.get(gvr.LEASES, "ration-controller", "ration-system")["spec"]
    kube.patch(
        gvr.PODS,
        "pod",
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}], **more}},
        namespace=field.namespace,
        kind=client.PatchType.STRATEGIC,
        field_manager=f"ration-controller/{lease['holderIdentity']}/{lease['leaseTransitions']}",
    )


def test_the_controller_may_take_its_own_gate_away_and_nothing_else(
    gated: playground.Playground,
) -> None:
    kube = client.KubeClient.connect(gated.cluster.controller_kubeconfig, "ration-e2e")
    gated.create(playground.a_claim("mine"))
    pod = playground.a_pod("pod", claims=("mine",), schedulingGates=[{"name": ANOTHERS}])
    gated.create(pod)
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}
                ]
            }
        }
    }
    ours = names.ALLOCATION_GATE
    sly: tuple[tuple[str, dict[str, Any]], ...] = (
        (ANOTHERS, {}),
        (ours, {"nodeSelector": {"more": "x"}}),
        (ours, {"affinity": affinity}),
        (ours, {"activeDeadlineSeconds": 1}),
        (ours, {"containers": [{"name": "main", "image": "example.com/other"}]}),
    )
    for gate, more in sly:
        with pytest.raises(errors.Forbidden, match="no more of"):
            take_away(kube, gated, gate, **more)
    take_away(kube, gated, ours)
    assert gates(gated) == [ANOTHERS]


def test_a_stale_leader_takes_no_gate_away(gated: playground.Playground) -> None:
    kube = client.KubeClient.connect(gated.cluster.controller_kubeconfig, "ration-e2e")
    gated.create(playground.a_claim("huge", count=9), playground.a_pod("pod", claims=("huge",)))
    ours = {"$patch": "delete", "name": names.ALLOCATION_GATE}
    with pytest.raises(errors.Forbidden, match="does not hold the Lease"):
        kube.patch(
            gvr.PODS,
            "pod",
            {"spec": {"schedulingGates": [ours]}},
            namespace=gated.namespace,
            kind=client.PatchType.STRATEGIC,
            field_manager="ration-controller/other/0",
        )
    assert gates(gated) == [names.ALLOCATION_GATE]
