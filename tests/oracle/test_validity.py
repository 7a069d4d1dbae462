"""The judge passes what the reference allocates, and sees every single thing that is made wrong."""

import copy
from typing import Any

import pytest

from tests.oracle import (
    differential,
    draw_claims,
    draw_slices,
    preference,
    scenarios,
    validity,
)
from tests.support.builders import objects

Raw = dict[str, Any]
GPU = draw_slices.DRIVERS[0]
SEEDS = 2000
UUID = "5c7d1f6e-0000-4000-8000-{:012}"
SICK = {"key": "sick", "value": "yes", "effect": "NoSchedule"}


def test_every_allocation_of_the_reference_passes(judging: differential.Judges) -> None:
    judged = 0
    for seed in range(SEEDS):
        world, answers = judging.reference.play(scenarios.draft(seed))
        for node, allocations in answers.fitting.items():
            wrong = validity.problems(
                world.cluster, world.claims, node, allocations, judging.believed
            )
            assert wrong == [], f"seed {seed} on {node}"
            judged += 1
    assert judged > SEEDS / 2


def test_choices_of_the_reference_are_nearly_always_the_first_that_fit(
    judging: differential.Judges,
) -> None:
    first, later, chosen = 0, 0, 0
    for seed in range(300):
        world, answers = judging.reference.play(scenarios.draft(seed))
        for node, allocations in answers.fitting.items():
            best = preference.is_first(world, node, allocations, judging.reference)
            results = [result for each in allocations for result in each["devices"]["results"]]
            first, later = first + best, later + (not best)
            chosen += any(result["request"].endswith(("/s1", "/s2")) for result in results)
    assert chosen > 5
    assert later < first / 50


def a_device(name: str, **more: Any) -> Raw:
    return {
        "name": name,
        "attributes": {"model": {"string": name[:1]}, "numa": {"int": 0}},
        "capacity": {"memory": {"value": "80Gi"}},
        **more,
    }


def shared(name: str, **more: Any) -> Raw:
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    memory = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    return a_device(name, allowMultipleAllocations=True, capacity=memory, **more)


def drawing(name: str, memory: str) -> Raw:
    uses = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
    return a_device(name, consumesCounters=uses)


def asking(*requests: Raw, name: str = "claim", **more: Any) -> Raw:
    return {
        "metadata": objects.meta(name),
        "spec": {"devices": {"requests": list(requests), **more}},
    }


def one(name: str = "r0", **body: Any) -> Raw:
    counted = {} if body.get("allocationMode") == "All" else {"count": 1}
    return {
        "name": name,
        "exactly": {"deviceClassName": GPU, "allocationMode": "ExactCount", **counted, **body},
    }


def a_world(devices: list[Raw], *claims: Raw, sets: str = "", **more: Any) -> scenarios.World:
    """One node with one pool of these devices, and a card with so much memory to draw on."""
    spec = {"driver": GPU, "nodeName": "node-a"}
    parts: list[Raw] = [{"devices": devices}]
    if sets:
        counters = {"memory": {"value": sets}}
        parts.append({"sharedCounters": [{"name": "card", "counters": counters}]})
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": len(parts)}
    slices = [
        {"metadata": objects.meta(f"slice-{number}", None), "spec": {**spec, "pool": pool, **part}}
        for number, part in enumerate(parts)
    ]
    fields: Raw = {
        "nodes": {"node-a": {}},
        "slices": slices,
        "classes": (draw_claims.a_class(GPU, f'device.driver == "{GPU}"'),),
        **more,
    }
    return scenarios.World(scenarios.Cluster(**fields), claims)


def allocated(world: scenarios.World, judging: differential.Judges) -> list[Raw]:
    """Return what the reference gives, found right."""
    fitting = judging.reference.answers(world).fitting
    assert fitting, "the reference allocates nothing"
    copied = copy.deepcopy(list(fitting["node-a"]))
    assert said(world, copied, judging) == ""
    return copied


def said(world: scenarios.World, allocations: list[Raw], judging: differential.Judges) -> str:
    return "; ".join(
        validity.problems(world.cluster, world.claims, "node-a", allocations, judging.believed)
    )


def results(allocations: list[Raw]) -> list[Raw]:
    entries: list[Raw] = allocations[0]["devices"]["results"]
    return entries


