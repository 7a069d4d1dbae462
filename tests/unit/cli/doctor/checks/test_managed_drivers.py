"""Checks of other drivers whose devices the controller allocates."""

import dataclasses
from typing import Any

import pytest

from driver import names, reasons
from driver.cli.doctor import checks
from driver.cli.doctor.checks import facts, findings
from driver.resources.core import label_selectors
from driver.scheduling.device_ownership import desired
from tests.fakes import doctored
from tests.support.builders import objects

State = findings.State
DRIVER, NIC = "gpu.example.com", "nic.example.com"
CHECK = "managed drivers"
ONLY = doctored.controller_only(DRIVER)
MANAGED: facts.ManagedDevices = ONLY["managed"]


def managed(**changes: Any) -> facts.ManagedDevices:
    return dataclasses.replace(MANAGED, **changes)


def said(devices: facts.ManagedDevices = MANAGED, **other: Any) -> list[tuple[State, str]]:
    facts_seen = doctored.healthy(**{**ONLY, "managed": devices, **other})
    return [(item.state, item.message) for item in checks.run(facts_seen) if item.check == CHECK]


def states(**other: Any) -> dict[str, State]:
    facts_seen = doctored.healthy(**{**ONLY, **other})
    return {item.check: item.state for item in checks.run(facts_seen)}


def test_a_controller_without_a_plugin_of_ours_is_fine() -> None:
    assert said() == [(State.FINE, f"the controller allocates devices of {DRIVER}, by 1 rule")]
    assert states() == {
        "kubernetes": State.FINE,
        "api": State.FINE,
        "controller": State.FINE,
        "pods": State.FINE,
        CHECK: State.FINE,
        "nodes": State.NOTE,
    }


def test_what_only_our_plugin_needs_is_not_asked_for_without_it() -> None:
    other = states(
        version="v1.36.0",
        classes=(),
        nodes=(doctored.a_node(resources={"nvidia.com/gpu": "8"}),),
        daemon_sets=(doctored.a_daemon_set("nvidia-device-plugin-daemonset"),),
    )
    assert State.WRONG not in other.values()
    assert "device plugin" not in other


@pytest.mark.parametrize("kind", ["pods", "daemon_sets"])
def test_with_a_plugin_of_ours_its_nodes_are_checked(kind: str) -> None:
    plugin = doctored.a_pod("kubeletplugin", node="node-b")
    other = {kind: (*ONLY.get(kind, ()), plugin)}
    assert states(**other)["devices"] is State.WRONG
    assert states(**other)["classes"] is State.WRONG


def test_without_managed_drivers_nothing_is_said_of_them() -> None:
    assert CHECK not in doctored.states()
    unserved = facts.Unreadable("list devicetaintrules", "404", missing=True)
    assert CHECK not in doctored.states(managed=facts.ManagedDevices(rules=unserved))


def test_an_api_that_is_not_served_is_wrong() -> None:
    unserved = facts.Unreadable("list devicetaintrules", "404", missing=True)
    ((state, text),) = said(managed(rules=unserved))
    assert (state, text) == (
        State.WRONG,
        "DeviceTaintRules are not served: kube-scheduler allocates",
    )
    (_, gate), _ = said(gates={"DRADeviceTaintRules": False})
    assert (
        gate
        == "feature gate DRADeviceTaintRules is off in the API server: kube-scheduler allocates"
    )


@pytest.mark.parametrize("field", ["drivers", "rules", "slices", "pods"])
def test_what_may_not_be_read_is_not_seen(field: str) -> None:
    hidden = facts.Unreadable(f"list {field}", "403", forbidden=True)
    assert (State.UNSEEN, f"you may not list {field}") in said(managed(**{field: hidden}))


@pytest.mark.parametrize(("seconds", "state"), [(12, State.NOTE), (240, State.WRONG)])
def test_a_handover_is_shown_with_its_length(seconds: float, state: State) -> None:
    rule = doctored.a_rule(DRIVER, handover_s=seconds)
    text = f"rule ration-driver-{DRIVER} shows the handover for {seconds} s: nobody allocates "
    assert said(managed(rules=(rule,))) == [(state, f"{text}its devices")]


