import gc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from driver import ids, reasons
from driver.resources.core import volumes
from driver.resources.dra import claims, pools, slices
from driver.scheduling.allocator import candidates, dra_allocator
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.allocation import counts, decide, placed, refused, workload
from tests.support.allocation import devices as device_names
from tests.support.builders import objects, shared_claims


def test_a_claim_for_one_gpu_gets_the_first_free_one() -> None:
    view = snapshots.fleet({"node-a": 8}, snapshots.holding("other", "node-a", "gpu-0"))
    answer = placed(decide(view, objects.claim()))
    assert (answer.node, device_names(answer)) == ("node-a", ["gpu-1"])


def test_pack_fills_the_node_that_is_in_use_before_a_fresh_one() -> None:
    view = snapshots.fleet(
        {"node-a": 8, "node-b": 8}, snapshots.holding("other", "node-b", "gpu-0")
    )
    assert placed(decide(view, objects.claim())).node == "node-b"


def test_equal_nodes_are_chosen_by_the_lowest_name() -> None:
    assert (
        placed(decide(snapshots.fleet({"node-b": 8, "node-a": 8}), objects.claim())).node
        == "node-a"
    )


def test_a_claim_for_eight_gets_eight_different_ones() -> None:
    claim = objects.claim("claim", objects.a_request(count=8))
    answer = placed(decide(snapshots.fleet({"node-a": 8}), claim))
    assert sorted(device_names(answer)) == [f"gpu-{i}" for i in range(8)]


def test_a_claim_for_nine_says_per_node_how_many_fit_and_what_was_lacking() -> None:
    view = snapshots.fleet(
        {"node-a": 8, "node-b": 8}, snapshots.holding("x", "node-b", "gpu-0", "gpu-1")
    )
    answer = refused(decide(view, objects.claim("claim", objects.a_request(count=9))))
    assert allocator_messages.unschedulable(answer) == (
        "No node fits. node-a: 8 of 9 devices fit, 1 lacking; "
        "node-b: 6 of 9 devices fit, 3 lacking (2 DeviceInUse)"
    )


def test_two_claims_of_one_pod_land_on_one_node_with_different_gpus() -> None:
    view = snapshots.fleet({"node-a": 1, "node-b": 2})
    answer = placed(decide(view, objects.claim("one"), objects.claim("two")))
    assert answer.node == "node-b"
    assert len(set(device_names(answer))) == 2


def test_a_request_with_a_choice_makes_room_for_one_without() -> None:
    only_zero = 'device.attributes["gpu.ration.dev"].uuid == "GPU-gpu-0"'
    claim = objects.claim("c", objects.a_request("any"), objects.a_request("this", 1, only_zero))
    answer = placed(decide(snapshots.fleet({"node-a": 2}), claim))
    assert device_names(answer) == ["gpu-1", "gpu-0"]


def test_allocation_mode_all_takes_every_gpu_of_a_free_node() -> None:
    claim = objects.claim("c", objects.a_request(allocationMode="All"))
    view = snapshots.fleet({"node-a": 2, "node-b": 3}, snapshots.holding("x", "node-b", "gpu-0"))
    answer = placed(decide(view, claim))
    assert (answer.node, len(answer.assignments)) == ("node-a", 2)


