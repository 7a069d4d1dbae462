from pathlib import Path

import pytest

from driver import errors, names, reasons
from driver.kubeletplugin.publish import handover
from driver.resources.publish import slice_builder
from tests.fakes import handing

TURN_S = 1.0


@pytest.fixture
def node(tmp_path: Path) -> handing.Node:
    return handing.Node(tmp_path)


def turns(plugin: handing.Plugin, node: handing.Node, seconds: float) -> None:
    """A turn a second."""
    for _ in range(int(seconds / TURN_S)):
        node.clock.advance(TURN_S)
        plugin.turn()


def test_without_a_label_the_flag_decides(node: handing.Node) -> None:
    handing.Plugin(node, "scheduler").turn()
    assert node.allocators() == {"scheduler"}


@pytest.mark.parametrize("flag", handover.ALLOCATORS)
def test_a_new_label_is_followed_through_a_handover_of_thirty_seconds(
    node: handing.Node, flag: str
) -> None:
    (other,) = set(handover.ALLOCATORS) - {flag}
    plugin = handing.Plugin(node, flag)
    plugin.turn()
    previous = node.generation()
    node.label = other
    assert plugin.turn() == handover.AllocatorState(flag, in_handover=True)
    assert node.generation() == previous
    turns(plugin, node, 29)
    assert node.allocators() == {None}
    turns(plugin, node, 1)
    assert node.allocators() == {other}
    assert node.generation() == previous + 1
    assert not node.judge.breaches


