import re
from typing import Any

import pytest

from driver import ids
from driver.resources.core import node_selectors, nodes
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import decide, placed, workload
from tests.support.builders import objects

STAMP = "2026-11-21T09:00:00Z"
NODE = ids.NodeName("node-a")


def allocated(view: snapshot.Snapshot, *results: claims.Claim) -> list[claims.Allocation]:
    answer = placed(decide(view, *results))
    allocations = allocation_result.build_allocations(view, workload(*results), answer, STAMP)
    return [allocations[result.key] for result in results]


def test_each_claim_of_a_pod_has_its_own_devices_and_the_time() -> None:
    claim, two = objects.claim("one"), objects.claim("two", objects.a_request("b", 2))
    first, second = allocated(snapshots.fleet({"node-a": 3}), claim, two)
    assert [(r.request, r.device.device) for r in first.results] == [("gpu", "gpu-0")]
    assert [(r.request, r.device.device) for r in second.results] == [
        ("b", "gpu-1"),
        ("b", "gpu-2"),
    ]
    assert first.stamped == second.stamped == STAMP


def test_a_result_says_which_alternative_it_is_of() -> None:
    several = objects.first_available("gpu", objects.a_way("nine", 9), objects.a_way("one"))
    (allocation,) = allocated(snapshots.fleet({"node-a": 2}), objects.claim("c", several))
    assert [result.request for result in allocation.results] == ["gpu/one"]


def test_tolerations_and_administrative_access_are_copied_as_they_were_asked() -> None:
    toleration = {"key": "sick", "operator": "Exists", "tolerationSeconds": 30}
    request = objects.a_request(tolerations=[toleration], adminAccess=True)
    (allocation,) = allocated(snapshots.fleet({"node-a": 1}), objects.claim("c", request))
    (result,) = claims.render_allocation(allocation)["devices"]["results"]  # type: ignore[index]
    assert result == {
        "request": "gpu",
        "driver": snapshots.DRIVER,
        "pool": "node-a",
        "device": "gpu-0",
        "adminAccess": True,
        "tolerations": [toleration],
    }


def test_the_conditions_that_binding_waits_for_are_copied_from_the_device() -> None:
    device = objects.a_device(
        "gpu-0", bindingConditions=["Attached"], bindingFailureConditions=["Broken"]
    )
    (allocation,) = allocated(snapshots.view(objects.a_slice("node-a", [device])), objects.claim())
    (result,) = allocation.results
    assert (result.binding, result.failing) == (("Attached",), ("Broken",))
    (shown,) = claims.render_allocation(allocation)["devices"]["results"]  # type: ignore[index]
    assert shown["bindingConditions"] == ["Attached"]
    assert shown["bindingFailureConditions"] == ["Broken"]


def part(name: str, count: int = 1) -> objects.Raw:
    return objects.a_request(name, count, deviceClassName=snapshots.ANY)


def test_each_share_has_an_id_of_its_own_the_same_every_time() -> None:
    view = snapshots.view(objects.a_slice("node-a", [objects.a_share_device("ts")]))
    claim = objects.claim("c", part("a"), part("b"))
    other = objects.claim("d", part("a"))
    share_ids = [
        result.share_id
        for allocation in allocated(view, claim, other)
        for result in allocation.results
    ]
    assert len({*share_ids}) == 3
    assert all(
        re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) for name in share_ids
    )
    again = [
        result.share_id
        for allocation in allocated(view, claim, other)
        for result in allocation.results
    ]
    assert again == share_ids


def test_a_share_says_what_it_takes_and_a_whole_device_nothing() -> None:
    results = [objects.a_share_device("ts"), objects.a_device("gpu-0")]
    view = snapshots.view(objects.a_slice("node-a", results))
    (allocation,) = allocated(view, objects.claim("c", part("both", 2)))
    whole, share = sorted(allocation.results, key=lambda result: result.device.device)
    assert {name: quantity.text for name, quantity in share.consumed.items()} == {"memory": "8Gi"}
    assert (whole.consumed, whole.share_id) == ({}, "")


# Where the claim can be used.


def label(key: str, *values: str) -> objects.Raw:
    entry = {"key": key, "operator": "In", "values": [*values]}
    return {"nodeSelectorTerms": [{"matchExpressions": [entry]}]}


def labelled(**labels: str) -> nodes.Node:
    raw = objects.a_node("node-a")
    raw["metadata"]["labels"] = labels
    return nodes.parse(raw)


def reach_of(
    *results: objects.Raw, count: int = 1, **labels: str
) -> node_selectors.NodeSelector | None:
    view = snapshots.view(*results, more_nodes=[labelled(**labels)])
    (allocation,) = allocated(view, objects.claim("c", objects.a_request(count=count)))
    return allocation.selector