def test_a_missing_and_a_surplus_device_are_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a"), a_device("b"), a_device("c")], asking(one(count=2)))
    inputs = allocated(world, judging)
    more = {**results(inputs)[0], "device": "c"}
    results(inputs).append(more)
    assert "gets 3 devices, asked for 2" in said(world, inputs, judging)
    del results(inputs)[1:]
    assert "gets 1 devices, asked for 2" in said(world, inputs, judging)
    del results(inputs)[:]
    assert "answered by 0 alternatives" in said(world, inputs, judging)


def test_a_claim_without_an_answer_is_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a")], asking(one()))
    assert said(world, [], judging) == "0 allocations for 1 claims"


def test_a_result_that_nobody_asked_for_is_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a"), a_device("b")], asking(one()))
    inputs = allocated(world, judging)
    results(inputs).append({**results(inputs)[0], "device": "b", "request": "r9"})
    assert "r9, which nobody requested" in said(world, inputs, judging)


def test_two_alternatives_at_once_are_seen(judging: differential.Judges) -> None:
    ways = [{"name": name, **one()["exactly"]} for name in ("x", "y")]
    world = a_world([a_device("a"), a_device("b")], asking({"name": "r0", "firstAvailable": ways}))
    inputs = allocated(world, judging)
    assert preference.is_first(world, "node-a", inputs, judging.reference)
    results(inputs)[0]["request"] = "r0/y"
    assert said(world, inputs, judging) == ""
    assert not preference.is_first(world, "node-a", inputs, judging.reference)
    results(inputs).append({**results(inputs)[0], "device": "b", "request": "r0/x"})
    assert "answered by 2 alternatives" in said(world, inputs, judging)


def test_all_without_one_of_them_is_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a"), a_device("b")], asking(one(allocationMode="All")))
    inputs = allocated(world, judging)
    del results(inputs)[0]
    assert "gets 1 devices, all are 2" in said(world, inputs, judging)


def test_all_beside_an_unfinished_pool_is_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a")], asking(one(allocationMode="All")))
    inputs = allocated(world, judging)
    other = copy.deepcopy(world.cluster.slices[0])
    other["spec"]["pool"] = {"name": "late", "generation": 1, "resourceSliceCount": 2}
    late = a_world([a_device("a")], *world.claims, slices=[*world.cluster.slices, other])
    assert "late is incomplete" in said(late, inputs, judging)


@pytest.mark.parametrize("name", ["gone", "old"])
def test_a_device_that_is_not_usable_is_seen(judging: differential.Judges, name: str) -> None:
    old: Raw = {
        "metadata": objects.meta("slice-old", None),
        "spec": {
            "driver": GPU,
            "nodeName": "node-a",
            "pool": {"name": "node-a", "generation": 0, "resourceSliceCount": 1},
            "devices": [a_device("old")],
        },
    }
    now = a_world([a_device("a")], asking(one()))
    world = a_world([], *now.claims, slices=[*now.cluster.slices, old])
    inputs = allocated(world, judging)
    results(inputs)[0]["device"] = name
    assert f"{name} cannot be used on node-a" in said(world, inputs, judging)


def test_a_device_of_another_node_is_seen(judging: differential.Judges) -> None:
    far = a_device("far", nodeName="node-b")
    world = a_world([a_device("a", nodeName="node-a"), far], asking(one()))
    spec = world.cluster.slices[0]["spec"]
    del spec["nodeName"]
    spec["perDeviceNodeSelection"] = True
    inputs = allocated(world, judging)
    results(inputs)[0]["device"] = "far"
    assert "far cannot be used on node-a" in said(world, inputs, judging)


@pytest.mark.parametrize("location", ["class", "request"])
def test_a_device_that_is_not_selected_is_seen(judging: differential.Judges, location: str) -> None:
    text = f'device.attributes["{GPU}"].model == "a"'
    body: Raw = {"selectors": [{"cel": {"expression": text}}]} if location == "request" else {}
    classes = (draw_claims.a_class(GPU, *([text] if location == "class" else [])),)
    world = a_world([a_device("a"), a_device("b")], asking(one(**body)), classes=classes)
    inputs = allocated(world, judging)
    results(inputs)[0]["device"] = "b"
    assert "b is not what r0 selects" in said(world, inputs, judging)


