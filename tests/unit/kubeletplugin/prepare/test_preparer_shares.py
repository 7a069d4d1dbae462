"""Claims that have a GPU together: each its share, the settings while any of them needs them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from driver import reasons
from driver.api import offerings
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from tests.fakes import gpunode
from tests.support.builders import allocated_claims
from tests.support.node.shares import (
    GPU,
    VERSION,
    a_share,
    board,
    edits,
    interval,
    prepare,
    release,
    two_shares,
    uuid,
)


def several_users(requested: bool) -> list[dict[str, Any]]:  # noqa: FBT001 - a value of the API
    sharing = {"strategy": "MPS", "mps": {"multiUser": requested}}
    return [{"apiVersion": VERSION, "kind": "GpuConfig", "sharing": sharing}]


def test_an_mps_share_has_its_own_limits_and_its_daemons_directories(
    node: gpunode.GpuNode,
) -> None:
    claim = a_share(1)
    answer = prepare(node, claim)
    assert isinstance(answer, ports.Prepared)
    assert answer.devices[0].share_id == "share-1"
    created = edits(node, claim)
    assert set(created["env"]) == {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480M",
        "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps",
        f"RATION_GPU_0000_53_00_0_MPS=memory={20 << 30},compute=25",
    }
    places = {mount["containerPath"]: mount["hostPath"] for mount in created["mounts"]}
    assert places["/tmp/nvidia-mps"].startswith(str(node.daemons.root))
    assert places["/dev/shm"].startswith(str(node.daemons.root))


def test_the_daemon_has_the_largest_share_as_its_ceiling_while_that_is_there(
    node: gpunode.GpuNode,
) -> None:
    small, large = a_share(1, gib=20, percent=10), a_share(2, gib=30, percent=40)
    prepare(node, small)
    prepare(node, large)
    desired = node.daemons.desired[uuid(node)]
    assert (desired.pinned_memory, desired.active_thread_percentage) == ((30 << 30,), 40)
    release(node, large)
    desired = node.daemons.desired[uuid(node)]
    assert (desired.pinned_memory, desired.active_thread_percentage) == ((20 << 30,), 10)


def test_the_gpu_is_exclusive_to_the_daemon_until_its_last_share_is_gone(
    node: gpunode.GpuNode,
) -> None:
    first, second = a_share(1), a_share(2)
    prepare(node, first)
    prepare(node, second)
    assert board(node).compute_mode == 3
    release(node, first)
    assert board(node).compute_mode == 3
    assert uuid(node) in node.daemons.desired
    release(node, second)
    assert board(node).compute_mode == 0
    assert not node.daemons.desired
    assert not node.files()


def test_pods_of_any_user_are_served_where_the_driver_can(node: gpunode.GpuNode) -> None:
    prepare(node, a_share(1))
    assert node.daemons.desired[uuid(node)].multi_user


def test_an_older_driver_serves_one_mps_user_at_a_time(
    node: gpunode.GpuNode,
) -> None:
    node.nvml.machine.state.loaded_driver = "550.163.01"
    prepare(node, a_share(1))
    assert not node.daemons.desired[uuid(node)].multi_user
    answer = prepare(node, a_share(2, configs=several_users(requested=True)))
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.permanent) == (reasons.Reason.CONFIG_INVALID, True)
    assert "has driver 550; expected 580 at least" in answer.message


def test_a_claim_that_says_nothing_of_users_disturbs_no_server_that_runs(
    node: gpunode.GpuNode,
) -> None:
    """Start with a server from before an upgrade, when a share had one user at a time."""
    prepare(node, a_share(1, configs=several_users(requested=False)))
    prepare(node, a_share(2))
    assert not node.daemons.desired[uuid(node)].multi_user
    release(node, a_share(1))
    assert not node.daemons.desired[uuid(node)].multi_user


def test_a_claim_with_another_multi_user_setting_is_refused(
    node: gpunode.GpuNode,
) -> None:
    prepare(node, a_share(1))
    answer = prepare(node, a_share(2, configs=several_users(requested=False)))
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reasons.Reason.SHARING_DISAGREES
    assert "its daemon has multiUser: true" in answer.message


def test_a_daemon_that_does_not_come_leaves_nothing_behind(node: gpunode.GpuNode) -> None:
    node.daemons.fail = "pipe directory not writable"
    with pytest.raises(Exception, match="pipe directory not writable"):
        prepare(node, a_share(1))
    assert board(node).compute_mode == 0
    assert not node.files()


def test_a_time_slice_is_set_for_all_and_put_back_by_the_last(node: gpunode.GpuNode) -> None:
    claims_ = [a_share(number, "ts", configs=interval("Long")) for number in (1, 2)]
    for claim in claims_:
        assert isinstance(prepare(node, claim), ports.Prepared)
    assert board(node).timeslice == 3
    release(node, claims_[0])
    assert board(node).timeslice == 3
    release(node, claims_[1])
    assert board(node).timeslice == 0


def turns(node: gpunode.GpuNode, process: gpunode.Process, *numbers: int) -> None:
    for number in numbers:
        claim = node.allocate(a_share(number, "ts", percent=1, gib=1, configs=interval("Long")))
        assert isinstance(process.preparer.prepare(claim, gpunode.never), ports.Prepared)


#
def test_a_time_slice_that_is_set_is_not_set_again(node: gpunode.GpuNode) -> None:
    turns(node, node.process(), *range(1, 9))
    assert (node.slices.runs, board(node).timeslice) == (1, 3)


def test_a_driver_that_was_loaded_again_has_lost_the_time_slice(node: gpunode.GpuNode) -> None:
    process = node.process()
    turns(node, process, 1)
    board(node).timeslice, node.driver_load = 0, 2
    turns(node, process, 2)
    assert (node.slices.runs, board(node).timeslice) == (2, 3)


def test_settings_from_before_the_plugins_start_are_restored(node: gpunode.GpuNode) -> None:
    turns(node, node.process(), 1)
    board(node).timeslice = 0
    turns(node, node.process(), 2)
    assert board(node).timeslice == 3


def test_an_exclusive_gpu_is_in_default_mode_while_claims_time_slice_it(
    node: gpunode.GpuNode,
) -> None:
    board(node).compute_mode = 3
    first, second = (a_share(number, "ts") for number in (1, 2))
    prepare(node, first)
    assert board(node).compute_mode == 0
    prepare(node, second)
    release(node, first)
    assert board(node).compute_mode == 0
    release(node, second)
    assert board(node).compute_mode == 3


def test_a_gpu_that_its_administrator_made_exclusive_is_so_again_after_mps(
    node: gpunode.GpuNode,
) -> None:
    board(node).compute_mode = 3
    first, second = (a_share(number, "mps") for number in (1, 2))
    for claim in (first, second):
        prepare(node, claim)
    release(node, first)
    assert board(node).compute_mode == 3
    release(node, second)
    assert board(node).compute_mode == 3


@pytest.mark.parametrize(("face", "shared"), [("mps", 3), ("ts", 0)])
@pytest.mark.parametrize("previous", [0, 2, 3])
def test_a_hanging_gpu_gets_its_administrators_mode_back_once_it_answers(
    node: gpunode.GpuNode, face: str, shared: int, previous: int
) -> None:
    board(node).compute_mode = previous
    claims_ = [a_share(number, face) for number in (1, 2)]
    for claim in claims_:
        prepare(node, claim)
    node.modes.hung.add(uuid(node))
    for claim in claims_:
        release(node, claim)
    (problem,) = node.process().mend()
    assert "hangs" in problem
    assert board(node).compute_mode == shared
    node.modes.end()
    assert node.process().mend() == ()
    assert board(node).compute_mode == previous


def test_a_gpu_without_the_knob_is_shared_all_the_same(node: gpunode.GpuNode) -> None:
    node.slices.lacking.add(uuid(node))
    claim = a_share(1, "ts", configs=interval("Long"))
    assert isinstance(prepare(node, claim), ports.Prepared)
    record = node.process().executor.records.read(claim.uid)
    assert record is not None
    assert record.facts == ({"unsupported": "Not Supported"},)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (a_share(2, "ts", configs=interval("Short")), reasons.Reason.SHARING_DISAGREES),
        (a_share(2, "mps"), reasons.Reason.DEVICE_OVERLAP),
        (
            dataclasses.replace(a_share(2, "ts", configs=interval("Long")), namespace="team-b"),
            reasons.Reason.NAMESPACES_APART,
        ),
    ],
)
def test_a_conflicting_claim_is_refused_without_side_effects(
    node: gpunode.GpuNode, other: claims.Claim, reason: reasons.Reason
) -> None:
    prepare(node, a_share(1, "ts", configs=interval("Long")))
    previous = node.files()
    answer = prepare(node, other)
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reason
    assert len(answer.holders) == 1
    assert node.files() == previous
    assert board(node).timeslice == 3


@pytest.mark.parametrize("face", ["mps", "ts"])
@pytest.mark.parametrize("part", [{"gib": 1, "percent": 40}, {"gib": 30, "percent": 1}])
def test_a_share_still_prepared_but_no_longer_allocated_is_not_given_again(
    node: gpunode.GpuNode, face: str, part: dict[str, int]
) -> None:
    left, beside, new = (a_share(number, face, **part) for number in (1, 2, 3))
    for claim in (left, beside):
        assert isinstance(prepare(node, claim), ports.Prepared)
    answer = prepare(node, new)
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reasons.Reason.DEVICE_OVERLAP
    assert {holder.uid for holder in answer.holders} == {left.uid, beside.uid}
    assert f"{3 * part['percent']} percent of its compute and {3 * part['gib'] << 30} of 8" in (
        answer.message
    )
    release(node, left)
    assert isinstance(prepare(node, new), ports.Prepared)


def test_turns_may_have_more_memory_together_where_that_is_offered(node: gpunode.GpuNode) -> None:
    node.rules = offerings.read({"rules": [{"memoryFactor": 2}]}, "offerings")
    for number in (1, 2):
        claim = a_share(number, "ts", gib=60, percent=10)
        assert isinstance(prepare(node, claim), ports.Prepared)
    node.rules = offerings.NodeOfferings()  # what is held stays as it was offered
    third = a_share(3, "ts", gib=30, percent=10)
    assert isinstance(prepare(node, third), ports.Prepared)
    assert isinstance(prepare(node, a_share(4, "ts", gib=30, percent=10)), ports.Refused)


def test_shares_of_one_claim_have_no_more_than_there_is(node: gpunode.GpuNode) -> None:
    allocation = a_share(1, percent=60).allocation
    assert allocation is not None
    (result,) = allocation.results
    again = dataclasses.replace(result, request="again", share_id="share-2")
    answer = prepare(node, allocated_claims.an_allocated_claim(result, again))
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.holders) == (reasons.Reason.DEVICE_OVERLAP, ())


@pytest.mark.parametrize("taken", [GPU, f"{GPU}-mig-1g10gb-0"])
def test_a_share_and_the_whole_or_a_part_exclude_each_other(
    node: gpunode.GpuNode, taken: str
) -> None:
    alone = allocated_claims.an_allocated_claim(allocated_claims.a_result(taken))
    assert isinstance(prepare(node, alone), ports.Prepared)
    answer = prepare(node, a_share(9))
    assert isinstance(answer, ports.Refused)
    release(node, alone)
    assert isinstance(prepare(node, a_share(9)), ports.Prepared)
    assert isinstance(prepare(node, alone), ports.Refused)


def test_a_share_turns_off_the_mig_that_nobody_uses(node: gpunode.GpuNode) -> None:
    board(node).mig = board(node).mig_pending = True
    assert isinstance(prepare(node, a_share(1)), ports.Prepared)
    assert not board(node).mig


def test_a_configuration_for_the_other_way_of_sharing_is_refused_for_good(
    node: gpunode.GpuNode,
) -> None:
    answer = prepare(node, a_share(1, configs=interval("Long")))
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.permanent) == (reasons.Reason.CONFIG_INVALID, True)


def test_the_containers_of_one_claim_may_take_turns_on_a_whole_gpu(node: gpunode.GpuNode) -> None:
    claim = allocated_claims.an_allocated_claim(configs=interval("Medium"))
    assert isinstance(prepare(node, claim), ports.Prepared)
    assert board(node).timeslice == 2
    release(node, claim)
    assert board(node).timeslice == 0


@pytest.mark.parametrize(
    ("mps", "words"),
    [
        ({"pinnedMemory": "4Gi"}, "a memory limit"),
        ({"pinnedMemoryPerDevice": {"0": "4Gi"}}, "a memory limit"),
        ({"activeThreadPercentage": 50}, "a thread percentage"),
    ],
)
def test_limits_for_a_claims_own_devices_are_refused_for_a_share(
    node: gpunode.GpuNode, mps: dict[str, Any], words: str
) -> None:
    sharing = {"strategy": "MPS", "mps": mps}
    document = {"apiVersion": VERSION, "kind": "GpuConfig", "sharing": sharing}
    answer = prepare(node, a_share(1, configs=[document]))
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.permanent) == (reasons.Reason.CONFIG_INVALID, True)
    assert words in answer.message


@pytest.mark.parametrize("face", ["mps", "ts"])
def test_a_death_at_any_point_of_a_share_ends_as_if_undisturbed(tmp_path: Path, face: str) -> None:
    calm, watch = gpunode.GpuNode(tmp_path / "count"), gpunode.DiesAt()
    calm.process(watch).preparer.prepare(calm.allocate(a_share(1, face)), gpunode.never)
    assert len(watch.passed) > 6
    for number in range(len(watch.passed)):
        node = gpunode.GpuNode(tmp_path / str(number))
        board(node).compute_mode = 2
        neighbour, claim = a_share(2, face), a_share(1, face)
        prepare(node, neighbour)
        previous = (node.files(), dict(node.daemons.desired))
        with pytest.raises(gpunode.Killed):
            node.process(gpunode.DiesAt(number)).preparer.prepare(
                node.allocate(claim), gpunode.never
            )
        assert isinstance(prepare(node, claim), ports.Prepared)
        release(node, claim)
        assert (node.files(), dict(node.daemons.desired)) == previous
        release(node, neighbour)
        assert not node.files()
        assert (board(node).compute_mode, board(node).timeslice) == (2, 0)


@pytest.mark.parametrize("face", ["mps", "ts"])
def test_a_partly_unprepared_share_gets_all_its_settings_when_prepared_again(
    node: gpunode.GpuNode, face: str
) -> None:
    claim = a_share(1, face, configs=interval("Long") if face == "ts" else ())
    ref = node.allocate(claim)

    def settings() -> tuple[int, int, set[str]]:
        return board(node).compute_mode, board(node).timeslice, set(node.daemons.desired)

    prepare(node, claim)
    whole = settings()
    watch = gpunode.DiesAt()
    node.process(watch).preparer.unprepare(ref)
    for number in range(len(watch.passed)):
        prepare(node, claim)
        with pytest.raises(gpunode.Killed):
            node.process(gpunode.DiesAt(number)).preparer.unprepare(ref)
        assert isinstance(prepare(node, claim), ports.Prepared)
        assert settings() == whole


def need(isolation: str) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": "SliceConfig", "isolation": isolation}


@pytest.mark.parametrize("face", ["mps", "ts", "mig-1g10gb-0"])
def test_a_part_by_need_is_prepared_as_if_its_kind_had_been_named(
    tmp_path: Path, face: str
) -> None:
    prepared: list[str] = []
    for index, configs in enumerate(([], [need("none")])):
        root = tmp_path / str(index)
        root.mkdir()
        node = gpunode.GpuNode(root)
        claim = a_share(1, face, configs=configs)
        assert isinstance(prepare(node, claim), ports.Prepared)
        prepared.append(json.dumps(edits(node, claim)).replace(str(root), ""))
    assert prepared[0] == prepared[1]


@pytest.mark.parametrize(("face", "isolation"), [("mps", "hardware"), ("ts", "limits")])
def test_a_share_that_isolates_less_than_is_needed_is_refused_for_good(
    node: gpunode.GpuNode, face: str, isolation: str
) -> None:
    answer = prepare(node, a_share(1, face, configs=[need(isolation)]))
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.permanent) == (reasons.Reason.ISOLATION_TOO_WEAK, True)
    assert node.files() == {}


def test_two_requests_of_one_claim_on_one_gpu_have_limits_of_their_own(
    node: gpunode.GpuNode,
) -> None:
    claim = two_shares(40, 20)
    answer = prepare(node, claim)
    assert isinstance(answer, ports.Prepared)
    spec = json.loads(node.spec_path(claim.uid).read_bytes())
    edited = {device["name"]: device["containerEdits"]["env"] for device in spec["devices"]}
    for device, (gib, percent) in zip(answer.devices, ((40, 30), (20, 60)), strict=True):
        (cdi_id,) = device.cdi_ids
        environment = edited[cdi_id.partition("=")[2]]
        assert f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0={gib * 1024}M" in environment
        assert f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={percent}" in environment
    assert [device.request for device in answer.devices] == ["first", "second"]


@pytest.mark.parametrize("amounts", [(40, 20), (20, 40)])
def test_the_daemons_ceiling_is_the_largest_share_of_a_claim_whichever_comes_first(
    node: gpunode.GpuNode, amounts: tuple[int, int]
) -> None:
    claim = two_shares(*amounts)
    prepare(node, claim)
    desired = node.daemons.desired[uuid(node)]
    assert (desired.pinned_memory, desired.active_thread_percentage) == ((40 << 30,), 60)
    release(node, claim)
    assert not node.daemons.desired
    assert not node.files()