def test_devices_of_a_node_can_be_used_there_only() -> None:
    assert reach_of(objects.a_slice("node-a", 1)) == node_selectors.single_node_selector(NODE)


def test_devices_that_all_nodes_reach_can_be_used_everywhere() -> None:
    assert reach_of(objects.a_far_slice(1)) is None
    assert reach_of(objects.a_far_slice(1), objects.a_slice("node-a", 1), count=2) == (
        node_selectors.single_node_selector(NODE)
    )


def test_devices_of_labelled_nodes_can_be_used_where_every_label_is() -> None:
    rack = objects.a_far_slice(1, "rack", nodeSelector=label("rack", "r1"))
    zone = objects.a_far_slice(1, "zone", nodeSelector=label("zone", "z1", "z2"))
    assert reach_of(rack, zone, count=2, rack="r1", zone="z2") == node_selectors.NodeSelector(
        (
            node_selectors.Term(
                (
                    node_selectors.Expression("rack", "In", ("r1",)),
                    node_selectors.Expression("zone", "In", ("z1", "z2")),
                )
            ),
        )
    )


def test_a_label_that_several_devices_ask_stands_once() -> None:
    rack = objects.a_far_slice(2, "rack", nodeSelector=label("rack", "r1"))
    node_selector = reach_of(rack, count=2, rack="r1")
    assert node_selector is not None
    assert [len(term.labels) for term in node_selector.terms] == [1]


def test_each_device_may_say_where_it_can_be_used() -> None:
    devices = [
        objects.a_device("far", allNodes=True),
        objects.a_device("near", nodeName="node-a"),
        objects.a_device("other", nodeName="node-b"),
    ]
    raw = objects.a_far_slice(devices, perDeviceNodeSelection=True)
    assert reach_of(raw) is None
    assert reach_of(raw, count=2) == node_selectors.single_node_selector(NODE)


def test_a_device_that_binds_to_its_node_keeps_its_user_there() -> None:
    assert reach_of(objects.a_far_slice([objects.a_device("far", bindsToNode=True)])) == (
        node_selectors.single_node_selector(NODE)
    )


# Configuration.


def opaque(value: str, driver: str = "nic.example.com") -> objects.Raw:
    return {"opaque": {"driver": driver, "parameters": {"value": value}}}


def configs_of(*requests: objects.Raw, config: Any = ()) -> list[tuple[bool, tuple[str, ...], str]]:
    """Return each entry: whether it is the class's, its requests, its value."""
    device_class = objects.device_class(
        "one", "true", config=[opaque("class-one"), opaque("class-one-b")]
    )
    two = objects.device_class("two", "true", config=[opaque("class-two")])
    view = snapshots.view(objects.a_slice("node-a", 4), found_classes=[device_class, two])
    (allocation,) = allocated(view, objects.claim("c", *requests, config=config))
    return [
        (entry.from_class, entry.requests, str(entry.opaque["parameters"]["value"]))  # type: ignore[index]
        for entry in allocation.configs
    ]


def asking(name: str, device_class: str) -> objects.Raw:
    return objects.a_request(name, deviceClassName=device_class)


def test_configuration_of_the_class_comes_before_the_claims_so_that_that_wins() -> None:
    assert configs_of(asking("a", "one"), config=[opaque("claim")]) == [
        (True, (), "class-one"),
        (True, (), "class-one-b"),
        (False, (), "claim"),
    ]


def test_configuration_of_a_class_stands_once_for_all_its_requests() -> None:
    assert configs_of(asking("a", "one"), asking("b", "two"), asking("c", "one")) == [
        (True, ("a", "c"), "class-one"),
        (True, ("a", "c"), "class-one-b"),
        (True, ("b",), "class-two"),
    ]


def test_configuration_for_every_request_names_none() -> None:
    both = {**opaque("claim"), "requests": ["a", "b"]}
    results = configs_of(asking("a", "two"), asking("b", "two"), config=[both])
    assert results == [(True, (), "class-two"), (False, (), "claim")]


@pytest.mark.parametrize(("named", "present"), [("gpu", True), ("gpu/b", True), ("gpu/a", False)])
def test_configuration_is_there_for_the_alternative_that_was_taken(
    named: str, *, present: bool
) -> None:
    ways = [objects.a_way("a", 9, deviceClassName="one"), objects.a_way("b", deviceClassName="two")]
    entry = {**opaque("claim"), "requests": [named]}
    several = objects.first_available("gpu", *ways)
    results = configs_of(several, asking("other", "two"), config=[entry])
    assert ((False, (named,), "claim") in results) is present
    assert results[0] == (True, (), "class-two")
