from dataclasses import replace

import pytest

from driver import errors, ids, reasons
from driver.scheduling.allocator import allocation_result
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import messages as gang_messages
from driver.scheduling.gangs import topology
from tests.support import snapshots
from tests.support.builders import gangs, objects

TWO_RACKS = [[[4, 4], [4, 4]]]
NIC = "nic.example.com"


def on(node: str) -> dict[str, str]:
    """Return the nodeSelector of one node."""
    return {"kubernetes.io/hostname": node}


def beside_nics(member: allocator_types.Workload, count: int) -> allocator_types.Workload:
    """Return a member with a claim for NICs too, which kube-scheduler allocates."""
    request = objects.a_request("nic", count, deviceClassName="nic")
    nics = objects.claim(f"{member.pod.name}-nic", request)
    return replace(member, scheduler_claims=(nics,))


def test_all_members_get_places_in_the_order_given() -> None:
    answer = gangs.seated(gangs.place(gangs.racks([[[2, 2]]]), gangs.alike(4)))
    assert [member.workload.pod.name for member in answer.members] == [
        f"worker-{index:03}" for index in range(4)
    ]
    assert (
        len({pick.device for placement in answer.placements for pick in placement.assignments}) == 4
    )


def test_a_gang_of_none_has_its_places() -> None:
    assert gangs.seated(gangs.place(gangs.racks(TWO_RACKS), [])).members == ()


def test_a_gang_is_placed_all_or_nothing() -> None:
    answer = gangs.unseated(gangs.place(gangs.racks([[[2, 2]]]), gangs.alike(5)))
    (domain_shortage,) = answer.shortages
    assert (domain_shortage.fits, answer.requested) == (4, 5)
    (refusal,) = domain_shortage.rejections
    assert dict(refusal.device_reasons) == {reasons.Reason.DEVICE_IN_USE: 2}


def test_a_required_level_is_never_left() -> None:
    view = gangs.racks(TWO_RACKS)
    assert len(gangs.domains(view, gangs.place(view, gangs.alike(8), gangs.RACK), 2)) == 1
    answer = gangs.unseated(gangs.place(view, gangs.alike(9), gangs.RACK))
    assert [(shortage.domain, shortage.fits) for shortage in answer.shortages] == [
        (("b0", "r0"), 8),
        (("b0", "r1"), 8),
    ]


def test_a_preferred_level_is_left_where_it_has_to_be() -> None:
    view = gangs.racks([*TWO_RACKS, [[8]]])
    answer = gangs.place(view, gangs.alike(9), gangs.BLOCK, gangs.RACK)
    assert gangs.seated(answer).domain == ("b0",)
    answer = gangs.place(view, gangs.alike(17), preferred=gangs.RACK)
    assert gangs.seated(answer).domain == ()
    assert len(gangs.domains(view, answer, 2)) == 3


def test_the_finest_level_comes_before_fewer_nodes() -> None:
    view = gangs.racks([[[2, 2], [3]], [[3], [3]]])
    assert gangs.where(gangs.place(view, gangs.alike(4), preferred=gangs.RACK)) == {
        "node-0-0-0": 2,
        "node-0-0-1": 2,
    }


def test_the_domain_with_fewest_nodes_then_least_capacity_wins() -> None:
    view = gangs.racks([[[2, 2], [8], [4]]])
    assert gangs.where(gangs.place(view, gangs.alike(4), gangs.RACK)) == {"node-0-2-0": 4}


def test_the_last_ones_go_where_they_leave_the_least_room() -> None:
    view = gangs.racks([[[8, 8, 2]]])
    assert gangs.where(gangs.place(view, gangs.alike(10))) == {"node-0-0-0": 8, "node-0-0-2": 2}


def test_equal_nodes_are_taken_by_name() -> None:
    view = gangs.racks([[[2, 2, 2]]])
    assert [*gangs.where(gangs.place(view, gangs.alike(4)))] == ["node-0-0-0", "node-0-0-1"]


