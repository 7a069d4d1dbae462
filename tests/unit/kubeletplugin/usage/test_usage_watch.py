import dataclasses
import threading
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from driver import errors, ids, names
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.usage import usage_watch
from driver.resources.dra import claims
from simulator import control
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, plugin_shell, users
from tests.support.builders import allocated_claims
from tests.support.node.shares import GPU, a_share, prepare, release

GIB = 1 << 30
POD, OTHER, STRANGER = (ids.PodUid(f"pod-{name}") for name in ("mine", "other", "stranger"))
EVERY_S = 10.0
SECOND = "gpu-0000-64-00-0"


class Said:
    """Implements `ports.Conditions`."""

    def __init__(self) -> None:
        self.words: list[tuple[str, bool | None, str, str]] = []

    def set_condition(self, ref: ports.ClaimRef, word: ports.ConditionUpdate) -> None:
        assert word.type == "WithinShare"
        self.words.append((ref.name, word.holds, word.reason.value, word.message))


class World:
    """A node with claims, and processes of pods on its GPUs."""

    def __init__(self, base: Path) -> None:
        self.node = gpunode.GpuNode(base)
        self.users = users.FakeUsers(self.node.nvml.library)
        self.time = fake_clock.FakeClock()
        self.told = plugin_shell.Events()
        self.said = Said()
        self.pods: dict[int, ids.PodUid] = {}
        self.start()

    def start(self) -> None:
        """A plugin that knows nothing yet."""
        self.registry = prometheus_client.CollectorRegistry()
        self.watch = usage_watch.UsageWatch(
            usage_watch.UsageSources(
                self.node.process().records.list_records,
                self.users,
                lambda pid: (self.pods[pid],) if pid in self.pods else (),
                self.node.reader,
            ),
            usage_watch.Deps(
                plugin_events.EventReporter(self.told), self.said, metrics.Metrics(self.registry)
            ),
            EVERY_S,
            self.time,
        )

    def claim(
        self, number: int, *pods: ids.PodUid, gpus: tuple[str, ...] = (GPU,), **more: Any
    ) -> claims.Claim:
        """A prepared claim of 20 GiB, of each GPU, that these pods have."""
        claim = a_share(number, **more)
        assert claim.allocation is not None
        (result,) = claim.allocation.results
        results = tuple(
            dataclasses.replace(
                result,
                request=gpu,
                device=result.device._replace(device=result.device.device.replace(GPU, gpu)),
            )
            for gpu in gpus
        )
        claim = dataclasses.replace(
            claim,
            allocation=dataclasses.replace(claim.allocation, results=results),
            consumers=tuple(claims.Consumer("", "pods", f"of-{pod}", pod) for pod in pods),
        )
        assert isinstance(prepare(self.node, claim), ports.Prepared)
        return claim

    def process(self, pid: int, gib: float, pod: ids.PodUid = POD, gpu: int = 0) -> None:
        """One of a pod that uses so much; 0 ends it."""
        machine = self.node.nvml.machine
        size = int(gib * GIB)
        whole = 0xFFFFFFFF
        control.Control(machine).process(machine.gpus[gpu].uuid, pid, size, whole, whole)
        self.pods[pid] = pod

    def look(self, times: int = 1) -> list[tuple[str, str]]:
        """Return who is told what."""
        previous = len(self.told.told), len(self.told.good_news)
        for _ in range(times):
            self.time.advance(EVERY_S)
            self.watch.observe()
        fresh = (*self.told.told[previous[0] :], *self.told.good_news[previous[1] :])
        return [(event[1], event[2]) for event in fresh]

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"dra_gpu_plugin_{name}")

    @property
    def over(self) -> float | None:
        return self.metric("claims_over_share")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_claim_whose_processes_together_use_more_than_its_share_is_told_once(
    world: World,
) -> None:
    world.claim(1, POD)
    world.claim(2, OTHER)
    world.process(123, 16)
    world.process(456, 15)
    world.process(789, 20, OTHER)
    assert world.look() == []
    assert world.look() == [("claim-1", "ShareExceeded")]
    assert world.told.told[-1][3] == (
        f"uses 31.0 GiB of {world.node.nvml.machine.gpus[0].uuid}, allocated 20.0 GiB: pids 123 "
        "(16.0 GiB), 456 (15.0 GiB) of pod default/of-pod-mine"
    )
    assert world.look(50) == []
    assert (world.over, world.metric("share_overruns_total")) == (1, 1)


@pytest.mark.parametrize("face", ["mps", "ts"])
def test_either_way_of_sharing_is_watched(world: World, face: str) -> None:
    world.claim(1, POD, face=face)
    world.process(1, 21)
    assert world.look(2) == [("claim-1", "ShareExceeded")]