def test_a_missing_class_blocks_on_every_node() -> None:
    claim = objects.claim("c", objects.a_request(deviceClassName="nope"))
    answer = refused(decide(snapshots.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.DEVICE_CLASS_NOT_FOUND
    assert "names class nope" in allocator_messages.unschedulable(answer)


def test_a_selector_that_does_not_compile_is_told_with_its_words() -> None:
    claim = objects.claim("c", objects.a_request("gpu", 1, "device.driver =="))
    answer = refused(decide(snapshots.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.SELECTOR_INVALID
    assert "request gpu" in answer.detail
    assert "Syntax error" in answer.detail


def test_an_expression_that_is_not_provided_means_not_allocated() -> None:
    text = "device == device"
    answer = refused(
        decide(
            snapshots.fleet({"node-a": 8}), objects.claim("c", objects.a_request("gpu", 1, text))
        )
    )
    assert answer.blocker is reasons.Reason.SELECTOR_INVALID
    assert "as a value" in answer.detail


def test_a_selector_that_fails_on_a_device_ends_the_search_on_its_node() -> None:
    text = 'device.attributes["gpu.ration.dev"].nope == "x"'
    claim = objects.claim("c", objects.a_request("gpu", 1, text))
    answer = refused(decide(snapshots.fleet({"node-a": 2}), claim))
    assert allocator_messages.unschedulable(answer).startswith(
        "No node fits. node-a: AllocatorError (gpu-0: "
    )


def test_an_unknown_field_of_opaque_configuration_is_refused_before_it_is_written() -> None:
    parameters = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "GpuConfig", "shape": "x"}
    config = [{"opaque": {"driver": snapshots.DRIVER, "parameters": parameters}}]
    answer = refused(decide(snapshots.fleet({"node-a": 8}), objects.claim("c", config=config)))
    assert answer.blocker is reasons.Reason.CONFIG_INVALID
    assert "shape: is not a field; expected one of apiVersion, crossNamespace" in answer.detail


def test_configuration_of_another_driver_is_not_read() -> None:
    config = [{"opaque": {"driver": "nic.example.com", "parameters": {"any": "thing"}}}]
    placed(decide(snapshots.fleet({"node-a": 8}), objects.claim("c", config=config)))


def test_unsupported_fields_are_refused() -> None:
    derived = [{"name": "gpu.ration.dev/big", "expression": "true"}]
    claim = objects.claim("c", objects.a_request(derivedAttributes=derived))
    answer = refused(decide(snapshots.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.NOT_SUPPORTED
    assert "gpu.derivedAttributes" in answer.detail


def test_admin_access_is_given_on_gpus_in_use_whatever_they_draw() -> None:
    sets = {"gpu-0": {"slots": "4"}}
    gpu = objects.drawing("gpu-0", "gpu-0", slots="4")
    busy = snapshots.view(
        *objects.counting(sets, [gpu]), taken=[snapshots.holding("user", "node-a", "gpu-0")]
    )
    look = objects.claim("look", objects.a_request(adminAccess=True, allocationMode="All"))
    assert device_names(decide(busy, look)) == ["gpu-0"]
    work = objects.claim("work", objects.a_request())
    assert device_names(decide(snapshots.view(*objects.counting(sets, [gpu])), look, work)) == [
        "gpu-0",
        "gpu-0",
    ]


def test_more_than_thirty_two_devices_are_refused_at_once() -> None:
    claim = objects.claim("c", objects.a_request(count=33))
    answer = refused(decide(snapshots.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.TOO_MANY_DEVICES


def test_a_device_with_an_untolerated_taint_is_left_alone() -> None:
    sick = objects.a_device("gpu-0")
    sick["taints"] = [*sick["taints"], {"key": "ration.dev/xid", "effect": "NoSchedule"}]
    view = cluster_state.build(
        snapshots.DRIVER,
        snapshots.caches([objects.node()], [slices.parse(objects.a_slice("node-a", [sick]))]),
    )
    assert counts(decide(view, objects.claim())) == {reasons.Reason.DEVICE_TAINTED: 1}
    tolerant = objects.a_request(tolerations=[{"key": "ration.dev/xid", "operator": "Exists"}])
    assert placed(decide(view, objects.claim("c", tolerant))).assignments


def test_a_device_without_the_stored_taint_is_kube_schedulers() -> None:
    bare = objects.a_device("gpu-0")
    del bare["taints"]
    view = cluster_state.build(
        snapshots.DRIVER,
        snapshots.caches([objects.node()], [slices.parse(objects.a_slice("node-a", [bare]))]),
    )
    assert counts(decide(view, objects.claim())) == {reasons.Reason.DEVICE_NOT_MANAGED: 1}


def test_a_capacity_request_filters_devices_that_are_not_shared() -> None:
    def asking(amount: str) -> claims.Claim:
        return objects.claim("c", objects.a_request(capacity={"requests": {"memory": amount}}))

    view = snapshots.fleet({"node-a": 1})
    assert placed(decide(view, asking("80Gi"))).assignments
    assert counts(decide(view, asking("81Gi"))) == {reasons.Reason.INSUFFICIENT_CAPACITY: 1}


def test_an_incomplete_pool_is_not_used() -> None:
    part = slices.parse(objects.a_slice("node-a", 8, resourceSliceCount=2))
    view = cluster_state.build(snapshots.DRIVER, snapshots.caches([objects.node()], [part]))
    assert counts(decide(view, objects.claim())) == {reasons.Reason.POOL_INCOMPLETE: 8}


def test_a_recently_refused_node_is_skipped_with_its_message() -> None:
    workload = allocator_types.Workload(
        objects.pod(), (objects.claim(),), avoided_nodes={objects.node().name: "Insufficient foo"}
    )
    answer = refused(
        dra_allocator.allocate(snapshots.fleet({"node-a": 8}), workload, snapshots.DECIDING)
    )
    assert (
        allocator_messages.unschedulable(answer)
        == "No node fits. node-a: NodeBackedOff (Insufficient foo)"
    )


def test_nodes_that_answer_alike_are_told_together() -> None:
    view = snapshots.fleet({f"node-{i}": 1 for i in range(12)})
    answer = refused(decide(view, objects.claim("c", objects.a_request(count=2))))
    assert "and 4 more: 1 of 2 devices fit, 1 lacking" in allocator_messages.unschedulable(answer)


def test_the_search_takes_a_step_a_device_at_most_for_plain_requests() -> None:
    view = snapshots.fleet({"node-a": 8})
    answer = placed(decide(view, objects.claim("c", objects.a_request(count=8))))
    assert answer.steps <= 8 * 8


def a_gpu_with_faces(*taken: str) -> snapshot.Snapshot:
    """One GPU, whole and time-sliced, of one counter set; `taken` faces are claims'."""

    def face(name: str, kind: str, **more: object) -> objects.Raw:
        use = [{"counterSet": "gpu-0", "counters": {"gpu": {"value": "1"}}}]
        device = objects.a_device(name, consumesCounters=use, **more)
        device["attributes"]["type"] = {"string": kind}
        return device

    devices = objects.a_slice(
        "node-a",
        [face("gpu-0", "gpu"), face("gpu-0-ts", "gpu-share", allowMultipleAllocations=True)],
        resourceSliceCount=2,
        part=1,
    )
    counters = objects.a_slice("node-a", [], resourceSliceCount=2)
    counters["spec"]["sharedCounters"] = [{"name": "gpu-0", "counters": {"gpu": {"value": "1"}}}]
    return cluster_state.build(
        snapshots.DRIVER,
        snapshots.caches(
            [objects.node()],
            [slices.parse(counters), slices.parse(devices)],
            [snapshots.holding("other", "node-a", *taken)] if taken else (),
            found_classes=[
                objects.device_class(),
                objects.device_class("any", f'device.driver == "{snapshots.DRIVER}"'),
            ],
        ),
    )


def test_a_whole_gpu_is_not_given_while_another_face_of_it_is_in_use() -> None:
    assert placed(decide(a_gpu_with_faces(), objects.claim())).assignments
    answer = decide(a_gpu_with_faces("gpu-0-ts"), objects.claim())
    assert counts(answer)[reasons.Reason.COUNTERS_EXHAUSTED] == 1


def all_of(**body: Any) -> claims.Claim:
    return objects.claim("c", objects.a_request(allocationMode="All", **body))


def test_all_is_refused_while_one_of_them_is_in_use() -> None:
    view = snapshots.fleet({"node-a": 2}, snapshots.holding("x", "node-a", "gpu-1"))
    assert allocator_messages.unschedulable(refused(decide(view, all_of()))) == (
        "No node fits. node-a: 1 of 2 devices fit, 1 lacking (1 DeviceInUse)"
    )


def test_an_administrator_gets_all_in_use_or_not() -> None:
    view = snapshots.fleet({"node-a": 2}, snapshots.holding("x", "node-a", "gpu-1"))
    answer = placed(decide(view, all_of(adminAccess=True)))
    assert [pick.result.admin_access for pick in answer.assignments] == [True, True]


def test_an_administrators_claim_takes_nothing_from_others() -> None:
    watching = snapshots.holding("watch", "node-a", {"device": "gpu-0", "adminAccess": True})
    assert device_names(decide(snapshots.fleet({"node-a": 1}, watching), objects.claim())) == [
        "gpu-0"
    ]


def test_a_pod_goes_where_its_settled_claim_is() -> None:
    settled = snapshots.holding("settled", "node-b", "gpu-0")
    view = snapshots.fleet({"node-a": 2, "node-b": 2}, settled)
    pod = objects.pod("pod", "settled", "open")
    workload = allocator_types.Workload(pod, (objects.claim("open"),), allocated_claims=(settled,))
    assert placed(dra_allocator.allocate(view, workload, snapshots.DECIDING)).node == "node-b"
    full = snapshots.fleet({"node-a": 2, "node-b": 1}, settled)
    assert allocator_messages.unschedulable(
        refused(dra_allocator.allocate(full, workload, snapshots.DECIDING))
    ) == (
        "No node fits. node-a: NodePinned (claim default/settled is allocated elsewhere); "
        "node-b: 0 of 1 devices fit, 1 lacking (1 DeviceInUse)"
    )


def test_each_claim_of_a_pod_gets_at_most_thirty_two_devices() -> None:
    view = snapshots.fleet({"node-a": 80})
    full = [objects.claim(name, objects.a_request(count=32)) for name in ("one", "two")]
    assert len(placed(decide(view, *full)).assignments) == 64
    fewer = objects.first_available("more", objects.a_way("eight", 8), objects.a_way("two", 2))
    claim = objects.claim("c", objects.a_request("gpu", 30), fewer)
    requests = [pick.result.request for pick in placed(decide(view, claim)).assignments]
    assert requests == ["gpu"] * 30 + ["more/two"] * 2


def test_a_node_where_the_first_alternative_is_to_be_had_goes_first() -> None:
    view = snapshots.fleet({"node-a": 1, "node-b": 4})
    several = objects.first_available("gpu", objects.a_way("two", 2), objects.a_way("one"))
    answer = placed(decide(view, objects.claim("c", several)))
    assert (answer.node, len(answer.assignments)) == ("node-b", 2)


def test_a_node_that_is_backed_off_is_told_beside_those_that_do_not_fit() -> None:
    view = snapshots.fleet({"node-a": 1, "node-b": 2})
    claim = objects.claim("c", objects.a_request(count=2))
    avoid = {ids.NodeName("node-b"): "Insufficient foo", ids.NodeName("node-a"): "Insufficient bar"}
    workload = allocator_types.Workload(objects.pod("pod", "c"), (claim,), avoided_nodes=avoid)
    assert allocator_messages.unschedulable(
        refused(dra_allocator.allocate(view, workload, snapshots.DECIDING))
    ) == (
        "No node fits. node-a: 1 of 2 devices fit, 1 lacking; "
        "node-b: NodeBackedOff (Insufficient foo)"
    )


class Watched(cluster_state.ClusterState):
    """It notes which nodes were looked at."""

    def __init__(self) -> None:
        super().__init__(snapshots.DRIVER)
        self.looked: set[str] = set()

    def reachable_pools(self, node: ids.NodeName) -> Sequence[pools.NodePool]:
        self.looked.add(node)
        return super().reachable_pools(node)


def test_a_cached_decision_evaluates_only_changed_nodes() -> None:
    view = Watched()
    view.set_device_class("gpu.ration.dev", objects.device_class())
    for node in map(objects.node, ("node-a", "node-b", "node-c")):
        parsed_slice = objects.a_parsed_slice(node.name, 2)
        view.set_node(node.name, node)
        view.set_slice(parsed_slice.name, parsed_slice)
    allocator = dra_allocator.Allocator(snapshots.DECIDING)
    workload = allocator_types.Workload(objects.pod(), (objects.claim(),))
    assert placed(allocator.decide(view, workload)).node == "node-a"
    assert view.looked == {"node-a", "node-b", "node-c"}
    view.looked.clear()
    taken = snapshots.holding("other", "node-b", "gpu-0")
    view.set_claim(taken.key, taken)
    assert placed(allocator.decide(view, workload)).node == "node-b"
    assert view.looked == {"node-b"}


def a_picky_node() -> cluster_state.ClusterState:
    """One that a plain tolerant pod fits, and others do not."""
    results = [objects.a_share_device("mps", shared_claims.MPS), objects.a_device("gpu-0")]
    view = snapshots.view(objects.a_slice("node-a", results))
    node = ids.NodeName("node-a")
    view.set_node(node, objects.node(node, taints=[{"key": "team", "effect": "NoSchedule"}]))
    ports = [{"name": "main", "ports": [{"hostPort": 80}]}]
    other = objects.pod("other", nodeName=node, containers=ports)
    view.set_pod(other.key, other)
    view.set_volume_claim(ids.Key("default/data"), volumes.VolumeClaim("disk"))
    present = {"nodeAffinity": {"required": objects.on_host("node-b")}}
    view.set_volume("disk", volumes.parse_volume({"spec": present}))
    return view


NOT_NODE_A = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-a"]}
AFFINITY = {"nodeSelectorTerms": [{"matchExpressions": [NOT_NODE_A]}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": []},
        {"nodeSelector": {"rack": "r1"}},
        {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": AFFINITY}
            }
        },
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]},
        {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
        {"containers": shared_claims.containers(("share", "whole"))},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
    ],
    ids=["tolerations", "labels", "affinity", "cpu", "port", "containers", "volume"],
)
def test_pods_that_a_node_can_tell_apart_have_each_its_own_answer(spec: dict[str, Any]) -> None:
    view, allocator = a_picky_node(), dra_allocator.Allocator(snapshots.DECIDING)
    values = (objects.claim("share", shared_claims.part()), objects.claim("whole"))
    tolerant = {
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "containers": [{"name": "c"}],
    }
    plain, other = (
        allocator_types.Workload(
            objects.pod("pod", "share", "whole", **{**tolerant, **more}), values
        )
        for more in ({}, spec)
    )
    assert device_names(allocator.decide(view, plain)) == ["mps", "gpu-0"]
    answer = refused(allocator.decide(view, other))
    assert answer == dra_allocator.allocate(view, other, snapshots.DECIDING)


def test_without_a_node_that_shows_our_devices_there_is_nobody_to_refuse() -> None:
    nics = [objects.a_device("nic-0", taints=[])]
    view = snapshots.view(objects.a_slice("node-a", nics, "nic.example.com"))
    answer = refused(decide(view, objects.claim()))
    text = "No node publishes devices that the controller allocates"
    assert allocator_messages.unschedulable(answer) == text


def test_a_device_that_every_node_reaches_leaves_the_pod_free_to_go_anywhere() -> None:
    nodes = [objects.node(name) for name in ("node-a", "node-b")]
    view = snapshots.view(objects.a_far_slice(2), more_nodes=nodes)
    answer = placed(decide(view, objects.claim("c", objects.a_request(count=2))))
    assert (answer.node, device_names(answer)) == ("node-a", ["gpu-0", "gpu-1"])
    assert [pick.reach.everywhere for pick in answer.assignments] == [True, True]


def test_the_number_of_cached_signatures_is_bounded() -> None:
    allocator = dra_allocator.Allocator(snapshots.DECIDING)
    view = snapshots.fleet({"node-a": 8})
    for number in range(300):
        tolerations = [{"key": f"example.com/{number}", "operator": "Exists"}]
        request = workload(objects.claim(), tolerations=tolerations)
        placed(allocator.decide(view, request))
    assert allocator.cached_shapes == 256


def test_the_device_cache_of_a_small_cluster_is_bounded() -> None:
    allocator = dra_allocator.Allocator(snapshots.DECIDING)
    view = snapshots.fleet({"node-a": 8})
    previous = held()
    for number in range(1300):
        claim = objects.claim("c", objects.a_request(f"gpu-{number}"))
        placed(allocator.decide(view, workload(claim)))
    assert (held() - previous)[candidates.NodeDevice] <= 2_000


def test_cached_results_of_cluster_states_are_bounded() -> None:
    allocator = dra_allocator.Allocator(snapshots.DECIDING)
    view = snapshots.view(objects.a_slice("node-a", 8))
    previous = held()
    for state in range(255):
        used = [f"gpu-{index}" for index in range(8) if state >> index & 1]
        other = snapshots.holding("other", "node-a", *used)
        view.set_claim(other.key, other)
        for name in ("one", "two"):
            claim = objects.claim("c", objects.a_request(name))
            placed(allocator.decide(view, workload(claim)))
    assert (held() - previous)[node_result.NodeSignature] <= 257


def held() -> Counter[type[object]]:
    gc.collect()
    return Counter(type(obj) for obj in gc.get_objects() if isinstance(obj, tuple))


def test_a_prepared_allocator_decides_as_one_that_is_not() -> None:
    view = snapshots.fleet({"node-a": 2, "node-b": 3})
    prepared = dra_allocator.Allocator(snapshots.DECIDING)
    prepared.prepare(view)
    for count in (1, 3, 4):
        request = workload(objects.claim("c", objects.a_request("gpu", count)))
        expected = dra_allocator.allocate(view, request, snapshots.DECIDING)
        assert prepared.decide(view, request) == expected
