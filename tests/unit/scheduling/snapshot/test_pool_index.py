import pytest

from driver import ids
from driver.resources.dra import slices, taint_rules
from driver.scheduling.snapshot import pool_index, snapshot
from tests.support import snapshots
from tests.support.builders import objects

A = ids.NodeName("node-a")
KEY: snapshot.PoolKey = (snapshots.DRIVER, "node-a")


def put(index: pool_index.PoolIndex, *results: objects.Raw) -> None:
    for item in map(slices.parse, results):
        index.set_slice(item.name, item)


def a_rule(device: str | None = None, name: str = "rule") -> taint_rules.TaintRule:
    taint = slices.Taint("sick", "", "NoSchedule")
    return taint_rules.TaintRule(name, taint, selects=True, device=device)


def pools(index: pool_index.PoolIndex, node: str = "node-a") -> list[str]:
    return [share.pool.name for share in index.reachable_pools(objects.node(node))]


def taints(index: pool_index.PoolIndex) -> list[list[str]]:
    return [
        [taint.key for taint in device.taints if taint.key == "sick"]
        for slice_ in index.pool(KEY).slices
        for device in slice_.devices
    ]


def test_slices_make_their_pool() -> None:
    index = pool_index.PoolIndex()
    put(index, *(objects.a_slice(resourceSliceCount=2, part=part) for part in (1, 0)))
    assert [slice_.name[-1] for slice_ in index.pool(KEY).slices] == ["0", "1"]
    assert [*index.all_pools()] == [KEY]
    assert index.pool_nodes(KEY) == [A, A]


def test_a_pool_stays_the_same_object_until_a_slice_of_it_changes() -> None:
    index = pool_index.PoolIndex()
    put(index, objects.a_slice("node-a"), objects.a_slice("node-b"))
    previous = index.pool(KEY)
    put(index, objects.a_slice("node-b", 2))
    assert index.pool(KEY) is previous
    put(index, objects.a_slice("node-a", 2))
    assert index.pool(KEY) is not previous


def test_a_pool_without_slices_is_none() -> None:
    index = pool_index.PoolIndex()
    put(index, objects.a_slice("node-a"))
    index.set_slice(slices.parse(objects.a_slice("node-a")).name, None)
    assert [*index.all_pools()] == []
    assert pools(index) == []
    with pytest.raises(KeyError):
        index.pool(KEY)


def test_a_slice_that_moves_leaves_its_old_pool() -> None:
    index = pool_index.PoolIndex()
    put(index, objects.a_slice("node-a"))
    moved = objects.a_slice("node-b")
    moved["metadata"]["name"] = objects.a_slice("node-a")["metadata"]["name"]
    put(index, moved)
    assert pools(index, "node-a") == []
    assert pools(index, "node-b") == ["node-b"]


def test_a_node_reaches_its_own_pools_and_those_in_the_network() -> None:
    index = pool_index.PoolIndex()
    put(index, objects.a_slice("node-a"), objects.a_slice("node-b"), objects.a_far_slice(1))
    assert pools(index) == ["fabric", "node-a"]
    assert index.pool_nodes((snapshots.DRIVER, "fabric")) == [pool_index.ALL_NODES]


def test_a_pool_that_reaches_some_nodes_is_not_shown_to_others() -> None:
    index = pool_index.PoolIndex()
    entry = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [entry]}]}
    put(index, objects.a_far_slice(1, nodeSelector=terms))
    assert (pools(index, "node-a"), pools(index, "node-b")) == ([], ["fabric"])


def test_a_pool_in_the_network_that_goes_is_reached_no_more() -> None:
    index = pool_index.PoolIndex()
    put(index, objects.a_far_slice(1), objects.a_slice("node-a"))
    index.set_slice(slices.parse(objects.a_far_slice(1)).name, None)
    assert pools(index) == ["node-a"]


def test_pools_that_make_binding_wait_come_last() -> None:
    index = pool_index.PoolIndex()
    waits = objects.a_device("x", bindingConditions=["a"], bindingFailureConditions=["b"])
    put(index, objects.a_far_slice([waits], "a-fabric"), objects.a_slice("node-a"))
    assert pools(index) == ["node-a", "a-fabric"]


def test_rules_lay_their_taints_over_devices_and_take_them_back() -> None:
    index = pool_index.PoolIndex()
    put(index, objects.a_slice("node-a", 2))
    index.set_taint_rule("rule", a_rule("gpu-1"))
    assert taints(index) == [[], ["sick"]]
    index.set_taint_rule("other", a_rule(None, "other"))
    assert taints(index) == [["sick"], ["sick", "sick"]]
    index.set_taint_rule("rule", None)
    index.set_taint_rule("other", None)
    assert taints(index) == [[], []]


def test_a_slice_is_known_as_it_was_published() -> None:
    index = pool_index.PoolIndex()
    raw = objects.a_slice("node-a", 1)
    put(index, raw)
    index.set_taint_rule("rule", a_rule())
    assert index.get_slice(slices.parse(raw).name) == slices.parse(raw)
