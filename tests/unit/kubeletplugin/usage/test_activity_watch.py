from pathlib import Path

import pytest

from driver.kubeletplugin import ports
from simulator import control
from tests.support.node.activity import OTHER, POD, World
from tests.support.node.shares import release

START = "2026-11-21T09:00:"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_processes_on_a_gpu_with_one_claim_belong_to_it(world: World) -> None:
    world.whole()
    world.process(1, 40, gib=2, pod=None)
    world.process(2, 30, gib=4, pod=None)
    assert world.look(10) == {"whole": (70, 6, f"{START}10Z")}
    (_, seen) = world.told.words[0]
    assert list(seen) == [ports.DeviceKey("gpu-0000-53-00-0", "")]


def test_a_claim_that_does_nothing_is_told_once_and_again_when_it_works(world: World) -> None:
    world.whole()
    assert world.look(10) == {"whole": (0, 0, "")}
    assert [world.look() for _ in range(10)] == [{}] * 10
    world.process(1, 90)
    assert world.look() == {"whole": (90, 1, "2026-11-21T09:11:10Z")}


def test_no_claim_is_told_of_more_than_once_a_minute(world: World) -> None:
    world.whole()
    world.look(10)
    count = 0
    for number in range(60):
        world.process(1, 90 if number // 7 % 2 else 0)
        count += len(world.look(10))
    assert 4 <= count <= 10


def test_a_newly_prepared_claim_counts_as_active_when_first_observed(
    world: World,
) -> None:
    world.look(10)
    claim = world.whole()
    assert world.look(10) == {"whole": (0, 0, f"{START}20Z")}
    release(world.node, claim)
    world.look(10)
    world.whole()
    assert world.look(10) == {"whole": (0, 0, f"{START}40Z")}
    world.restart()
    assert world.look(10) == {"whole": (0, 0, "")}


def test_each_share_is_told_of_its_own_pods_processes(world: World) -> None:
    world.share(1, POD)
    world.share(2, OTHER)
    world.process(1, 40, gib=2)
    world.process(2, 20, gib=3)
    world.process(3, 0, gib=4, pod=OTHER)
    assert world.look(10) == {
        "claim-1": (60, 5, f"{START}10Z"),
        "claim-2": (0, 4, ""),
    }


def test_an_active_unowned_process_makes_attribution_unknown(world: World) -> None:
    world.share(1, POD)
    world.share(2, OTHER)
    world.process(1, 40)
    world.process(2, 20, pod=None)
    assert world.look(10) == {
        "claim-1": (40, 1, f"{START}10Z"),
        "claim-2": (None, 0, f"{START}10Z"),
    }


def test_while_it_is_not_known_whose_pods_they_are_nothing_is_told(world: World) -> None:
    world.share(1, POD)
    world.process(1, 40)
    world.node.reader.down = True
    assert world.look(10) == {}
    world.node.reader.down = False
    assert world.look(10) == {"claim-1": (40, 1, f"{START}20Z")}


def test_without_process_samples_gpu_utilization_counts_for_a_sole_claim(
    world: World,
) -> None:
    world.whole()
    board = world.machine.board(world.machine.gpus[0])
    board.gpu_percent = 35

    world.workers.silent = True
    assert world.look(10) == {"whole": (35, 0, f"{START}10Z")}
    board.mig = True
    world.restart()
    world.workers.silent = True
    assert world.look(10) == {}


def test_a_gpu_that_is_lost_leaves_the_others_told_of(world: World) -> None:
    world.whole()
    world.whole("gpu-0000-64-00-0", 101)
    control.Control(world.machine).lose(world.machine.gpus[0].uuid)
    assert set(world.look(10)) == {"whole-101"}
    control.Control(world.machine).restore(world.machine.gpus[0].uuid)
    assert set(world.look(10)) == {"whole"}


def test_samples_are_asked_for_from_the_last_one_on(world: World) -> None:
    world.whole()
    world.process(1, 40)
    world.look(10)
    world.look(10)
    first, second = world.workers.asked
    assert first == 0 < second
