"""The four plugins that volumes concern; the oracle compares each with kube-scheduler's own."""

from dataclasses import replace
from typing import Any

import pytest

from driver import ids, reasons
from driver.resources.core import pods, storage, volumes
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support.builders import objects
from tests.support.scenarios import affinity

Reason = reasons.Reason
KEY = ids.Key("default/data")
WAITS = storage.StorageClass("fast", "csi.example.com", waits_for_consumer=True)
CLAIM = volumes.VolumeClaim(
    "", completed=False, namespace="default", name="data", storage_class="fast", size=10 * 10**9
)
DISK = volumes.Volume(name="disk", storage_class="fast", size=20 * 10**9, available=True)


@pytest.fixture
def view() -> cluster_state.ClusterState:
    """A node in each of two zones, and a class that waits for a node."""
    state = affinity.view([affinity.a_node("a", "east"), affinity.a_node("b", "west")])
    state.set_storage_class("fast", WAITS)
    return state


def mounting(name: str = "new", claim: str = "data", **spec: Any) -> pods.Pod:
    mounted = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    return affinity.a_pod(name, volumes=[mounted], **spec)


def zones(*names: str) -> storage.Topology:
    return (((affinity.ZONE, frozenset(names)),),)


def test_a_claim_that_waits_is_made_for_any_node_of_its_class(
    view: cluster_state.ClusterState,
) -> None:
    view.set_volume_claim(KEY, CLAIM)
    assert affinity.fitting(view, mounting()) == ["a", "b"]
    view.set_storage_class("fast", replace(WAITS, topology=zones("west")))
    assert affinity.reasons_of(view, mounting()) == {"a": Reason.NODE_VOLUME}


def test_a_claim_that_is_bound_at_once_keeps_its_pod_waiting(
    view: cluster_state.ClusterState,
) -> None:
    view.set_volume_claim(KEY, CLAIM)
    view.set_storage_class("fast", replace(WAITS, waits_for_consumer=False))
    assert affinity.fitting(view, mounting()) == []


def test_a_volume_made_by_hand_is_bound_where_it_is(view: cluster_state.ClusterState) -> None:
    view.set_storage_class("fast", replace(WAITS, provisioner="kubernetes.io/no-provisioner"))
    view.set_volume_claim(KEY, CLAIM)
    assert affinity.fitting(view, mounting()) == []
    node_selector = volumes.parse_volume(
        {"spec": {"nodeAffinity": {"required": objects.on_host("b")}}}
    ).selector
    view.set_volume("disk", replace(DISK, selector=node_selector))
    assert affinity.fitting(view, mounting()) == ["b"]
    view.set_volume("disk", replace(DISK, size=1))
    assert affinity.fitting(view, mounting()) == []


def local(node: str, name: str) -> volumes.Volume:
    """A volume of a node alone."""
    affinity = {"spec": {"nodeAffinity": {"required": objects.on_host(node)}}}
    return replace(DISK, name=name, selector=volumes.parse_volume(affinity).selector)


def test_a_volume_is_not_counted_for_two_pods_on_their_way_to_its_node(
    view: cluster_state.ClusterState,
) -> None:
    view.set_storage_class("fast", replace(WAITS, provisioner="kubernetes.io/no-provisioner"))
    for name in ("data", "other"):
        view.set_volume_claim(ids.Key(f"default/{name}"), replace(CLAIM, name=name))
    for node in ("a", "b"):
        view.set_volume(f"disk-{node}", local(node, f"disk-{node}"))
    assert affinity.fitting(view, mounting()) == ["a", "b"]
    fly(view, mounting("first", claim="other"), "a")
    assert affinity.fitting(view, mounting()) == ["b"]
    view.set_volume("more", local("a", "more"))
    assert affinity.fitting(view, mounting()) == ["a", "b"]


