import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.usage import activity_watch
from driver.resources.dra import claims
from simulator import control, library
from tests import builders
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, users
from tests.unit.kubeletplugin.prepare.test_preparer_shares import GPU, a_share, prepare, release

GIB = 1 << 30
POD, OTHER = (ids.PodUid(f"pod-{name}") for name in ("mine", "other"))
WHOLE = 0xFFFFFFFF
START = "2026-11-21T09:00:"


class Told:
    """Implements `ports.Activities`."""

    def __init__(self) -> None:
        self.words: list[tuple[str, Mapping[ports.DeviceKey, ports.ObservedActivity]]] = []

    def set_activity(
        self, ref: ports.ClaimRef, seen: Mapping[ports.DeviceKey, ports.ObservedActivity]
    ) -> None:
        self.words.append((ref.name, seen))


class Workers(users.FakeWorkers):
    """Real time does not pass here: every sample is new. `asked` are the times asked from."""

    def __init__(self, ask: library.Library) -> None:
        super().__init__(ask)
        self.asked: list[int] = []
        self.silent = False

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[ports.Sample, ...] | None:
        self.asked.append(stamp_us)
        return None if self.silent else super().samples_since(gpu, 0)


class World:
    """A node with claims, and processes at work on its first GPU."""

    def __init__(self, base: Path) -> None:
        self.node = gpunode.GpuNode(base)
        self.time = fake_clock.FakeClock()
        self.pods: dict[int, ids.PodUid] = {}
        self.machine = self.node.nvml.machine
        self.restart()

    def restart(self) -> None:
        self.told = Told()
        ask = self.node.nvml.library
        self.workers = Workers(ask)
        node = activity_watch.ActivitySources(
            self.node.process().records.list_records,
            users.FakeUsers(ask),
            self.workers,
            lambda pid: (self.pods[pid],) if pid in self.pods else (),
            self.node.reader,
            users.FakeMeter(ask),
        )
        self.watch = activity_watch.ActivityWatch(node, self.told, self.time)

    def whole(self, gpu: str = GPU, number: int = 100) -> claims.Claim:
        uid = ids.ClaimUid(f"5c7d1f6e-0000-4000-8000-{number:012d}")
        name = f"whole-{number}" if gpu != GPU else "whole"
        claim = builders.an_allocated_claim(builders.a_result(gpu), uid=uid, name=name)
        assert isinstance(prepare(self.node, claim), ports.Prepared)
        return claim

    def share(self, number: int, *pods: ids.PodUid, **more: Any) -> claims.Claim:
        consumers = tuple(claims.Consumer("", "pods", f"of-{pod}", pod) for pod in pods)
        claim = dataclasses.replace(a_share(number, **more), consumers=consumers)
        assert isinstance(prepare(self.node, claim), ports.Prepared)
        return claim

    def process(self, pid: int, percent: int, gib: int = 1, pod: ids.PodUid | None = POD) -> None:
        of = control.Control(self.machine)
        of.process(self.machine.gpus[0].uuid, pid, gib * GIB, WHOLE, WHOLE)
        of.work(self.machine.gpus[0].uuid, pid, percent)
        if pod:
            self.pods[pid] = pod

    def look(self, seconds: float = 60.0) -> dict[str, tuple[int | None, int, str]]:
        """A look that much later: what was told of each claim's first device."""
        self.time.advance(seconds)
        before = len(self.told.words)
        self.watch.observe()
        found = {}
        for name, seen in self.told.words[before:]:
            one = next(iter(seen.values()))
            found[name] = (one.percent, one.peak_bytes // GIB, one.last_busy)
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_runs_on_a_gpu_that_a_claim_has_alone_is_the_claims(world: World) -> None:
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
    told = 0
    for number in range(60):
        world.process(1, 90 if number // 7 % 2 else 0)
        told += len(world.look(10))
    assert 4 <= told <= 10


def test_a_claim_prepared_since_the_last_look_was_at_work_when_it_was_first_seen(
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


def test_what_works_and_is_nobodys_leaves_it_open_whose_it_is(world: World) -> None:
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


def test_where_the_gpu_tells_of_no_process_the_whole_gpu_speaks_for_a_claim_alone(
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