def test_it_is_told_that_it_keeps_to_its_share_again(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 16)
    world.process(2, 15)
    world.look(2)
    world.process(2, 0)
    assert world.look() == [("claim-1", "UsageWithinShare")]
    assert "uses 16.0 GiB" in world.told.good_news[-1][3]
    assert world.look(3) == []
    assert (world.over, world.metric("share_overruns_total")) == (0, 1)


def test_a_peak_between_two_looks_is_not_told(world: World) -> None:
    world.claim(1, POD)
    for _ in range(5):
        world.process(1, 30)
        assert world.look() == []
        world.process(1, 20)
        assert world.look() == []
    assert world.over == 0


def test_it_is_told_again_when_it_grew_and_five_minutes_have_passed(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 30)
    world.look(2)
    world.process(1, 33)
    assert world.look(29) == []
    assert world.look() == [("claim-1", "ShareExceeded")]
    assert world.look(100) == []
    assert world.metric("share_overruns_total") == 1


def test_the_condition_says_the_latest(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 10)
    world.look(2)
    world.process(1, 30)
    world.look(3)
    world.process(1, 20)
    world.look(2)
    gpu = world.node.nvml.machine.gpus[0].uuid
    assert world.said.words == [
        ("claim-1", True, "UsageWithinShare", f"uses 10.0 GiB of {gpu}, allocated 20.0 GiB"),
        ("claim-1", False, "ShareExceeded", f"uses 30.0 GiB of {gpu}, allocated 20.0 GiB"),
        ("claim-1", True, "UsageWithinShare", f"uses 20.0 GiB of {gpu}, allocated 20.0 GiB"),
    ]


def test_after_a_restart_what_was_said_before_is_not_left_standing(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 30)
    world.look(2)
    world.start()
    world.process(1, 0)
    assert world.look() == []
    assert [words[:2] for words in world.said.words] == [("claim-1", False), ("claim-1", True)]


def test_the_condition_holds_once_the_claim_keeps_to_its_share_of_every_gpu(world: World) -> None:
    world.claim(1, POD, gpus=(GPU, SECOND))
    world.process(1, 30, gpu=0)
    world.process(2, 25, gpu=1)
    assert world.look(2) == [("claim-1", "ShareExceeded")] * 2
    world.process(1, 0, gpu=0)
    assert world.look() == [("claim-1", "UsageWithinShare")]
    world.process(2, 0, gpu=1)
    assert world.look() == [("claim-1", "UsageWithinShare")]
    texts = [(holds, text.count("GPU-")) for _, holds, _, text in world.said.words]
    assert texts == [(False, 2), (False, 1), (True, 2)]


def test_claims_without_shares_cost_no_call(world: World) -> None:
    prepare(world.node, allocated_claims.an_allocated_claim())
    world.process(1, 70)
    assert world.look(3) == []
    assert (world.users.asked, world.node.reader.reads) == ([], 1)


def test_only_shared_gpus_are_asked(world: World) -> None:
    world.claim(1, POD)
    world.look(2)
    assert set(world.users.asked) == {ids.GpuUuid(world.node.nvml.machine.gpus[0].uuid)}


def test_claims_are_read_only_for_pods_that_are_not_known(world: World) -> None:
    first = world.claim(1, POD)
    world.claim(2, OTHER)
    previous = world.node.reader.reads
    assert world.look(2) == []
    assert world.node.reader.reads == previous
    world.process(1, 5)
    world.process(2, 5, STRANGER)
    world.look(5)
    assert world.node.reader.reads == previous + 2
    world.process(3, 5, OTHER)
    world.look(5)
    assert world.node.reader.reads == previous + 4
    release(world.node, first)
    world.look()
    prepare(world.node, first)
    previous = world.node.reader.reads
    world.look()
    assert world.node.reader.reads == previous + 1


def test_a_pod_that_comes_later_is_counted_with_the_first(world: World) -> None:
    claim = world.claim(1, POD)
    world.process(1, 15)
    world.look(2)
    both = (*claim.consumers, claims.Consumer("", "pods", "late", OTHER))
    world.node.allocate(dataclasses.replace(claim, consumers=both))
    world.process(2, 15, OTHER)
    assert world.look(2) == [("claim-1", "ShareExceeded")]
    assert "pid 2 (15.0 GiB) of pod default/late" in world.told.told[-1][3]


def test_a_hold_is_no_pod(world: World) -> None:
    hold = claims.Consumer("ration.dev", "holds", "of-mine", STRANGER)
    claim = world.claim(1, POD)
    world.node.allocate(dataclasses.replace(claim, consumers=(*claim.consumers, hold)))
    world.process(1, 5)
    world.process(2, 50, STRANGER)
    assert world.look(3) == []