def test_pods_that_mount_the_same_claim_share_its_volume(view: cluster_state.ClusterState) -> None:
    view.set_storage_class("fast", replace(WAITS, provisioner="kubernetes.io/no-provisioner"))
    view.set_volume_claim(KEY, CLAIM)
    view.set_volume("disk", DISK)
    fly(view, mounting("first"), "a")
    assert affinity.fitting(view, mounting()) == ["a", "b"]


def fly(view: cluster_state.ClusterState, pod: pods.Pod, node: str) -> None:
    view.set_pod(pod.key, pod)
    view.begin_write(snapshot.InFlight(pod, ids.NodeName(node), {}))


def test_a_claim_being_made_for_a_node_keeps_its_pod_there(
    view: cluster_state.ClusterState,
) -> None:
    view.set_volume_claim(KEY, replace(CLAIM, selected=ids.NodeName("b")))
    assert affinity.fitting(view, mounting()) == ["b"]


def test_storage_capacity_counts_where_the_driver_tells_it(
    view: cluster_state.ClusterState,
) -> None:
    view.set_volume_claim(KEY, CLAIM)
    view.set_csi_driver(
        "csi.example.com", storage.CSIDriver("csi.example.com", tracks_capacity=True)
    )
    assert affinity.fitting(view, mounting()) == []
    raw = {
        "metadata": {"name": "k", "namespace": "x"},
        "storageClassName": "fast",
        "capacity": "1Ti",
        "nodeTopology": {"matchLabels": {affinity.ZONE: "west"}},
    }
    view.set_storage_capacity(ids.Key("x/k"), storage.parse_capacity(raw))
    assert affinity.fitting(view, mounting()) == ["b"]


def test_without_any_class_nothing_is_said_of_unbound_claims(
    view: cluster_state.ClusterState,
) -> None:
    """The right to list them may be missing: such a pod would wait for ever."""
    view.set_storage_class("fast", None)
    view.set_volume_claim(KEY, CLAIM)
    assert affinity.fitting(view, mounting()) == ["a", "b"]


def test_a_volume_of_another_zone_is_not_reached(view: cluster_state.ClusterState) -> None:
    view.set_volume_claim(KEY, replace(CLAIM, volume="disk", completed=True))
    view.set_volume("disk", replace(DISK, labels={affinity.ZONE: "west__north"}))
    assert affinity.reasons_of(view, mounting()) == {"a": Reason.NODE_VOLUME}


def test_a_node_takes_so_many_volumes_of_a_driver(view: cluster_state.ClusterState) -> None:
    csi_node = storage.CSINode(
        ids.NodeName("a"), frozenset({"csi.example.com"}), {"csi.example.com": 1}
    )
    view.set_csi_node("a", csi_node)
    for name in ("data", "other"):
        view.set_volume_claim(ids.Key(f"default/{name}"), replace(CLAIM, name=name))
    pod = mounting("there", "other", node="a")
    view.set_pod(pod.key, pod)
    assert affinity.reasons_of(view, mounting()) == {"a": Reason.NODE_VOLUME_LIMIT}
    assert affinity.reasons_of(view, mounting(claim="other")) == {}


def test_a_claim_for_one_pod_alone_is_used_by_one(view: cluster_state.ClusterState) -> None:
    alone = frozenset({volumes.ONE_POD})
    view.set_volume_claim(KEY, replace(CLAIM, modes=alone))
    pod = mounting("there", node="a")
    view.set_pod(pod.key, pod)
    assert {*affinity.reasons_of(view, mounting()).values()} == {Reason.NODE_VOLUME_IN_USE}
    view.set_pod(pod.key, None)
    assert affinity.reasons_of(view, mounting()) == {}


def test_a_disk_that_is_mounted_keeps_others_from_its_node(
    view: cluster_state.ClusterState,
) -> None:
    disk = [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]
    present = affinity.a_pod("there", "a", volumes=disk)
    view.set_pod(present.key, present)
    pod = affinity.a_pod("new", volumes=disk)
    assert affinity.reasons_of(view, pod) == {"a": Reason.NODE_VOLUME_IN_USE}
