import gc
import weakref
from typing import Any

import pytest

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import pools as dra_pools
from driver.resources.dra import slices
from tests.support.builders import objects

NODE = objects.node("node-a")


def made(*results: objects.Raw) -> dra_pools.Pool:
    return dra_pools.newest_generation([slices.parse(result) for result in results])


def problem(*results: objects.Raw) -> str | None:
    """Return what is wrong with what node-a reaches; None where it reaches nothing."""
    share = dra_pools.node_share(made(*results), NODE)
    return None if share is None else share.problem


def reached(*results: objects.Raw, node: nodes.Node = NODE) -> list[str] | None:
    share = dra_pools.node_share(made(*results), node)
    return (
        None
        if share is None
        else [device.name for _, devices in share.slices for device in devices]
    )


def part(number: int, devices: int = 1, **more: Any) -> objects.Raw:
    results = [objects.a_device(f"gpu-{number}-{index}") for index in range(devices)]
    return objects.a_slice("node-a", results, part=number, **{"resourceSliceCount": 2, **more})


def test_the_newest_generation_counts_alone() -> None:
    pool = made(part(0, generation=1), part(1, generation=2, resourceSliceCount=1))
    assert [slice_.generation for slice_ in pool.slices] == [2]
    assert pool.complete


def test_a_generation_without_all_its_slices_is_incomplete() -> None:
    assert problem(part(0)) == "shows 1 of 2 slices"
    assert problem(part(0), part(1)) == ""
    assert problem(part(0), part(1), part(2)) == "shows 3 of 2 slices"


def test_slices_stand_by_name_and_pools_by_driver_and_name() -> None:
    results = [
        part(1),
        objects.a_slice("node-a", 1, "a.example.com"),
        part(0),
        objects.a_slice("b"),
    ]
    pools = dra_pools.group_pools(slices.parse(result) for result in results)
    assert [(pool.driver, pool.name) for pool in pools] == [
        ("a.example.com", "node-a"),
        ("gpu.ration.dev", "b"),
        ("gpu.ration.dev", "node-a"),
    ]
    assert [slice_.name[-1] for slice_ in pools[-1].slices] == ["0", "1"]


def test_a_name_that_stands_twice_spoils_the_pool() -> None:
    twice = [objects.a_device("gpu-0"), objects.a_device("gpu-0")]
    assert problem(objects.a_slice("node-a", twice)) == "names device gpu-0 twice"


def test_counters_are_those_of_all_slices() -> None:
    raw = objects.counting({"gpu-0": {"slots": "4", "engines": "500m"}}, [])
    assert dict(made(*raw).counters) == {
        ("gpu-0", "slots"): 4 * 10**9,
        ("gpu-0", "engines"): 5 * 10**8,
    }


def test_a_counter_set_that_stands_twice_spoils_the_pool() -> None:
    shared, devices = objects.counting({"gpu-0": {"slots": "4"}}, [objects.a_device("x")])
    devices["spec"]["sharedCounters"] = shared["spec"]["sharedCounters"]
    assert problem(shared, devices) == "counter set gpu-0 is there twice"


@pytest.mark.parametrize(
    ("device", "named"),
    [
        (objects.drawing("x", "gpu-1", slots="1"), "gpu-1/slots"),
        (objects.drawing("x", "gpu-0", engines="1"), "gpu-0/engines"),
    ],
)
def test_a_device_that_draws_on_what_is_not_there_spoils_the_pool(
    device: objects.Raw, named: str
) -> None:
    raw = objects.counting({"gpu-0": {"slots": "4"}}, [device])
    assert problem(*raw) == f"device x draws on {named}, not there"


def test_a_node_reaches_what_is_local_to_it() -> None:
    assert reached(objects.a_slice("node-a", 2)) == ["gpu-0", "gpu-1"]
    assert reached(objects.a_slice("node-b", 2)) is None


def test_a_slice_without_devices_tells_a_node_that_its_pool_is_incomplete() -> None:
    shared, _ = objects.counting({"gpu-0": {"slots": "4"}}, [])
    assert reached(shared) == []
    assert problem(shared) == "shows 1 of 2 slices"


def test_each_device_may_say_where_it_is_used() -> None:
    raw = objects.a_far_slice(
        [
            objects.a_device("everywhere", allNodes=True),
            objects.a_device("there", nodeName="node-b"),
            objects.a_device("nowhere"),
            objects.a_device("here", nodeName="node-a"),
        ],
        perDeviceNodeSelection=True,
    )
    assert reached(raw) == ["everywhere", "here"]
    assert reached(raw, node=objects.node("node-b")) == ["everywhere", "there"]


def test_a_node_that_no_device_names_does_not_reach_the_pool() -> None:
    devices = [objects.a_device("there", nodeName="node-b")]
    raw = objects.a_far_slice(devices, perDeviceNodeSelection=True)
    assert reached(raw) is None


def test_a_duplicate_device_name_invalidates_the_pool_for_every_reaching_node() -> None:
    """Validate as kube-scheduler does: slices are looked at whole."""
    devices = [objects.a_device("x", nodeName=name) for name in ("node-a", "node-b")]
    raw = objects.a_far_slice(devices, perDeviceNodeSelection=True)
    assert (reached(raw), problem(raw)) == (["x"], "names device x twice")


def test_a_pool_of_which_a_device_makes_binding_wait_says_so() -> None:
    waits = objects.a_device("x", bindingConditions=["a"], bindingFailureConditions=["b"])
    assert made(objects.a_slice("node-a", [objects.a_device("y"), waits])).has_binding_conditions
    assert not made(objects.a_slice("node-a", 2)).has_binding_conditions


def test_a_slices_node_applies_to_its_devices_unless_they_select_their_own() -> None:
    parsed = slices.parse(objects.a_slice("node-a", 1))
    assert (parsed.node, parsed.device_reach(parsed.devices[0]).node) == ("node-a", "node-a")
    far = slices.parse(
        objects.a_far_slice([objects.a_device("x", nodeName="node-b")], perDeviceNodeSelection=True)
    )
    assert (far.node, far.device_reach(far.devices[0]).node) == (None, ids.NodeName("node-b"))


def test_derived_values_of_a_pool_are_computed_once() -> None:
    requested: list[str] = []
    pool = made(objects.a_slice())

    def seen(pool: dra_pools.Pool) -> str:
        requested.append(pool.name)
        return pool.name

    assert (pool.cached(seen), pool.cached(seen)) == ("node-a", "node-a")
    assert requested == ["node-a"]
    last = weakref.ref(pool)
    del pool
    gc.collect()
    assert last() is None


def test_the_look_of_pools_that_are_alike_goes_with_the_last_of_them() -> None:
    pool, other = made(objects.a_slice("node-a")), made(objects.a_slice("node-b"))
    assert pool.signature is other.signature
    look = weakref.ref(pool.signature)
    del pool
    gc.collect()
    assert look() is other.signature
    del other
    gc.collect()
    assert look() is None