def test_two_claims_of_one_pod_are_compared_with_what_they_were_given_together(
    world: World,
) -> None:
    world.claim(1, POD)
    world.claim(2, POD)
    world.process(1, 39)
    assert world.look(3) == []
    world.process(2, 2)
    assert world.look(2) == [("claim-1", "ShareExceeded"), ("claim-2", "ShareExceeded")]
    assert "allocated 40.0 GiB together with default/claim-2" in world.told.told[-2][3]
    assert world.over == 2


def test_an_api_server_that_is_away_raises_no_false_alarm(world: World) -> None:
    world.claim(1, POD)
    world.claim(2, POD)
    world.process(1, 35)
    world.node.reader.down = True
    previous = world.node.reader.reads
    assert world.look(3) == []
    assert world.node.reader.reads == previous + 3  # the others would wait in vain
    assert world.said.words == []
    world.node.reader.down = False
    assert world.look(3) == []
    world.process(1, 41)
    assert world.look(2) != []


def test_a_gpu_with_a_claim_of_a_pod_group_is_not_judged(world: World) -> None:
    shared = world.claim(1)
    group = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")
    world.node.reader.claims[shared.key] = dataclasses.replace(shared, consumers=(group,))
    world.claim(2, POD)
    world.process(1, 39)
    previous = world.node.reader.reads
    assert world.look(3) == []
    assert world.said.words == []
    assert world.node.reader.reads == previous + 2


def test_known_claims_are_watched_without_the_api_server(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 15)
    world.look()
    world.node.reader.down = True
    world.process(1, 25)
    assert world.look(2) == [("claim-1", "ShareExceeded")]
    world.process(1, 15)
    assert world.look() == [("claim-1", "UsageWithinShare")]


def test_while_a_pod_is_not_known_an_episode_neither_ends_nor_begins(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 25)
    world.look(2)
    world.node.reader.down = True
    world.process(2, 1, STRANGER)
    world.process(1, 15)
    assert world.look(3) == []
    assert world.over == 1
    world.node.reader.down = False
    assert world.look() == [("claim-1", "UsageWithinShare")]


def test_a_claim_deleted_from_the_api_keeps_its_known_pods(
    world: World,
) -> None:
    claim = world.claim(1, POD)
    world.claim(2, OTHER)
    world.process(1, 15)
    world.look()
    del world.node.reader.claims[claim.key]
    world.process(2, 25, OTHER)
    world.process(1, 25)
    assert world.look(2) == [("claim-1", "ShareExceeded"), ("claim-2", "ShareExceeded")]


def test_a_process_of_no_pod_is_nobodys(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 15)
    world.process(2, 30)
    del world.pods[2]
    assert world.look(3) == []


def test_a_gpu_that_cannot_be_read_keeps_what_is_known_and_hides_no_other(world: World) -> None:
    world.claim(1, POD)
    world.claim(2, OTHER, gpus=(SECOND,))
    world.process(1, 25)
    world.look(2)
    machine = world.node.nvml.machine
    machine.board(machine.gpus[0]).lost = True
    world.process(2, 25, OTHER, gpu=1)
    assert world.look(2) == [("claim-2", "ShareExceeded")]
    assert world.over == 2
    machine.board(machine.gpus[0]).lost = False
    assert world.look(3) == []


def test_a_claim_that_has_gone_is_forgotten(world: World) -> None:
    claim = world.claim(1, POD)
    world.process(1, 25)
    world.look(2)
    release(world.node, claim)
    assert world.look() == []
    assert world.over == 0
    prepare(world.node, claim)
    assert world.look(2) == [("claim-1", "ShareExceeded")]


def test_missing_memory_figures_raise_no_alarm(world: World) -> None:
    world.claim(1, POD)
    world.process(1, 25)
    machine = world.node.nvml.machine
    machine.board(machine.gpus[0]).veiled = True
    assert world.look(3) == []


def test_every_series_is_there_from_the_start(world: World) -> None:
    assert (world.over, world.metric("share_overruns_total")) == (0, 0)


def test_records_that_cannot_be_read_end_no_thread(world: World) -> None:
    stop = threading.Event()
    rounds = 0

    def records() -> tuple[()]:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            stop.set()
        raise errors.NodeFault("list", "records", "input/output error")

    world.watch._sources = dataclasses.replace(world.watch._sources, records=records)
    world.watch.run(stop)
    assert rounds == 2
    assert world.time.waits == [EVERY_S, EVERY_S]