@pytest.mark.parametrize(
    ("kind", "attribute", "message"),
    [
        ("matchAttribute", "model", "values differ"),
        ("distinctAttribute", "model", "a value is there twice"),
        ("matchAttribute", "numa", "a device does not have it"),
    ],
)
def test_a_broken_constraint_is_seen(
    judging: differential.Judges, kind: str, attribute: str, message: str
) -> None:
    devices = [a_device(name) for name in ("a1", "a2", "b1", "b2")]
    del devices[3]["attributes"]["numa"]
    constraint = {kind: f"{GPU}/{attribute}", "requests": ["r0"]}
    world = a_world(devices, asking(one(count=2), constraints=[constraint]))
    inputs = allocated(world, judging)
    wrong = {"values differ": ("a1", "b1"), "a value is there twice": ("a1", "a2")}
    for result, name in zip(results(inputs), wrong.get(message, ("b1", "b2")), strict=True):
        result["device"] = name
    assert message in said(world, inputs, judging)


def test_lists_that_meet_in_no_value_or_in_one_are_seen(judging: differential.Judges) -> None:
    devices = [a_device(name) for name in "abc"]
    for device, links in zip(devices, ([0, 1], [1, 2], [2, 3]), strict=True):
        device["attributes"]["links"] = {"ints": links}
    for kind, pair, message in (
        ("matchAttribute", "ac", "values differ"),
        ("distinctAttribute", "ab", "a value is there twice"),
    ):
        world = a_world(
            devices,
            asking(one(count=2), constraints=[{kind: f"{GPU}/links"}]),
            features={"DRAListTypeAttributes": True},
        )
        inputs = allocated(world, judging)
        for result, name in zip(results(inputs), pair, strict=True):
            result["device"] = name
        assert message in said(world, inputs, judging)


def test_a_taint_that_is_not_tolerated_is_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a"), a_device("b", taints=[SICK])], asking(one()))
    inputs = allocated(world, judging)
    results(inputs)[0]["device"] = "b"
    assert "r0 does not tolerate sick" in said(world, inputs, judging)


def test_a_taint_by_a_rule_is_seen(judging: differential.Judges) -> None:
    rule = {
        "metadata": objects.meta("rule", None),
        "spec": {"taint": SICK, "deviceSelector": {"device": "b"}},
    }
    world = a_world([a_device("a"), a_device("b")], asking(one()), rules=(rule,))
    inputs = allocated(world, judging)
    results(inputs)[0]["device"] = "b"
    assert "r0 does not tolerate sick" in said(world, inputs, judging)


def test_a_device_that_is_given_twice_is_seen(judging: differential.Judges) -> None:
    devices = [a_device("a"), a_device("b")]
    within = a_world(devices, asking(one(), one("r1")))
    inputs = allocated(within, judging)
    results(inputs)[1]["device"] = "a"
    assert "a is given twice" in said(within, inputs, judging)
    between = a_world(devices, asking(one()), asking(one(), name="other"))
    inputs = allocated(between, judging)
    inputs[1]["devices"]["results"][0]["device"] = "a"
    assert "a is in use" in said(between, inputs, judging)


def test_a_device_in_use_is_seen_but_for_admin_access(judging: differential.Judges) -> None:
    first = a_world([a_device("a"), a_device("b")], asking(one()))
    held = scenarios.settled(first.cluster, [asking(one(), name="held")], allocated(first, judging))
    world = scenarios.World(held, first.claims)
    inputs = allocated(world, judging)
    results(inputs)[0]["device"] = "a"
    assert "a is in use" in said(world, inputs, judging)
    admin = scenarios.World(held, (asking(one(adminAccess=True)),))
    assert results(allocated(admin, judging))[0]["device"] == "a"


def test_a_wrong_share_is_seen(judging: differential.Judges) -> None:
    world = a_world([shared("a")], asking(one(capacity={"requests": {"memory": "15Gi"}})))
    inputs = allocated(world, judging)
    for consumed in ({"memory": "15Gi"}, {"memory": "30Gi"}, {}):
        results(inputs)[0]["consumedCapacity"] = consumed
        assert "which is not due" in said(world, inputs, judging)
    results(inputs)[0]["consumedCapacity"] = {"memory": "20480Mi"}
    assert said(world, inputs, judging) == ""


