from typing import Any

from driver import errors, ids
from driver.controller.informers import snapshot_updater, stores
from driver.resources.core import nodes, pods, volumes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

A = ids.NodeName("node-a")
PARSERS: dict[str, Any] = {
    "nodes": nodes.parse,
    "slices": slices.parse,
    "classes": device_classes.parse,
    "claims": claims.parse,
    "pods": pods.parse,
    "volume_claims": volumes.parse_claim,
    "volumes": volumes.parse_volume,
    "taint_rules": taint_rules.parse,
}


def filled(**fields: objects.Raw) -> stores.Stores:
    """Stores as reflectors fill them, with one object each where it is named."""
    empty = stores.empty()
    for name, parsed in PARSERS.items():
        getattr(empty, name).set_parser(parsed, bad)
    for name, raw in fields.items():
        getattr(empty, name).apply(raw)
    return empty


def bad(key: ids.Key, error: errors.BadInput) -> None:
    raise AssertionError(key) from error


def at(version: int, raw: objects.Raw) -> objects.Raw:
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(version)}}


def test_existing_objects_are_applied_first() -> None:
    result, view = filled(nodes=objects.a_node()), cluster_state.ClusterState(snapshots.DRIVER)
    amounts = snapshot_updater.SnapshotUpdater(result, view, gang_index.GangIndex())
    assert dict(view.nodes) == {}
    amounts.apply()
    assert [*view.nodes] == [A]


def test_changes_are_in_the_picture_once_they_are_brought() -> None:
    result, view = filled(), cluster_state.ClusterState(snapshots.DRIVER)
    amounts = snapshot_updater.SnapshotUpdater(result, view, gang_index.GangIndex())
    result.nodes.apply(at(2, objects.a_node()))
    result.slices.apply(at(3, objects.a_slice("node-a", 1)))
    assert dict(view.nodes) == {}
    amounts.apply()
    assert [share.pool.name for share in view.reachable_pools(A)] == ["node-a"]
    result.slices.apply(at(4, objects.a_slice("node-a", 1)), deleted=True)
    amounts.apply()
    assert view.reachable_pools(A) == ()


def test_every_kind_is_brought() -> None:
    affinity = {"required": objects.allocated("node-a")["allocation"]["nodeSelector"]}
    rule = {
        "metadata": objects.meta("rule", None),
        "spec": {"deviceSelector": {}, "taint": {"key": "sick", "effect": "NoSchedule"}},
    }
    result = filled(
        nodes=objects.a_node(),
        slices=objects.a_slice("node-a", 1),
        classes=objects.a_class("one"),
        claims=objects.a_claim(status=objects.allocated("node-a", "gpu-0")),
        pods=objects.a_pod(nodeName="node-a"),
        volume_claims={"metadata": objects.meta("data"), "spec": {"volumeName": "disk"}},
        volumes={"metadata": objects.meta("disk", None), "spec": {"nodeAffinity": affinity}},
        taint_rules=rule,
    )
    view = cluster_state.ClusterState(snapshots.DRIVER)
    snapshot_updater.SnapshotUpdater(result, view, gang_index.GangIndex()).apply()
    (share,) = view.reachable_pools(A)
    assert [taint.key for taint in share.slices[0][1][0].taints][-1] == "sick"
    assert ([*view.classes], [*view.storage.claims]) == (["one"], ["default/data"])
    assert view.usage[A].pod_count == 1
    assert view.holders(claims.DeviceId(snapshots.DRIVER, "node-a", "gpu-0"))


def test_several_changes_of_an_object_are_applied_once() -> None:
    result, view = filled(), cluster_state.ClusterState(snapshots.DRIVER)
    amounts = snapshot_updater.SnapshotUpdater(result, view, gang_index.GangIndex())
    result.nodes.apply(at(2, objects.a_node()))
    result.nodes.apply(at(3, objects.a_node(unschedulable=True)))
    mark = view.revision
    amounts.apply()
    assert view.nodes[A].cordoned
    assert view.changed_since(mark) == (mark + 1, [A])


def test_without_a_change_nothing_is_brought() -> None:
    result, view = filled(nodes=objects.a_node()), cluster_state.ClusterState(snapshots.DRIVER)
    amounts = snapshot_updater.SnapshotUpdater(result, view, gang_index.GangIndex())
    amounts.apply()
    mark = view.revision
    amounts.apply()
    assert view.revision == mark


def test_the_response_to_our_write_is_applied_before_its_watch_event() -> None:
    result, view = filled(claims=objects.a_claim()), cluster_state.ClusterState(snapshots.DRIVER)
    amounts = snapshot_updater.SnapshotUpdater(result, view, gang_index.GangIndex())
    amounts.apply()
    result.observe_claim(at(9, objects.a_claim(status=objects.allocated("node-a", "gpu-0"))))
    amounts.apply()
    assert view.holders(claims.DeviceId(snapshots.DRIVER, "node-a", "gpu-0"))