def test_racks_of_one_name_in_two_blocks_are_two_racks() -> None:
    view = gangs.racks([[[2]], [[2]]])
    gangs.unseated(gangs.place(view, gangs.alike(4), gangs.RACK))


def test_a_node_without_a_required_label_is_left_out_and_counted() -> None:
    nodes = [gangs.node("node-a", "b0", "r0"), gangs.node("node-b", None, "r0")]
    view = gangs.world({"node-a": 2, "node-b": 2}, nodes)
    answer = gangs.unseated(gangs.place(view, gangs.alike(4), gangs.RACK))
    assert answer.unlabelled == ("node-b",)


def test_a_node_without_a_preferred_label_is_near_nobody() -> None:
    nodes = [gangs.node(name) for name in ("node-a", "node-b")]
    nodes += [gangs.node(name, "b0", "r0") for name in ("node-c", "node-d")]
    view = gangs.world({f"node-{name}": 2 for name in "abcd"}, nodes)
    answer = gangs.place(view, gangs.alike(4), preferred=gangs.RACK)
    assert gangs.where(answer) == {"node-c": 2, "node-d": 2}


@pytest.mark.parametrize("gpus", [0, 1, 4])
def test_a_leader_that_differs_sits_with_its_workers(gpus: int) -> None:
    view = gangs.racks([[[4, 4], [8, 4]]])
    gang = [gangs.member("leader", gpus, cpu="4"), *gangs.alike(8)]
    answer = gangs.place(view, gang, gangs.RACK)
    assert gangs.seated(answer).domain == ("b0", "r1")
    assert len(gangs.seated(answer).placements[0].assignments) == gpus


def test_a_leader_without_gpus_may_sit_on_a_node_without_any() -> None:
    nodes = [gangs.node("node-a", "b0", "r0", cpu="2"), gangs.node("node-z", "b0", "r0")]
    view = gangs.world({"node-a": 2}, nodes)
    answer = gangs.place(view, [gangs.member("leader", 0, "4"), *gangs.alike(2)], gangs.RACK)
    assert [placement.node for placement in gangs.seated(answer).placements] == [
        "node-z",
        "node-a",
        "node-a",
    ]


def test_the_most_constrained_member_is_placed_first() -> None:
    view = gangs.racks([[[2, 2]]])
    only = {"kubernetes.io/hostname": "node-0-0-0"}
    gang = [*gangs.alike(2), gangs.member("bound", 2, nodeSelector=only)]
    assert gangs.where(gangs.place(view, gang)) == {"node-0-0-0": 1, "node-0-0-1": 2}


def test_cpus_limit_how_many_a_node_takes() -> None:
    view = gangs.world({"node-a": 8}, [gangs.node("node-a", cpu="3")])
    answer = gangs.unseated(gangs.place(view, gangs.alike(4)))
    (refusal,) = answer.shortages[0].rejections
    assert (answer.shortages[0].fits, refusal.node_reason) == (3, reasons.Reason.NODE_FULL)


def test_nodes_to_be_avoided_are_avoided() -> None:
    view = gangs.racks([[[2, 4]]])
    gang = [
        replace(workload, avoided_nodes={ids.NodeName("node-0-0-0"): "left"})
        for workload in gangs.alike(2)
    ]
    assert gangs.where(gangs.place(view, gang)) == {"node-0-0-1": 2}


def test_a_claim_of_two_members_is_given_once_and_both_sit_where_it_is() -> None:
    view = gangs.racks([[[1, 1]]])
    first = gangs.member("one")
    gang = [first, replace(first, pod=replace(first.pod, name="two", uid=ids.PodUid("two")))]
    answer = gangs.seated(gangs.place(view, gang))
    assert gangs.where(answer) == {"node-0-0-0": 2}
    allocations = [
        allocation_result.build_allocations(view, member.workload, member.placement, "")
        for member in answer.members
    ]
    assert [len(allocation) for allocation in allocations] == [1, 0]


