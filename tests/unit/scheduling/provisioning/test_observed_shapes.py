"""Tests of what is learned of a shape's nodes, kept, and held against its document."""

import dataclasses
import gzip
from typing import Any

import pytest

from driver import errors, ids, names
from driver.api import node_shapes
from driver.resources.core import nodes, pods
from driver.resources.dra import pools, slices
from driver.scheduling.provisioning import hypothetical_nodes, observed_shapes
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects, shapes


def a_pool(gpus: int = 8) -> pools.Pool:
    """Return what a node of so many GPUs publishes."""
    node_template = shapes.a_shape(gpus=gpus)
    return pools.newest_generation(node_template.build_slices(ids.NodeName("n1")))


def a_node(**more: Any) -> nodes.Node:
    return dataclasses.replace(objects.node("n1"), labels={shapes.INSTANCE: "h100-8"}, **more)


def seen(gpus: int = 8, *existing: pods.Pod) -> observed_shapes.ObservedShape:
    return observed_shapes.observe_node(
        observed_shapes.ObservedShape(), a_node(), a_pool(gpus), existing
    )


def said(**more: Any) -> node_shapes.NodeShape:
    return node_shapes.NodeShape.model_validate(shapes.document("h100-8", **more))


def paths(node_shape: node_shapes.NodeShape, node: nodes.Node, gpus: int = 8) -> list[str]:
    return [path for path, _ in observed_shapes.document_errors(2, node_shape, node, a_pool(gpus))]


def test_stored_shapes_are_read_back() -> None:
    observed_shape = seen().with_startup(61.25)
    assert observed_shapes.decode(observed_shapes.encode(observed_shape), "map") == observed_shape


def test_equal_nodes_are_kept_as_equal_texts() -> None:
    assert observed_shapes.encode(seen()) == observed_shapes.encode(seen())


def test_a_shape_that_was_seen_is_as_its_node_was() -> None:
    node_template = observed_shapes.apply_observed(
        shapes.a_shape(gpus=4), seen(8).with_startup(90.0)
    )
    assert node_template.is_observed
    assert node_template.startup_s == 90.0
    view = hypothetical_nodes.HypotheticalNodes(
        cluster_state.ClusterState(names.DRIVER), {ids.NodeName("new"): node_template}
    )
    (pool,) = view.pools.values()
    assert observed_shapes.gpu_count(pool) == 8


def test_the_longest_of_the_last_five_starts_counts() -> None:
    observed_shape = observed_shapes.ObservedShape()
    for took_s in (900.0, 50.0, 60.0, 70.0, 40.0, 30.0):
        observed_shape = observed_shape.with_startup(took_s)
    assert observed_shapes.apply_observed(shapes.a_shape(), observed_shape).startup_s == 70.0


def test_daemonset_requests_reduce_a_new_nodes_allocatable() -> None:
    daemon = dataclasses.replace(
        objects.pod("agent"), owner=pods.Owner("DaemonSet", "agent", "u"), requests={"cpu": 500}
    )
    observed_shape = seen(8, daemon, objects.pod("job"))
    assert observed_shape.allocatable["cpu"] == objects.node("n1").allocatable["cpu"] - 500
    assert observed_shape.allocatable["pods"] == 109


def test_a_new_node_has_neither_the_uuids_nor_the_faults_of_the_last() -> None:
    ill = slices.Taint(names.TAINT_XID, "79", "NoExecute")
    pool = a_pool()
    parts = tuple(
        dataclasses.replace(
            part,
            devices=tuple(
                dataclasses.replace(
                    device,
                    taints=(*device.taints, ill),
                    attributes={**device.attributes, names.ATTR_UUID: "GPU-1"},
                )
                for device in part.devices
            ),
        )
        for part in pool.slices
    )
    observed_shape = observed_shapes.observe_node(
        observed_shapes.ObservedShape(), a_node(), pools.newest_generation(parts), ()
    )
    devices = [device for part in observed_shape.resource_slices for device in part.devices]
    assert devices
    assert not any(names.ATTR_UUID in device.attributes for device in devices)
    assert {taint.key for device in devices for taint in device.taints} <= names.OWN_TAINTS


ZIPPED = observed_shapes.encode(observed_shapes.ObservedShape())
BOMB = gzip.compress(b" " * (64 << 20), compresslevel=1, mtime=0)
INFINITE = gzip.compress(b'{"version": 1, "gpus": Infinity}', mtime=0)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nothing",
        ZIPPED[:-9],
        ZIPPED[:10] + bytes(20) + ZIPPED[30:],
        gzip.compress(b"[" * 5000, mtime=0),
        INFINITE,
        BOMB,
    ],
    ids=["empty", "plain", "torn", "damaged", "deep", "infinite", "bomb"],
)
def test_unreadable_shapes_are_reported(text: bytes) -> None:
    with pytest.raises(errors.BadInput, match="map, h100-8: cannot be read"):
        observed_shapes.decode(text, "map, h100-8")


def test_a_document_that_is_right_contradicts_nothing() -> None:
    assert paths(said(), a_node()) == []


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"gpus": 4}, "shapes.2.gpus"),
        ({"product": "NVIDIA L4"}, "shapes.2.product"),
        ({"memory": "40Gi"}, "shapes.2.memory"),
        ({"allocatable": {"cpu": "9"}}, "shapes.2.allocatable.cpu"),
    ],
)
def test_a_document_that_is_wrong_of_a_live_node_is_told_at_its_field(
    more: dict[str, Any], path: str
) -> None:
    assert paths(said(**more), a_node()) == [path]


def test_a_taint_that_the_document_lacks_is_told_unless_it_passes() -> None:
    lasting = nodes.NodeTaint("gpu", "", "NoSchedule")
    passing = nodes.NodeTaint("node.kubernetes.io/not-ready", "", "NoSchedule")
    assert paths(said(), a_node(taints=(lasting, passing))) == ["shapes.2.taints"]
    node_shape = said(taints=[{"key": "gpu", "effect": "NoSchedule"}])
    assert paths(node_shape, a_node(taints=(lasting,))) == []


def test_imagined_nodes_have_all_that_their_shape_publishes_and_hide_nothing() -> None:
    below = snapshots.view(objects.a_slice("node-a", 2))
    view = hypothetical_nodes.HypotheticalNodes(below, {ids.NodeName("new"): shapes.EIGHT})
    assert [*view.nodes] == ["node-a", "new"]
    assert sorted(name for _, name in view.pools) == ["new", "node-a"]
    (share,) = view.reachable_pools(ids.NodeName("new"))
    assert share.problem == ""
    assert view.used_devices(share.pool) == frozenset()
    assert view.generation != below.generation
