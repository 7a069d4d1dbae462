"""Our scheduling gate: it goes when the claims are written, and when there is nothing to write."""

from typing import Any

import pytest

from driver import errors, names
from driver.controller.commit import gate_delay
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold
from tests.fakes.deciding import World
from tests.support.builders import objects

OURS = [{"name": names.ALLOCATION_GATE}]
GATED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
}


def a_gated_pod(*claim_names: str, gates: Any = OURS) -> dict[str, Any]:
    return objects.a_pod("pod", *claim_names, schedulingGates=gates, status=GATED)


def nominated(world: World) -> str | None:
    node: str | None = world.pods["pod"]["status"].get("nominatedNodeName")
    return node


def foreign(name: str) -> dict[str, Any]:
    """A claim for a class of whose devices none is ours."""
    return objects.a_claim(name, objects.a_request(deviceClassName="nic.example.com"))


def test_the_gate_goes_once_the_claims_are_written() -> None:
    world = World()
    world.add(objects.a_claim("one"), objects.a_claim("two"), a_gated_pod("one", "two"))
    world.settle()
    assert world.device("one")
    assert world.device("two")
    assert world.server.ungated == ["pod"]


def test_the_gate_goes_with_the_last_claims_write_and_not_a_turn_later() -> None:
    world = World()
    world.add(objects.a_claim(), a_gated_pod())
    world.turn()
    assert world.server.ungated == ["pod"]


@pytest.mark.parametrize("apart_s", [0.0, 1.0])
def test_in_a_burst_alone_the_claims_are_written_some_time_ahead(apart_s: float) -> None:
    world = World()
    for name in ("a", "b"):
        pod = objects.a_pod(f"pod-{name}", name, schedulingGates=OURS, status=GATED)
        world.add(objects.a_claim(name), pod)
        world.turn()
        world.clock.advance(apart_s)
    assert world.server.ungated == ["pod-a", "pod-b"]
    assert (gate_delay.LEAD_S in world.clock.waits) is (apart_s == 0.0)


def test_kube_scheduler_tries_the_node_of_a_gated_pods_devices_first() -> None:
    world = World()
    world.add(objects.a_claim(), a_gated_pod())
    world.turn()
    assert nominated(world) == "node-0"
    assert world.server.ungated == ["pod"]


@pytest.mark.parametrize(
    "spec",
    [
        {"preemptionPolicy": "Never"},
        {"schedulerName": "volcano"},
        {"schedulingGroup": {"podGroupName": "group"}},
        {"schedulingGates": []},
    ],
)
def test_no_node_is_nominated_that_might_stay_so_after_a_refusal(spec: dict[str, Any]) -> None:
    world = World()
    pod = a_gated_pod()
    world.add(objects.a_claim(), {**pod, "spec": {**pod["spec"], **spec}})
    world.settle()
    assert nominated(world) is None


def test_a_nomination_that_is_refused_keeps_no_gate() -> None:
    world = World()
    world.server.refuse["nominate pod"] = errors.Forbidden(403, "Forbidden", "policy")
    world.add(objects.a_claim(), a_gated_pod())
    world.turn()
    assert nominated(world) is None
    assert world.server.ungated == ["pod"]


def test_a_nomination_is_taken_back_where_the_claims_are_not_written() -> None:
    world = World()
    world.server.refuse["claim"] = errors.Forbidden(403, "Forbidden", "policy")
    world.add(objects.a_claim(), a_gated_pod())
    world.turn()
    assert nominated(world) is None
    assert world.server.ungated == []


def test_another_gate_keeps_ours_until_it_is_gone() -> None:
    world = World()
    world.add(objects.a_claim(), a_gated_pod(gates=[*OURS, {"name": "example.com/quota"}]))
    world.settle()
    assert world.server.ungated == []


def crowded(*labels: str) -> World:
    """A world of one GPU and a gated pod that asks for two, in a namespace of labels."""
    world = World(1)
    meta = {"name": "default", "labels": dict.fromkeys(labels, "true"), "resourceVersion": "2"}
    world.stores.namespaces.apply({"metadata": meta})
    world.add(objects.a_claim("one"), objects.a_claim("two"), a_gated_pod("one", "two"))
    world.settle()
    assert [reason for _, reason, _ in world.told.lines] == ["NoFit"] * 3
    return world


def test_the_gate_goes_where_nothing_fits_for_autoscalers_to_act() -> None:
    assert crowded().server.ungated


def test_in_a_namespace_that_asks_for_it_the_gate_stays_while_nothing_fits() -> None:
    assert crowded(names.GATE_LABEL).server.ungated == []


def test_a_gate_that_another_leader_left_on_an_allocated_pod_goes() -> None:
    world = World()
    pod = objects.pod("pod", "claim")
    entries = [
        claims.render_consumer(e)
        for e in (allocation_hold.pod_entry(pod), allocation_hold.pod_hold(pod))
    ]
    status = objects.allocated("node-0", "gpu-0", reserved=entries)
    world.add(objects.a_claim(status=status), a_gated_pod())
    world.settle()
    assert world.server.ungated
    assert world.server.written == []


def test_a_gate_that_could_not_be_removed_is_removed_later() -> None:
    world = World()
    world.server.refuse["ungate pod"] = errors.ServerError(500, "InternalError", "no")
    world.add(objects.a_claim(), a_gated_pod())
    world.settle(0.0)
    world.settle(5.0)
    assert world.server.ungated


def test_a_pod_whose_claims_are_kube_schedulers_is_not_held_up() -> None:
    world = World()
    world.add(foreign("nic"), a_gated_pod("nic"))
    world.settle()
    assert world.server.ungated
    assert world.server.written == []


def test_with_one_claim_of_each_ours_is_written_first() -> None:
    world = World()
    nics = [objects.a_device("nic-0", taints=[])]
    world.stores.slices.apply(objects.a_slice("node-0", nics, "nic.example.com"))
    foreign_class = objects.a_class("nic.example.com", 'device.driver == "nic.example.com"')
    world.stores.classes.apply(foreign_class)
    world.add(objects.a_claim(), foreign("nic"), a_gated_pod("claim", "nic"))
    world.settle()
    assert world.device("claim")
    assert world.device("nic") is None
    assert world.server.ungated


def test_a_pod_without_claims_is_not_held_up() -> None:
    world = World()
    pod = a_gated_pod()
    del pod["spec"]["resourceClaims"]
    world.add(pod)
    world.settle()
    assert world.server.ungated


def test_until_its_claim_has_been_made_a_pod_waits() -> None:
    world = World()
    world.add(a_gated_pod())
    world.settle()
    assert world.server.ungated == []
    world.add(objects.a_claim())
    world.settle()
    assert world.server.ungated


def test_anothers_gate_keeps_both_gates_and_the_claims_open() -> None:
    world = World()
    world.add(objects.a_claim(), a_gated_pod(gates=[*OURS, {"name": "kueue.x-k8s.io/admission"}]))
    world.settle()
    assert world.device() is None
    assert world.server.ungated == []
    world.add(a_gated_pod())
    world.settle()
    assert world.device()
    assert world.server.ungated


def test_the_schedulers_patience_begins_when_the_gate_has_gone() -> None:
    world = World()
    world.add(objects.a_claim(), a_gated_pod())
    world.settle()
    world.settle(600.0)
    assert world.device()
    world.add(objects.a_pod(status=objects.refused("0/1 nodes are available: 1 too many pods.")))
    world.settle()
    assert ("claim", "status", "MERGE") in world.server.written