def test_share_ids_are_unique_and_only_where_due(judging: differential.Judges) -> None:
    world = a_world([a_device("b"), shared("a")], asking(one(), one("r1"), one("r2")))
    inputs = allocated(world, judging)
    (whole,) = (result for result in results(inputs) if result["device"] == "b")
    whole["shareID"] = UUID.format(1)
    assert "b is not shared, but a share" in said(world, inputs, judging)
    del whole["shareID"]
    parts = [result for result in results(inputs) if result["device"] == "a"]
    popped = parts[0].pop("shareID")
    assert "has no shareID" in said(world, inputs, judging)
    parts[0]["shareID"] = parts[1]["shareID"]
    assert "is there twice" in said(world, inputs, judging)
    parts[0]["shareID"] = popped.upper()
    assert "is no UUID" in said(world, inputs, judging)


def test_more_than_the_capacity_is_seen(judging: differential.Judges) -> None:
    half = {"requests": {"memory": "40Gi"}}
    world = a_world(
        [shared("a"), shared("b")], asking(*(one(f"r{n}", capacity=half) for n in range(3)))
    )
    inputs = allocated(world, judging)
    results(inputs)[2]["device"] = "a"
    assert "a is over its memory" in said(world, inputs, judging)


def test_a_device_without_the_capacity_asked_for_is_seen(judging: differential.Judges) -> None:
    small = a_device("b", capacity={"memory": {"value": "10Gi"}})
    body: Raw = {"capacity": {"requests": {"memory": "20Gi"}}}
    world = a_world([a_device("a"), small, a_device("c", capacity={})], asking(one(**body)))
    inputs = allocated(world, judging)
    for name in "bc":
        results(inputs)[0]["device"] = name
        assert f"{name} is not what r0 selects" in said(world, inputs, judging)


def test_overdrawn_counters_are_seen(judging: differential.Judges) -> None:
    devices = [drawing("half", "40Gi"), drawing("other", "40Gi"), drawing("whole", "80Gi")]
    world = a_world(devices, asking(one(count=2)), sets="80Gi")
    inputs = allocated(world, judging)
    results(inputs)[1]["device"] = "whole"
    assert "counter card/memory of node-a is short by" in said(world, inputs, judging)


def test_a_device_that_draws_on_what_is_not_there_is_seen(judging: differential.Judges) -> None:
    whole = a_world([a_device("a")], asking(one()))
    inputs = allocated(whole, judging)
    broken = a_world([drawing("a", "40Gi")], *whole.claims)
    assert "a cannot be used on node-a" in said(broken, inputs, judging)


@pytest.mark.parametrize("key", ["adminAccess", "tolerations", "bindingConditions"])
def test_a_missing_copy_of_configuration_is_a_problem(
    judging: differential.Judges, key: str
) -> None:
    request = one(adminAccess=True, tolerations=[{"operator": "Exists"}])
    world = a_world([a_device("a", **draw_slices.CONDITIONS)], asking(request))
    inputs = allocated(world, judging)
    del results(inputs)[0][key]
    assert f"r0: {key}" in said(world, inputs, judging)


def test_wrong_configuration_is_seen(judging: differential.Judges) -> None:
    mine = {"opaque": {"driver": GPU, "parameters": {"of": "class"}}}
    yours = {"opaque": {"driver": GPU, "parameters": {"of": "claim"}}, "requests": ["r0"]}
    world = a_world(
        [a_device("a"), a_device("b")],
        asking(one(), one("r1"), config=[yours]),
        classes=(draw_claims.a_class(GPU, config=[mine]),),
    )
    inputs = allocated(world, judging)
    config = inputs[0]["devices"]["config"]
    for wrong in (config[:1], config[::-1], [{**config[0], "requests": ["r1"]}, config[1]]):
        inputs[0]["devices"]["config"] = wrong
        assert "config is" in said(world, inputs, judging)
    inputs[0]["devices"]["config"] = [{**config[0], "requests": ["r0", "r1"]}, config[1]]
    assert said(world, inputs, judging) == ""


def test_a_wrong_node_selector_is_seen(judging: differential.Judges) -> None:
    world = a_world([a_device("a")], asking(one()))
    inputs = allocated(world, judging)
    del inputs[0]["nodeSelector"]
    assert "nodeSelector is None" in said(world, inputs, judging)


def test_more_results_than_a_claim_may_have_are_seen(judging: differential.Judges) -> None:
    devices = [a_device(f"d{number}") for number in range(33)]
    world = a_world(devices, asking(one(count=32)))
    inputs = allocated(world, judging)
    results(inputs).append({**results(inputs)[0], "device": "d32"})
    assert "33 results; at most 32" in said(world, inputs, judging)