def test_devices_that_several_nodes_reach_are_given_once() -> None:
    view = snapshots.view(
        objects.a_far_slice(3), more_nodes=[gangs.node("node-a"), gangs.node("node-b")]
    )
    assert sum(gangs.where(gangs.place(view, gangs.alike(3))).values()) == 3
    answer = gangs.unseated(gangs.place(view, gangs.alike(4)))
    assert answer.shortages[0].fits == 3


def test_devices_that_a_leader_took_from_afar_are_not_counted_for_its_workers() -> None:
    nodes = [gangs.node(name) for name in ("node-a", "node-c", "node-z")]
    view = snapshots.view(objects.a_far_slice(2), objects.a_slice("node-z", 2), more_nodes=nodes)
    gang = [gangs.member("leader", 2, nodeSelector=on("node-a")), *gangs.alike(2)]
    assert gangs.where(gangs.place(view, gang)) == {"node-a": 1, "node-z": 2}


def test_devices_that_kube_scheduler_will_take_from_afar_are_not_counted_twice() -> None:
    names_of_nodes = ("node-a", "node-c", "node-z")
    nics = [objects.a_device(f"nic-{i}", taints=[]) for i in range(2)]
    far = objects.a_far_slice(nics)
    far["spec"]["driver"] = NIC
    view = snapshots.view(
        far,
        objects.a_slice("node-z", nics, NIC),
        *(objects.a_slice(name, 4) for name in names_of_nodes),
        found_classes=[objects.device_class("nic", f'device.driver == "{NIC}"')],
        more_nodes=[gangs.node(name) for name in names_of_nodes],
    )
    leader = beside_nics(gangs.member("leader", nodeSelector=on("node-a")), 2)
    workers = [beside_nics(worker, 1) for worker in gangs.alike(2)]
    assert gangs.where(gangs.place(view, [leader, *workers])) == {"node-a": 1, "node-z": 2}


def test_a_claim_of_kube_scheduler_that_two_members_share_is_counted_once() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", 2),
        objects.a_slice("node-b", 2),
        objects.a_slice("node-a", [objects.a_device("nic-0", taints=[])], NIC),
        found_classes=[objects.device_class("nic", f'device.driver == "{NIC}"')],
        more_nodes=[gangs.node("node-a"), gangs.node("node-b")],
    )
    first, second = (beside_nics(member, 1) for member in gangs.alike(2))
    sharing = [first, replace(second, scheduler_claims=first.scheduler_claims)]
    assert gangs.where(gangs.place(view, sharing)) == {"node-a": 2}


def test_a_class_that_is_missing_is_said_of_the_whole_gang() -> None:
    missing = objects.claim("claim", objects.a_request(deviceClassName="none"))
    workload = replace(gangs.member("one"), open_claims=(missing,))
    answer = gangs.unseated(gangs.place(gangs.racks(TWO_RACKS), [workload]))
    assert answer.blocker is not None
    assert "DeviceClassNotFound" in gang_messages.gang_unschedulable(answer, topology.Topology())


def test_a_no_counts_each_domain_in_words() -> None:
    view = gangs.racks([[[2], [1], [1]]])
    answer = gangs.unseated(gangs.place(view, gangs.alike(3), gangs.RACK))
    assert gang_messages.gang_unschedulable(
        answer, topology.Topology(gangs.LEVELS, gangs.RACK)
    ) == (
        "No place for all 3 of the gang in one example.com/rack. rack r0 of block b0: at most 2 "
        "of 3. rack r1 of block b0, rack r2 of block b0: at most 1 of 3. Then, in rack r0 of "
        "block b0: No node fits. node-0-0-0: 0 of 1 devices fit, 1 lacking (2 DeviceInUse)"
    )


def test_levels_are_named_once() -> None:
    with pytest.raises(errors.BadInput):
        topology.Topology(("rack", "block", "rack"))


@pytest.mark.parametrize(
    ("required", "preferred"), [("zone", None), (None, "zone"), ("rack", "block")]
)
def test_levels_that_make_no_sense_are_refused(required: str | None, preferred: str | None) -> None:
    with pytest.raises(errors.BadInput):
        topology.Topology(("block", "rack"), required, preferred)
