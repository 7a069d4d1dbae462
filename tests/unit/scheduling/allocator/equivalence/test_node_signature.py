from typing import Any

import pytest

from driver import ids
from driver.resources.dra import claims
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects, shared_claims

A, B = "node-a", "node-b"
UUID = f"{snapshots.DRIVER}/uuid"


def gpus(*uuids: str, **more: Any) -> list[objects.Raw]:
    return [
        objects.with_values(objects.a_device(f"gpu-{index}"), **{"uuid": uuid, **more})
        for index, uuid in enumerate(uuids)
    ]


def alike(view: cluster_state.ClusterState) -> bool:
    hashable, other = (
        node_signature.node_signature(view, view.reachable_pools(ids.NodeName(name)))
        for name in (A, B)
    )
    return hashable is not None and hashable == other


def two(
    mine: list[objects.Raw], theirs: list[objects.Raw], *taken: claims.Claim
) -> cluster_state.ClusterState:
    return snapshots.view(objects.a_slice(A, mine), objects.a_slice(B, theirs), taken=taken)


def test_nodes_are_alike_whatever_the_uuids_of_their_devices() -> None:
    assert alike(two(gpus("one", "two"), gpus("three", "four")))


def test_nodes_are_alike_where_the_same_devices_are_in_use() -> None:
    mine, theirs = snapshots.holding("x", A, "gpu-0"), snapshots.holding("y", B, "gpu-0")
    other = snapshots.holding("y", B, "gpu-1")
    assert alike(two(gpus("one", "two"), gpus("three", "four"), mine, theirs))
    assert not alike(two(gpus("one", "two"), gpus("three", "four"), mine, other))
    assert not alike(two(gpus("one", "two"), gpus("three", "four"), mine))


@pytest.mark.parametrize(
    "theirs",
    [
        gpus("one"),
        gpus("one", "two", numa=1),
        gpus("one", "two", numa=False),
        [{**gpu, "taints": []} for gpu in gpus("one", "two", numa=0)],
        [{**gpu, "capacity": {"memory": {"value": "1Gi"}}} for gpu in gpus("one", "two", numa=0)],
        [{**gpu, "allowMultipleAllocations": True} for gpu in gpus("one", "two", numa=0)],
    ],
)
def test_nodes_whose_devices_differ_are_not_alike(theirs: list[objects.Raw]) -> None:
    assert not alike(two(gpus("one", "two", numa=0), theirs))


SHARES = [objects.a_share_device("ts")]


def sharing(node: str, amount: str, **more: Any) -> claims.Claim:
    number = 1 if node == A else 2
    share = objects.a_share("ts", number, memory=amount)
    return snapshots.holding(f"of-{node}", node, share, **more)


def test_nodes_are_alike_where_as_much_of_a_device_is_shared_in_one_namespace() -> None:
    assert alike(two(SHARES, SHARES, sharing(A, "8Gi"), sharing(B, "8Gi")))
    assert not alike(two(SHARES, SHARES, sharing(A, "8Gi"), sharing(B, "9Gi")))
    other = sharing(B, "8Gi", namespace="other")
    assert not alike(two(SHARES, SHARES, sharing(A, "8Gi"), other))
    assert not alike(two(SHARES, SHARES, sharing(A, "8Gi")))


def test_a_node_whose_share_is_configured_is_like_no_other() -> None:
    held = (
        shared_claims.holder(f"of-{n}", "ts", shared_claims.turns("Long"), node=n) for n in (A, B)
    )
    assert not alike(two(SHARES, SHARES, *held))


def cut(node: str, amount: str) -> list[objects.Raw]:
    parts = [objects.drawing("gpu-0", "gpu-0", slots=amount)]
    return objects.counting({"gpu-0": {"slots": "4"}}, parts, node)


def test_nodes_are_alike_where_devices_draw_the_same_on_the_same_counters() -> None:
    assert alike(snapshots.view(*cut(A, "4"), *cut(B, "4")))
    assert not alike(snapshots.view(*cut(A, "4"), *cut(B, "2")))


def test_a_node_that_lacks_a_slice_of_its_pool_is_like_no_other() -> None:
    slices = [objects.a_slice(name, gpus("one")) for name in (A, B)]
    for slice_ in slices:
        slice_["spec"]["pool"]["resourceSliceCount"] = 2
    assert not alike(snapshots.view(*slices))


def tells(claim: claims.Claim) -> bool:
    view = two(gpus("one"), gpus("two"))
    wants = allocator_requests.parse_requests(view, (claim,))
    assert not isinstance(wants, allocator_types.Unschedulable)
    return node_signature.depends_on_uuids(view, (claim,), wants)


def test_selectors_without_uuids_ignore_uuids() -> None:
    assert not tells(objects.claim("c", objects.a_request()))


def test_a_selector_that_reads_uuids_tells_by_them() -> None:
    text = f'device.attributes["{snapshots.DRIVER}"].uuid == "one"'
    assert tells(objects.claim("c", objects.a_request("gpu", 1, text)))


def test_a_constraint_on_uuids_tells_by_them() -> None:
    rule = objects.matching(UUID)
    assert tells(objects.claim("c", objects.a_request(), constraints=[rule]))


def test_configuration_may_be_for_one_device() -> None:
    assert tells(objects.claim("c", objects.a_request(), config=[objects.a_config()]))


def test_a_slice_config_alone_does_not_tell_nodes_apart() -> None:
    need = objects.a_config("SliceConfig")
    assert not tells(objects.claim("c", objects.a_request(), config=[need]))
    assert tells(objects.claim("c", objects.a_request(), config=[need, objects.a_config()]))
    held = (shared_claims.holder(f"of-{name}", "ts", need, node=name) for name in (A, B))
    assert alike(two(SHARES, SHARES, *held))
