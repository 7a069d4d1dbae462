import dataclasses
import threading
from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin import composition, ports
from driver.kubeletplugin.recovery import claim_gc
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode
from tests.support.builders import allocated_claims
from tests.support.node import shares


class Processes:
    """Numbers of processes by GPU; a GPU that cannot be read says so."""

    def __init__(self) -> None:
        self.number = 0
        self.lost = False

    def count(self, gpu: str) -> int:
        if self.lost:
            raise errors.DeviceFault(gpu, "nvmlDeviceGetHandleByUUID", 15, "GPU is lost")
        return self.number


class World:
    """A node whose plugin looks for what outlived its claim."""

    def __init__(self, base: Path) -> None:
        self.node = gpunode.GpuNode(base)
        self.processes = Processes()
        self.time = fake_clock.FakeClock()
        self.told: list[str] = []
        self.unprepared: list[ports.ClaimRef] = []
        self.process = self.node.process()
        self.reclaim = claim_gc.ClaimCollector(
            claim_gc.GcTargets(
                self.process.executor.records.list_records,
                self.node.reader,
                lambda record: composition.gpus_in_use(record, self.processes),
                self.unprepare,
                self.process.mend,
            ),
            self.told.append,
            self.time,
            lambda: 0.999,
        )

    def unprepare(self, ref: ports.ClaimRef) -> ports.Refused | None:
        self.unprepared.append(ref)
        return self.process.preparer.unprepare(ref)

    def prepare(self) -> ports.ClaimRef:
        ref = self.node.allocate(allocated_claims.an_allocated_claim())
        answer = self.process.preparer.prepare(ref, gpunode.never)
        assert isinstance(answer, ports.Prepared)
        return ref

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.reclaim.check_records(threading.Event())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_claim_that_was_deleted_is_unprepared_at_the_second_look(world: World) -> None:
    world.prepare()
    world.node.reader.claims.clear()
    world.look()
    assert world.node.files()
    world.look()
    assert world.node.files() == {}
    (text,) = world.told
    assert allocated_claims.UID in text
    assert "it was deleted" in text
    world.look(3)
    assert len(world.unprepared) == 1


def test_a_claim_of_the_same_name_is_not_the_same_claim(world: World) -> None:
    world.prepare()
    world.node.allocate(allocated_claims.an_allocated_claim(uid=allocated_claims.OTHER_UID))
    world.look(2)
    assert world.node.files() == {}
    assert allocated_claims.OTHER_UID in world.told[0]


def test_a_claim_that_lost_its_allocation_keeps_its_record(world: World) -> None:
    world.prepare()
    world.node.allocate(dataclasses.replace(allocated_claims.an_allocated_claim(), allocation=None))
    world.look(5)
    assert world.node.files()
    assert not world.told


def test_an_api_that_fails_reclaims_nothing_and_begins_the_count_anew(world: World) -> None:
    world.prepare()
    claims = dict(world.node.reader.claims)
    world.node.reader.claims.clear()
    world.look()
    world.node.reader.down = True
    world.look(5)
    world.node.reader.down = False
    world.look()
    assert world.node.files()
    world.node.reader.claims.update(claims)
    world.look(2)
    assert not world.unprepared


def test_without_an_answer_the_others_are_not_asked_for(world: World) -> None:
    for number in (1, 2, 3):
        shares.prepare(world.node, shares.a_share(number))
    world.node.reader.down = True
    previous = world.node.reader.reads
    world.look()
    assert world.node.reader.reads == previous + 1


def test_a_gpu_on_which_processes_run_is_kept_until_they_end(world: World) -> None:
    world.prepare()
    world.node.reader.claims.clear()
    world.processes.number = 1
    world.look(3)
    assert world.node.files()
    world.processes.number = 0
    world.look()
    assert world.node.files() == {}


def test_a_gpu_that_cannot_be_read_is_kept(world: World) -> None:
    world.prepare()
    world.node.reader.claims.clear()
    world.processes.lost = True
    world.look(3)
    assert world.node.files()


def test_processes_on_a_shared_gpu_may_be_another_claims(world: World) -> None:
    mine, other = shares.a_share(1), shares.a_share(2)
    shares.prepare(world.node, mine)
    shares.prepare(world.node, other)
    del world.node.reader.claims[mine.key]
    world.processes.number = 2
    world.look(2)
    assert [record.uid for record in world.process.executor.records.list_records()] == [other.uid]
    assert shares.uuid(world.node) in world.node.daemons.desired


def test_an_unprepare_that_fails_is_tried_again_and_told_once(world: World) -> None:
    mine = shares.a_share(1)
    shares.prepare(world.node, mine)
    world.node.reader.claims.clear()
    world.node.daemons.stuck = "not gone after 10 s"
    world.look(3)
    assert (len(world.unprepared), world.told) == (2, [])
    world.node.daemons.stuck = ""
    world.look()
    assert len(world.told) == 1
    assert world.node.files() == {}


def test_a_claim_half_done_is_reclaimed_as_well(world: World) -> None:
    ref = world.node.allocate(allocated_claims.an_allocated_claim())
    with pytest.raises(gpunode.Killed):
        world.node.process(gpunode.DiesAt(3)).preparer.prepare(ref, gpunode.never)
    world.node.reader.claims.clear()
    world.look(2)
    assert world.node.files() == {}


def test_it_is_reclaimed_within_three_minutes_and_not_right_after_the_start(world: World) -> None:
    world.prepare()
    world.node.reader.claims.clear()
    stop = threading.Event()
    world.reclaim._report = lambda _: stop.set()
    world.reclaim.run(stop)
    # Gone right after a look, it is seen at the next one and released at the one after that.
    assert 120 <= sum(world.time.waits) <= 150
    assert max(world.time.waits) <= 10


def test_records_that_cannot_be_read_end_no_thread(world: World) -> None:
    stop = threading.Event()
    rounds = 0

    def records() -> tuple[()]:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            stop.set()
        raise errors.NodeFault("list", "records", "input/output error")

    node = dataclasses.replace(world.reclaim._targets, records=records)
    claim_gc.ClaimCollector(node, world.told.append, world.time, lambda: 0.0).run(stop)
    assert rounds == 2
