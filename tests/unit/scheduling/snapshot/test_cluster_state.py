from driver import ids
from driver.resources.core import namespaces, nodes, volumes
from driver.resources.dra import claims, slices, taint_rules
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.builders import objects

A, B = ids.NodeName("node-a"), ids.NodeName("node-b")


def two_nodes(*more: objects.Raw) -> cluster_state.ClusterState:
    return snapshots.view(objects.a_slice("node-a", 2), objects.a_slice("node-b", 2), *more)


def changed(view: cluster_state.ClusterState, mark: int) -> set[ids.NodeName] | None:
    """The nodes that changed since; None: any may have."""
    changed_value = view.changed_since(mark)
    return None if changed_value is None else {*changed_value[1]}


def put_claim(view: cluster_state.ClusterState, claim: claims.Claim) -> None:
    view.set_claim(claim.key, claim)


def holders(view: cluster_state.ClusterState, device: str) -> list[str]:
    return [
        holder.claim for holder in view.holders(claims.DeviceId(snapshots.DRIVER, "node-a", device))
    ]


def flight(name: str = "pod", node: ids.NodeName = A) -> snapshot.InFlight:
    claim = snapshots.holding("claim", node, "gpu-0")
    assert claim.allocation is not None
    return snapshot.InFlight(objects.pod(name), node, {claim.key: claim.allocation})


def test_a_claim_concerns_the_nodes_that_reach_its_devices() -> None:
    view = two_nodes()
    mark = view.revision
    put_claim(view, snapshots.holding("x", "node-a", "gpu-0"))
    assert changed(view, mark) == {A}
    assert holders(view, "gpu-0") == ["default/x"]
    assert changed(view, view.revision) == set()


def test_a_claim_of_a_device_in_the_network_concerns_every_node() -> None:
    view = two_nodes(objects.a_far_slice(1))
    mark = view.revision
    put_claim(view, snapshots.holding("x", "fabric", "gpu-0"))
    assert changed(view, mark) is None


def test_a_slice_concerns_its_node_and_changes_the_world() -> None:
    view = two_nodes()
    mark, world = view.revision, view.generation
    parsed = slices.parse(objects.a_slice("node-b", 3))
    view.set_slice(parsed.name, parsed)
    assert changed(view, mark) == {B}
    assert view.generation != world
    assert [len(share.slices[0][1]) for share in view.reachable_pools(B)] == [3]


def test_a_slice_that_moves_concerns_both_nodes() -> None:
    view = two_nodes()
    mark = view.revision
    moved = objects.a_slice("node-b", 1)
    moved["metadata"]["name"] = objects.a_slice("node-a")["metadata"]["name"]
    view.set_slice(moved["metadata"]["name"], slices.parse(moved))
    assert changed(view, mark) == {A, B}
    assert view.reachable_pools(A) == ()


def test_an_object_that_says_the_same_changes_nothing() -> None:
    view = two_nodes()
    put_claim(view, snapshots.holding("x", "node-a", "gpu-0"))
    mark, world = view.revision, view.generation
    view.set_node(A, objects.node("node-a"))
    parsed = slices.parse(objects.a_slice("node-a", 2))
    view.set_slice(parsed.name, parsed)
    put_claim(view, snapshots.holding("x", "node-a", "gpu-0"))
    assert (changed(view, mark), view.generation) == (set(), world)


def test_a_class_concerns_every_node_and_changes_the_world() -> None:
    view = two_nodes()
    mark, world = view.revision, view.generation
    view.set_device_class("new", objects.device_class("new"))
    assert (changed(view, mark), view.generation) == (None, world + 1)


def test_a_rule_concerns_the_nodes_of_the_pools_that_it_may_taint() -> None:
    view = two_nodes()
    mark, world = view.revision, view.generation
    taint = slices.Taint("sick", "", "NoSchedule")
    rule = taint_rules.TaintRule("r", taint, selects=True, pool="node-a")
    view.set_taint_rule("r", rule)
    assert (changed(view, mark), view.generation) == ({A}, world + 1)
    mark = view.revision
    view.set_taint_rule("r", rule)
    assert (changed(view, mark), view.generation) == (set(), world + 1)
    view.set_taint_rule("other", taint_rules.TaintRule("other", taint, selects=True))
    assert (changed(view, mark), view.generation) == ({A, B}, world + 2)
    (share,) = view.reachable_pools(A)
    assert {
        taint.key for _, devices in share.slices for device in devices for taint in device.taints
    } >= {"sick"}


