import pytest

from driver import ids
from driver.resources.dra import slices, taint_rules
from driver.scheduling.snapshot import pool_index, snapshot
from tests.support import snapshots
from tests.support.builders import objects

A = ids.NodeName("node-a")
KEY: snapshot.PoolKey = (snapshots.DRIVER, "node-a")


def put(of: pool_index.PoolIndex, *found: objects.Raw) -> None:
    for one in map(slices.parse, found):
        of.set_slice(one.name, one)


def a_rule(device: str | None = None, name: str = "rule") -> taint_rules.TaintRule:
    taint = slices.Taint("sick", "", "NoSchedule")
    return taint_rules.TaintRule(name, taint, selects=True, device=device)


def pools(of: pool_index.PoolIndex, node: str = "node-a") -> list[str]:
    return [share.pool.name for share in of.reachable_pools(objects.node(node))]


def taints(of: pool_index.PoolIndex) -> list[list[str]]:
    return [
        [taint.key for taint in device.taints if taint.key == "sick"]
        for one in of.pool(KEY).slices
        for device in one.devices
    ]


def test_slices_make_their_pool() -> None:
    found = pool_index.PoolIndex()
    put(found, *(objects.a_slice(resourceSliceCount=2, part=part) for part in (1, 0)))
    assert [one.name[-1] for one in found.pool(KEY).slices] == ["0", "1"]
    assert [*found.all_pools()] == [KEY]
    assert found.pool_nodes(KEY) == [A, A]


def test_a_pool_stays_the_same_object_until_a_slice_of_it_changes() -> None:
    found = pool_index.PoolIndex()
    put(found, objects.a_slice("node-a"), objects.a_slice("node-b"))
    before = found.pool(KEY)
    put(found, objects.a_slice("node-b", 2))
    assert found.pool(KEY) is before
    put(found, objects.a_slice("node-a", 2))
    assert found.pool(KEY) is not before


def test_a_pool_without_slices_is_none() -> None:
    found = pool_index.PoolIndex()
    put(found, objects.a_slice("node-a"))
    found.set_slice(slices.parse(objects.a_slice("node-a")).name, None)
    assert [*found.all_pools()] == []
    assert pools(found) == []
    with pytest.raises(KeyError):
        found.pool(KEY)


def test_a_slice_that_moves_leaves_its_old_pool() -> None:
    found = pool_index.PoolIndex()
    put(found, objects.a_slice("node-a"))
    moved = objects.a_slice("node-b")
    moved["metadata"]["name"] = objects.a_slice("node-a")["metadata"]["name"]
    put(found, moved)
    assert pools(found, "node-a") == []
    assert pools(found, "node-b") == ["node-b"]


def test_a_node_reaches_its_own_pools_and_those_in_the_network() -> None:
    found = pool_index.PoolIndex()
    put(found, objects.a_slice("node-a"), objects.a_slice("node-b"), objects.a_far_slice(1))
    assert pools(found) == ["fabric", "node-a"]
    assert found.pool_nodes((snapshots.DRIVER, "fabric")) == [pool_index.ALL_NODES]


def test_a_pool_that_reaches_some_nodes_is_not_shown_to_others() -> None:
    found = pool_index.PoolIndex()
    one = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
    put(found, objects.a_far_slice(1, nodeSelector=terms))
    assert (pools(found, "node-a"), pools(found, "node-b")) == ([], ["fabric"])


def test_a_pool_in_the_network_that_goes_is_reached_no_more() -> None:
    found = pool_index.PoolIndex()
    put(found, objects.a_far_slice(1), objects.a_slice("node-a"))
    found.set_slice(slices.parse(objects.a_far_slice(1)).name, None)
    assert pools(found) == ["node-a"]


def test_pools_that_make_binding_wait_come_last() -> None:
    found = pool_index.PoolIndex()
    waits = objects.a_device("x", bindingConditions=["a"], bindingFailureConditions=["b"])
    put(found, objects.a_far_slice([waits], "a-fabric"), objects.a_slice("node-a"))
    assert pools(found) == ["node-a", "a-fabric"]


def test_rules_lay_their_taints_over_devices_and_take_them_back() -> None:
    found = pool_index.PoolIndex()
    put(found, objects.a_slice("node-a", 2))
    found.set_taint_rule("rule", a_rule("gpu-1"))
    assert taints(found) == [[], ["sick"]]
    found.set_taint_rule("other", a_rule(None, "other"))
    assert taints(found) == [["sick"], ["sick", "sick"]]
    found.set_taint_rule("rule", None)
    found.set_taint_rule("other", None)
    assert taints(found) == [[], []]


def test_a_slice_is_known_as_it_was_published() -> None:
    found = pool_index.PoolIndex()
    raw = objects.a_slice("node-a", 1)
    put(found, raw)
    found.set_taint_rule("rule", a_rule())
    assert found.get_slice(slices.parse(raw).name) == slices.parse(raw)