def test_begin_and_end_are_told_once_each(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    node.label = "scheduler"
    turns(plugin, node, 40)
    assert node.told.good_news == [
        (
            "Node",
            "node-a",
            reasons.Reason.ALLOCATOR_CHANGING.value,
            "nobody gives out the devices of this node for 30 s, then kube-scheduler does",
        ),
        (
            "Node",
            "node-a",
            reasons.Reason.ALLOCATOR_CHANGED.value,
            "kube-scheduler gives out the devices of this node now",
        ),
    ]


def test_it_says_when_to_look_again(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    assert plugin.allocator.due_in_s() is None
    node.label = "scheduler"
    plugin.turn()
    assert plugin.allocator.due_in_s() == 30
    node.clock.advance(10)
    assert plugin.allocator.due_in_s() == 20
    node.clock.advance(19.9)
    assert plugin.allocator.due_in_s() == 1


def test_a_restart_in_the_middle_does_not_cut_it_short(node: handing.Node) -> None:
    first = handing.Plugin(node)
    first.turn()
    node.label = "scheduler"
    turns(first, node, 20)
    second = handing.Plugin(node)
    second.turn()
    turns(second, node, 29)
    assert node.allocators() == {None}
    turns(second, node, 1)
    assert node.allocators() == {"scheduler"}
    assert not node.judge.breaches


def test_a_label_change_during_plugin_downtime_is_followed_at_start(
    node: handing.Node,
) -> None:
    handing.Plugin(node).turn()
    node.label = "scheduler"
    node.clock.advance(3600)
    again = handing.Plugin(node)
    again.turn()
    assert node.allocators() == {None}
    turns(again, node, 30)
    assert node.allocators() == {"scheduler"}


@pytest.mark.parametrize("back_after_s", [1, 15, 29])
def test_a_label_that_flaps_back_gets_the_former_state_after_the_same_thirty_seconds(
    node: handing.Node, back_after_s: int
) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    node.label = "scheduler"
    plugin.turn()
    turns(plugin, node, back_after_s)
    node.label = "controller"
    turns(plugin, node, 29 - back_after_s)
    assert node.allocators() == {None}
    turns(plugin, node, 1)
    assert node.allocators() == {"controller"}


def test_a_label_that_flaps_all_the_time_starves_nobody(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    for number in range(31):
        node.label = handover.ALLOCATORS[number % 2 - 1]
        turns(plugin, node, 1)
    assert node.allocators() == {node.label}
    assert not node.judge.breaches


@pytest.mark.parametrize("jump_s", [-86400.0, 86400.0])
def test_a_wall_clock_that_jumps_neither_shortens_nor_lengthens_it(
    node: handing.Node, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    node.label = "scheduler"
    plugin.turn()
    steady = node.clock.monotonic
    monkeypatch.setattr(node.clock, "monotonic", lambda: steady() - jump_s)
    node.clock.advance(jump_s)
    turns(plugin, node, 29)
    assert node.allocators() == {None}
    turns(plugin, node, 1)
    assert node.allocators() == {"scheduler"}


def test_a_write_that_fails_at_the_begin_starts_the_time_later(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    node.label = "scheduler"
    node.fail_after(0)
    for _ in range(40):
        node.clock.advance(1)
        with pytest.raises(handing.Unanswered):
            plugin.turn()
    assert node.allocators() == {"controller"}
    node.fail_after(None)
    plugin.turn()
    turns(plugin, node, 29)
    assert node.allocators() == {None}


@pytest.mark.parametrize("back", [False, True])
def test_a_new_state_half_written_is_completed_or_left_by_a_whole_handover(
    node: handing.Node, monkeypatch: pytest.MonkeyPatch, *, back: bool
) -> None:
    monkeypatch.setattr(slice_builder, "MAX_DEVICES", 4)
    plugin = handing.Plugin(node, "scheduler")
    plugin.turn()
    node.label = "controller"
    plugin.turn()
    node.clock.advance(30)
    node.fail_after(2)
    with pytest.raises(handing.Unanswered):
        plugin.turn()
    assert node.allocators() == {None, "controller"}
    node.fail_after(None)
    node.label = "scheduler" if back else "controller"
    plugin.turn()
    assert node.allocators() == {None if back else "controller"}
    turns(plugin, node, 29)
    assert node.allocators() == {None if back else "controller"}
    turns(plugin, node, 1)
    assert node.allocators() == {node.label}
    assert not node.judge.breaches


def test_wiped_in_the_middle_and_restarted_it_is_a_handover_still(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    node.label = "scheduler"
    turns(plugin, node, 5)
    node.wipe()
    again = handing.Plugin(node)
    again.turn()
    assert node.allocators() == {None}
    turns(again, node, 30)
    assert node.allocators() == {"scheduler"}
    assert not node.judge.breaches


def test_another_flag_after_a_reboot_is_a_handover(node: handing.Node) -> None:
    handing.Plugin(node, "controller").turn()
    node.wipe()
    handing.Plugin(node, "scheduler").turn()
    assert node.allocators() == {None}


def test_the_same_flag_after_a_reboot_is_none(node: handing.Node) -> None:
    handing.Plugin(node, "controller").turn()
    node.wipe()
    handing.Plugin(node, "controller").turn()
    assert node.allocators() == {"controller"}


def test_a_process_that_lost_the_election_forgets_its_observations(
    node: handing.Node,
) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    node.label = "scheduler"
    turns(plugin, node, 20)
    plugin.allocator.reset()
    assert node.metrics.handing_over._value.get() == 0
    turns(plugin, node, 30)
    assert node.allocators() == {None}
    turns(plugin, node, 1)
    assert node.allocators() == {"scheduler"}


def test_a_label_that_names_nobody_leaves_the_flag_in_force_and_is_a_problem(
    node: handing.Node,
) -> None:
    plugin = handing.Plugin(node, "scheduler")
    node.label = "me"
    plugin.turn()
    assert node.allocators() == {"scheduler"}
    (problem,) = plugin.allocator.problems()
    assert problem.reason is reasons.Reason.ALLOCATOR_LABEL_INVALID
    assert names.ALLOCATOR_LABEL in problem.message
    assert "'me'" in problem.message
    node.label = "scheduler"
    plugin.turn()
    assert not plugin.allocator.problems()


def test_a_label_that_goes_is_followed_to_the_flag(node: handing.Node) -> None:
    plugin = handing.Plugin(node, "controller")
    node.label = "scheduler"
    plugin.turn()
    node.label = None
    turns(plugin, node, 31)
    assert node.allocators() == {"controller"}


def test_the_last_allocator_is_stored_on_the_node(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    file = node.folder / "allocator"
    plugin.turn()
    assert file.read_text() == "controller"
    node.label = "scheduler"
    turns(plugin, node, 30)
    assert file.read_text() == "controller"
    turns(plugin, node, 1)
    assert file.read_text() == "scheduler"


def test_a_folder_in_its_place_is_a_fault(node: handing.Node) -> None:
    (node.folder / "allocator").mkdir()
    with pytest.raises(errors.NodeFault, match="allocator"):
        handing.Plugin(node).turn()


def test_the_metric_tells_a_handover(node: handing.Node) -> None:
    plugin = handing.Plugin(node)
    plugin.turn()
    assert node.metrics.handing_over._value.get() == 0
    node.label = "scheduler"
    plugin.turn()
    assert node.metrics.handing_over._value.get() == 1
    turns(plugin, node, 30)
    assert node.metrics.handing_over._value.get() == 0
