"""Claims that have devices alone, and an MPS daemon over them for their own containers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import reasons
from driver.api import nvidia
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from simulator import state
from tests.fakes import gpunode
from tests.fakes.migclaims import WHOLE, by_hand
from tests.support.builders import allocated_claims
from tests.support.node.claim_mps import (
    OTHER,
    PART,
    a_claim,
    a_part,
    modes,
    mps,
    prepared,
    whole,
)
from tests.support.node.shares import board, edits, prepare, release

PINNED, PERCENT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
LIMITED = {"pinnedMemory": "4Gi", "activeThreadPercentage": 50}


def refused(node: gpunode.GpuNode, claim: claims.Claim) -> str:
    """The words; whatever it is, it is for good, and nothing is left."""
    answer = prepare(node, claim)
    assert isinstance(answer, ports.Refused), answer
    assert (answer.reason, answer.permanent) == (reasons.Reason.CONFIG_INVALID, True)
    assert (node.files(), node.daemons.desired) == ({}, {})
    return answer.message


def uuid(node: gpunode.GpuNode, device: str) -> str:
    machine = node.nvml.machine
    return next(gpu.uuid for gpu in machine.gpus if gpu.slot.pci[5:7] == device.split("-")[2])


def compute_instances(node: gpunode.GpuNode) -> Iterator[state.ComputeInstance]:
    for part in board(node).instances:
        yield from part.compute


def all_edits(node: gpunode.GpuNode, claim: claims.Claim) -> list[Any]:
    devices = json.loads(node.spec_path(claim.uid).read_bytes())["devices"]
    return [device["containerEdits"] for device in devices]


def environment(edit: Any) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in edit["env"])


@pytest.mark.parametrize("order", [(WHOLE, OTHER), (OTHER, WHOLE)])
def test_a_claims_gpus_share_one_mps_daemon_in_uuid_order(
    node: gpunode.GpuNode, order: tuple[str, str]
) -> None:
    claim = whole(*order)
    prepared(node, claim)
    (key,) = node.daemons.desired
    desired = node.daemons.desired[key]
    assert key == claim.uid
    assert desired.devices == tuple(sorted([uuid(node, WHOLE), uuid(node, OTHER)]))
    assert desired.active_thread_percentage == 100
    assert desired.multi_user


def test_without_limits_the_daemon_gives_everything_and_clients_are_told_none(
    node: gpunode.GpuNode,
) -> None:
    claim = a_claim(WHOLE, configs=(mps(),))
    prepared(node, claim)
    (gpu,) = (gpu for gpu in node.nvml.inventory().gpus if gpu.uuid == uuid(node, WHOLE))
    assert node.daemons.desired[claim.uid].pinned_memory == (gpu.memory_bytes,)
    assert environment(edits(node, claim)) == {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"}


def test_limits_reach_the_daemon_and_the_containers(node: gpunode.GpuNode) -> None:
    claim = whole(**LIMITED, multiUser=True, priority="BelowNormal", maxConnections=8)
    prepared(node, claim)
    desired = node.daemons.desired[claim.uid]
    assert (desired.pinned_memory, desired.active_thread_percentage) == ((4 << 30,), 50)
    assert desired.multi_user
    assert environment(edits(node, claim)) == {
        "CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps",
        "CUDA_MPS_CLIENT_PRIORITY": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "8",
        PINNED: "0=4096M",
        PERCENT: "50",
    }


def test_every_device_of_a_claim_has_the_same_container_edits(
    node: gpunode.GpuNode,
) -> None:
    claim = whole(WHOLE, OTHER, **LIMITED)
    prepared(node, claim)
    first, second = all_edits(node, claim)
    assert first["env"] == second["env"]
    # The third is what its containers are told of a request, each by its own device.
    assert first["mounts"][:2] == second["mounts"][:2]
    shared = [(mount["containerPath"], mount["options"][0]) for mount in first["mounts"][:2]]
    assert shared == [("/tmp/nvidia-mps", "ro"), ("/dev/shm", "rw")]
    assert all(
        {"nosuid", "nodev", "noexec"} <= set(mount["options"]) for mount in first["mounts"][:2]
    )
    assert (PINNED in environment(first), environment(first)[PERCENT]) == (False, "50")


@pytest.mark.parametrize("by_uuid", [False, True])
def test_a_limit_of_one_device_goes_before_that_of_all(
    node: gpunode.GpuNode, *, by_uuid: bool
) -> None:
    order = sorted([uuid(node, WHOLE), uuid(node, OTHER)])
    key = order[1] if by_uuid else "1"
    claim = whole(WHOLE, OTHER, pinnedMemory="4Gi", pinnedMemoryPerDevice={key: "2.5Gi"})
    prepared(node, claim)
    assert node.daemons.desired[claim.uid].pinned_memory == (4 << 30, 5 << 29)


def test_a_device_without_a_limit_has_all_beside_one_with(
    node: gpunode.GpuNode,
) -> None:
    claim = whole(WHOLE, OTHER, pinnedMemoryPerDevice={"1": "2Gi"})
    prepared(node, claim)
    unlimited, limited = node.daemons.desired[claim.uid].pinned_memory
    assert (unlimited > limited, limited) == (True, 2 << 30)


def test_nvidias_words_for_it_do_as_well(node: gpunode.GpuNode) -> None:
    limits = {
        "defaultActiveThreadPercentage": 50,
        "defaultPinnedDeviceMemoryLimit": "10Gi",
        "defaultPerDevicePinnedMemoryLimit": {"0": "5Gi"},
    }
    sharing = {"strategy": "MPS", "mpsConfig": limits}
    document = {"apiVersion": nvidia.VERSION, "kind": "GpuConfig", "sharing": sharing}
    claim = a_claim(WHOLE, OTHER, configs=(document,))
    prepared(node, claim)
    assert node.daemons.desired[claim.uid].pinned_memory == (5 << 30, 10 << 30)


def test_the_gpus_are_exclusive_to_the_daemon_until_the_claim_is_gone(
    node: gpunode.GpuNode,
) -> None:
    claim = whole(WHOLE, OTHER)
    prepared(node, claim)
    assert sorted(modes(node)) == [0] * 6 + [3] * 2
    for _ in range(2):
        release(node, claim)
        assert (set(modes(node)), node.daemons.desired, node.files()) == ({0}, {}, {})


def test_a_device_of_the_claim_that_is_not_for_mps_is_left_alone(node: gpunode.GpuNode) -> None:
    claim = a_claim(WHOLE, PART.replace(WHOLE, OTHER), configs=(mps(LIMITED),))
    prepared(node, claim)
    under, beside = all_edits(node, claim)
    assert PINNED in environment(under)
    assert not beside.get("env")
    assert node.daemons.desired[claim.uid].devices == (uuid(node, WHOLE),)


def test_an_administrator_who_looks_gets_no_daemon(node: gpunode.GpuNode) -> None:
    result = allocated_claims.a_result(WHOLE, admin_access=True)
    prepared(node, allocated_claims.an_allocated_claim(result, configs=[mps(LIMITED)]))
    assert (node.daemons.desired, set(modes(node))) == ({}, {0})


def test_a_mig_device_made_for_the_claim_gets_its_daemon(
    node: gpunode.GpuNode,
) -> None:
    claim = a_part(**LIMITED)
    prepared(node, claim)
    (compute_instance,) = compute_instances(node)
    desired = node.daemons.desired[claim.uid]
    assert (desired.devices, desired.pinned_memory) == ((compute_instance.uuid,), (4 << 30,))
    assert environment(edits(node, claim))[PINNED] == "0=4096M"
    assert (compute_instance.compute_mode, set(modes(node))) == (3, {0})
    release(node, claim)
    assert (list(compute_instances(node)), node.daemons.desired, node.files()) == ([], {}, {})


def test_a_mig_device_that_was_there_is_as_before_afterwards(node: gpunode.GpuNode) -> None:
    by_hand(node, "1g.10gb", 0)
    (compute_instance,) = compute_instances(node)
    claim = a_part(pinnedMemoryPerDevice={compute_instance.uuid: "2Gi"})
    prepared(node, claim)
    desired = node.daemons.desired[claim.uid]
    assert (desired.devices, desired.pinned_memory) == ((compute_instance.uuid,), (2 << 30,))
    assert compute_instance.compute_mode == 3
    release(node, claim)
    assert list(compute_instances(node)) == [compute_instance]
    assert (compute_instance.compute_mode, node.daemons.desired) == (0, {})


def test_a_mig_device_without_a_compute_mode_is_served_all_the_same(node: gpunode.GpuNode) -> None:
    node.modes.lacking = True
    claim = a_part()
    prepared(node, claim)
    assert claim.uid in node.daemons.desired
    release(node, claim)
    assert not node.daemons.desired


def test_a_mig_device_made_anew_gets_its_daemon_anew(node: gpunode.GpuNode) -> None:
    claim = a_part()
    prepared(node, claim)
    (previous,) = node.daemons.desired[claim.uid].devices
    node.nvml.machine.reboot()
    node.boot = "boot-2"
    node.daemons.desired.clear()
    prepared(node, claim)
    (compute_instance,) = compute_instances(node)
    assert node.daemons.desired[claim.uid].devices == (compute_instance.uuid,)
    assert compute_instance.uuid != previous


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pinnedMemoryPerDevice": {"1": "1Gi"}}, "1 is no device of the claim; expected one of 0"),
        ({"pinnedMemoryPerDevice": {"GPU-1": "1Gi"}}, "GPU-1 is no device of the claim"),
        ({"pinnedMemoryPerDevice": {"first": "1Gi"}}, "pinnedMemoryPerDevice.first"),
        ({"pinnedMemory": "100Gi"}, "is 100Gi; expected 1Mi at least, 81559Mi at most"),
        ({"pinnedMemoryPerDevice": {"0": "100Gi"}}, "is 100Gi"),
        ({"pinnedMemory": "1023Ki"}, "is 1023Ki; expected 1Mi at least"),
        ({"pinnedMemory": "0"}, "is 0; expected 1Mi at least"),
    ],
)
def test_limits_that_the_devices_cannot_have_are_refused_for_good(
    node: gpunode.GpuNode, settings: dict[str, Any], words: str
) -> None:
    assert words in refused(node, whole(**settings))


def test_a_device_that_is_limited_twice_is_refused(node: gpunode.GpuNode) -> None:
    own = uuid(node, WHOLE)
    message = refused(node, whole(pinnedMemoryPerDevice={"0": "1Gi", own: "2Gi"}))
    assert f"0 and {own} are one device" in message


def test_settings_that_differ_are_refused(node: gpunode.GpuNode) -> None:
    claim = a_claim(
        WHOLE, PART.replace(WHOLE, OTHER), configs=(mps(LIMITED), mps(kind="MigDeviceConfig"))
    )
    assert "one daemon serves the claim" in refused(node, claim)


def test_a_mig_device_and_another_device_are_not_served_together(node: gpunode.GpuNode) -> None:
    parts = a_claim(PART, PART.replace("gb-0", "gb-1"), configs=(mps(kind="MigDeviceConfig"),))
    assert "a MIG device alone" in refused(node, parts)


def test_a_daemon_that_does_not_come_leaves_nothing_behind(node: gpunode.GpuNode) -> None:
    node.daemons.fail = "pipe directory not writable"
    for claim in (whole(WHOLE, OTHER), a_part()):
        with pytest.raises(Exception, match="pipe directory not writable"):
            prepare(node, claim)
        assert (set(modes(node)), node.files()) == ({0}, {})
        assert not list(compute_instances(node))


@pytest.mark.parametrize("claim", [whole(WHOLE, OTHER, **LIMITED), a_part(**LIMITED)])
def test_a_death_at_any_point_ends_as_if_undisturbed(tmp_path: Path, claim: claims.Claim) -> None:
    calm, watch = gpunode.GpuNode(tmp_path / "count"), gpunode.DiesAt()
    calm.process(watch).preparer.prepare(calm.allocate(claim), gpunode.never)
    assert "step done: mps-serve-claim" in watch.passed
    for number in range(len(watch.passed)):
        node = gpunode.GpuNode(tmp_path / str(number))
        with pytest.raises(gpunode.Killed):
            node.process(gpunode.DiesAt(number)).preparer.prepare(
                node.allocate(claim), gpunode.never
            )
        prepared(node, claim)
        _release_dying(node, claim, number)
        release(node, claim)
        assert (node.files(), node.daemons.desired, set(modes(node))) == ({}, {}, {0})
        assert not list(compute_instances(node))


def _release_dying(node: gpunode.GpuNode, claim: claims.Claim, number: int) -> None:
    """Unprepare in a process that dies at that point, where it has as many."""
    ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
    try:
        node.process(gpunode.DiesAt(number)).preparer.unprepare(ref)
    except gpunode.Killed:
        return