def test_a_node_concerns_itself() -> None:
    view = two_nodes()
    mark, world = view.revision, view.generation
    view.set_node(A, objects.node("node-a", unschedulable=True))
    assert (changed(view, mark), view.generation) == ({A}, world)
    view.set_node(A, None)
    assert [*view.nodes] == [B]


def test_a_node_whose_labels_change_reaches_other_devices() -> None:
    entry = {"key": "rack", "operator": "Exists"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [entry]}]}
    view = two_nodes(objects.a_far_slice(1, nodeSelector=terms))
    assert [share.pool.name for share in view.reachable_pools(A)] == ["node-a"]
    raw = objects.a_node("node-a")
    raw["metadata"]["labels"]["rack"] = "r1"
    view.set_node(A, nodes.parse(raw))
    assert [share.pool.name for share in view.reachable_pools(A)] == ["fabric", "node-a"]


def test_pods_concern_the_nodes_that_they_come_to_and_leave() -> None:
    view = two_nodes()
    mark = view.revision
    pod = objects.pod("p", nodeName="node-a")
    view.set_pod(pod.key, pod)
    assert (changed(view, mark), view.usage[A].pod_count) == ({A}, 1)


def test_a_volume_is_a_change_that_no_node_is_asked_again_for() -> None:
    view = two_nodes()
    mark, stored = view.revision, view.storage.revision
    view.set_volume("disk", volumes.Volume(name="disk"))
    view.set_volume_claim(ids.Key("default/data"), volumes.VolumeClaim("disk"))
    assert view.revision != mark
    assert view.storage.revision != stored
    assert not (changed(view, mark) or set()) & {*view.nodes}
    assert [*view.storage.claims] == ["default/data"]


def test_a_namespace_is_a_change_that_no_node_is_asked_again_for() -> None:
    view, team = two_nodes(), namespaces.Namespace("default", {"team": "x"})
    mark = view.revision
    view.set_namespace("default", team)
    assert view.revision != mark
    assert changed(view, mark) == {""}
    mark = view.revision
    view.set_namespace("default", team)
    assert view.revision == mark


def test_a_decision_in_flight_gives_its_devices_and_loads_its_node() -> None:
    view = two_nodes()
    pod = objects.pod()
    view.set_pod(pod.key, pod)
    mark = view.revision
    view.begin_write(flight())
    assert (holders(view, "gpu-0"), view.usage[A].pod_count) == (["default/claim"], 1)
    assert changed(view, mark) == {A}
    view.end_write(flight())
    assert (holders(view, "gpu-0"), dict(view.usage)) == ([], {})


def test_a_decision_that_lands_leaves_what_the_caches_say_by_then() -> None:
    view = two_nodes()
    view.begin_write(flight())
    put_claim(view, snapshots.holding("claim", "node-a", "gpu-1"))
    assert holders(view, "gpu-0") == ["default/claim"]
    view.end_write(flight())
    assert (holders(view, "gpu-0"), holders(view, "gpu-1")) == ([], ["default/claim"])


def test_counters_left_follow_the_claims() -> None:
    parts = [objects.drawing(f"part-{index}", "gpu-0", slots="1") for index in range(2)]
    view = snapshots.view(*objects.counting({"gpu-0": {"slots": "4"}}, parts))
    (pool,) = view.pools.values()
    assert view.remaining_counters(pool)["gpu-0", "slots"] == 4 * 10**9
    put_claim(view, snapshots.holding("x", "node-a", "part-0"))
    assert view.remaining_counters(pool)["gpu-0", "slots"] == 3 * 10**9
    view.set_claim(ids.Key("default/x"), None)
    assert view.remaining_counters(pool)["gpu-0", "slots"] == 4 * 10**9


def test_a_log_that_grows_too_long_is_forgotten() -> None:
    view = two_nodes()
    cordoned = [objects.node("node-a", unschedulable=bool(entry)) for entry in (1, 0)]
    mark = view.revision
    for index in range(1 << 15):
        view.set_node(A, cordoned[index % 2])
    assert changed(view, mark) == {A}
    view.set_node(A, cordoned[0])
    assert changed(view, mark) is None


def test_a_bulk_build_includes_in_flight_decisions() -> None:
    caches = snapshots.caches(
        [objects.node()], [objects.a_parsed_slice()], found_pods=[objects.pod()]
    )
    view = cluster_state.build(snapshots.DRIVER, caches, [flight()])
    assert view.usage[A].pod_count == 1
    assert view.driver == snapshots.DRIVER
    assert view.holders(claims.DeviceId(snapshots.DRIVER, "node-a", "gpu-0"))