def test_an_edited_rule_is_wrong() -> None:
    rule = doctored.a_rule(DRIVER)
    rule["spec"]["taint"]["effect"] = "NoExecute"
    ((state, text),) = said(managed(rules=(rule,)))
    assert (state, "was edited" in text) == (State.WRONG, True)


def test_a_driver_without_its_rule_is_kube_schedulers() -> None:
    assert said(managed(rules=())) == [
        (State.WRONG, f"no DeviceTaintRule for driver {DRIVER}: kube-scheduler allocates")
    ]


def test_selected_pools_without_a_rule_are_named() -> None:
    selector = label_selectors.parse_text("team=gpu", "nodeSelector")
    names_of_nodes = ("node-a", "node-b", "node-c")
    devices = managed(
        drivers=(desired.ManagedDriver(DRIVER, selector),),
        rules=(doctored.a_rule(DRIVER, pool="node-a"),),
        slices=tuple(
            objects.a_slice(name, [objects.a_device("gpu-0")], DRIVER) for name in names_of_nodes
        ),
    )
    nodes = [doctored.a_node(name, labels={"team": "gpu"}) for name in names_of_nodes[:2]]
    others = (*nodes, doctored.a_node("node-c"))
    assert said(devices, nodes=others) == [
        (
            State.WRONG,
            f"no DeviceTaintRule for driver {DRIVER}, pool node-b: kube-scheduler allocates",
        )
    ]
    unselected = managed(drivers=devices.drivers, rules=(), slices=devices.slices)
    ((state, text),) = said(unselected)
    assert (state, text) == (
        State.NOTE,
        f"no node of {DRIVER} matches its nodeSelector: kube-scheduler allocates",
    )


def test_a_driver_that_publishes_nothing_and_has_no_class_is_noted() -> None:
    assert said(managed(slices=()), classes=()) == [
        (State.NOTE, f"{DRIVER} publishes no device"),
        (State.FINE, f"the controller allocates devices of {DRIVER}, by 1 rule"),
        (State.NOTE, f"no DeviceClass selects devices of {DRIVER}"),
    ]


def test_a_rule_for_a_driver_that_is_not_listed_is_named() -> None:
    left = doctored.a_rule(NIC)
    (_, (state, text)) = said(managed(rules=(*MANAGED.rules, left)))  # type: ignore[misc]
    assert state is State.WRONG
    assert text.startswith(f"rule ration-driver-{NIC} keeps devices of {NIC} from kube-scheduler")
    emptied = facts.ManagedDevices(rules=(left,))
    assert doctored.found(CHECK, managed=emptied).fix.startswith(
        f"list it, or kubectl delete devicetaintrule ration-driver-{NIC}"
    )
    leaving = facts.ManagedDevices(rules=(doctored.a_rule(NIC, handover_s=9),))
    assert doctored.found(CHECK, managed=leaving).state is State.NOTE


def test_a_pod_whose_claim_needs_both_allocators_names_the_driver_to_list() -> None:
    message = f"kube-scheduler allocates the devices of request nic ({NIC})"
    condition = {
        "type": names.CONDITION_ALLOCATED,
        "status": "False",
        "reason": reasons.Reason.FOREIGN_DEVICES.value,
        "message": message,
    }
    waiting = [objects.a_pod(f"pod-{n}", status={"conditions": [condition]}) for n in range(7)]
    devices = managed(pods=(*waiting, objects.a_pod("other")))
    texts = [text for state, text in said(devices) if state is State.WRONG]
    assert texts[0] == f"pod default/pod-0: {message}"
    assert len(texts) == 6
    assert texts[-1] == "2 more pods wait for the same reason"


def test_without_a_leader_the_way_back_is_named() -> None:
    facts_seen = doctored.healthy(**{**ONLY, "leases": ()})
    (finding,) = [item for item in checks.run(facts_seen) if item.check == "controller"]
    assert finding.state is State.WRONG
    assert finding.fix.endswith(f"kubectl delete devicetaintrules -l {names.ALLOCATOR_RULE}=true")
