from pathlib import Path

import prometheus_client
import pytest

from driver import ids
from driver.devices.health import PollResult, XidEvent
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.health import events as health_events
from driver.kubeletplugin.health import health_watch
from driver.kubeletplugin.records import quarantine
from driver.resources.core import nodes
from tests.fakes import clock as fake_clock
from tests.fakes import health as fakes
from tests.fakes import plugin_shell

FIRST, SECOND = fakes.GPUS
WELL, LOST = PollResult(recovery=0), PollResult("GPU is lost")
GPU_IS_LOST, DRIVER_NOT_LOADED, UNKNOWN = 15, 9, 999


class World:
    """A watch over two scripted GPUs."""

    def __init__(self, base: Path, jitter: float = 0.0) -> None:
        self.clock = fake_clock.FakeClock()
        self.script = fakes.ScriptedWatcher(self.clock)
        self.told = plugin_shell.Events()
        self.registry = prometheus_client.CollectorRegistry()
        audience = health_events.EventTargets(ids.NodeName("node-a"), lambda: "", lambda *_: ())
        news = health_events.HealthEvents(
            plugin_events.EventReporter(self.told), audience, self.clock
        )
        self.kept = quarantine.Quarantine(base / "quarantine.json", self.clock)
        self.watch = health_watch.HealthWatch(
            self.script,
            health_watch.Settings(jitter=lambda: jitter),
            health_watch.Deps(news, metrics.Metrics(self.registry), self.clock, self.kept),
        )
        self.heard: list[list[str]] = []
        self.watch.subscribe(lambda _gpu: self.heard.append(self.values()))

    def values(self, gpu: ids.GpuUuid = FIRST) -> list[str]:
        return [ailment.value for ailment in self.watch.ailments().get(gpu, ())]

    def run(self, *script: fakes.Happening) -> None:
        self.script.script.extend(script)
        self.script.stop.clear()
        self.watch.run(self.script.stop)

    def becomes(self, signs: PollResult, gpu: ids.GpuUuid = FIRST) -> fakes.Happening:
        def change() -> None:
            self.script.now[gpu] = signs
            self.clock.advance(health_watch.Settings().poll_s)

        return change

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"dra_gpu_plugin_{name}", labels)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_all_gpus_are_polled_at_the_start_and_every_so_often(world: World) -> None:
    assert world.watch.problem() == "the GPUs have not been polled yet"
    world.run(*[None] * 11)
    assert world.script.polls == [(entry, gpu) for entry in (0, 5, 10) for gpu in fakes.GPUS]
    assert world.watch.problem() is None
    assert world.watch.ailments() == {FIRST: (), SECOND: ()}


def test_nodes_that_start_together_poll_apart(tmp_path: Path) -> None:
    world = World(tmp_path, jitter=0.3)
    world.run(*[None] * 8)
    assert sorted({time_s for time_s, _ in world.script.polls}) == [0, 1.5, 6.5]


def test_a_grave_xid_is_heard_of_before_the_gpu_is_asked(world: World) -> None:
    world.run(None)
    world.heard.clear()
    polled = len(world.script.polls)
    world.run(XidEvent(FIRST, 79))
    assert world.heard == [["79"]]
    assert world.script.polls[polled:][-1][1] == FIRST
    assert world.values(SECOND) == []
    assert world.sample("unhealthy_gpus") == 1
    assert world.sample("xids_total", **{"class": "node", "xid": "79"}) == 1


def test_findings_of_the_poll_after_an_xid_are_reported_too(world: World) -> None:
    poll_results = {FIRST: PollResult(recovery=1, repair_pending=True)}
    world.run(lambda: world.script.now.update(poll_results), XidEvent(FIRST, 154))
    assert world.values() == ["GPU_RESET", "pending"]
    assert [reason for _, _, reason, _ in world.told.told] == [
        "GpuNotice",
        "GpuUnhealthy",
        "GpuUnhealthy",
    ]


def test_an_error_of_a_program_changes_nothing_and_costs_no_poll(world: World) -> None:
    world.run(None)
    world.heard.clear()
    polls = len(world.script.polls)
    world.run(None, *[XidEvent(FIRST, 13)] * 50)
    assert world.heard == []
    assert len(world.script.polls) - polls == len(fakes.GPUS)
    assert [reason for _, _, reason, _ in world.told.told] == ["GpuApplicationError"]
    assert world.sample("xids_total", **{"class": "application", "xid": "13"}) == 50
    assert world.sample("unhealthy_gpus") == 0


def test_a_flood_of_grave_xids_is_one_ailment_and_few_polls(world: World) -> None:
    world.run(None)
    polls = len(world.script.polls)
    world.heard.clear()
    world.run(None, *[XidEvent(FIRST, 119)] * 500, None, None)
    at_start, after_the_first, a_second_later = len(fakes.GPUS), 1, len(fakes.GPUS)
    assert len(world.script.polls) - polls == at_start + after_the_first + a_second_later
    assert world.heard == [["119"]]
    assert len(world.told.told) == 1
    assert world.sample("xids_total", **{"class": "reset", "xid": "119"}) == 500


def test_the_age_of_the_last_loop_is_known(world: World) -> None:
    world.run(None)
    world.clock.advance(40)
    assert world.watch.idle_s() == 40


def test_codes_that_nobody_knows_share_one_series(world: World) -> None:
    world.run(XidEvent(FIRST, 997), XidEvent(FIRST, 998))
    assert world.sample("xids_total", **{"class": "informational", "xid": "other"}) == 2


def test_a_stirred_gpu_is_polled_at_once_and_an_unknown_one_means_all(world: World) -> None:
    changed: list[ids.GpuUuid] = []
    world.watch.on_gpu_changed(changed.append)
    world.watch.on_gpus_changed(lambda: changed.append(ids.GpuUuid("all")))
    world.run(ports.GpuChanged(SECOND), ports.GpuChanged(None), None)
    assert world.script.polls == [(0, gpu) for gpu in (FIRST, SECOND, SECOND, FIRST, SECOND)]
    assert changed == ["all", SECOND, "all"]  # first: NVML answers


def test_a_change_of_mig_is_reported_and_no_reason_to_poll(world: World) -> None:
    changed: list[ids.GpuUuid] = []
    world.watch.on_gpu_changed(changed.append)
    world.run(ports.MigChanged(SECOND), None)
    assert changed == [SECOND]
    assert world.script.polls == [(0, gpu) for gpu in (FIRST, SECOND)]


def test_the_lost_gpu_is_found_at_once_and_the_others_stay_watched(world: World) -> None:
    world.run(None)
    world.script.now[SECOND] = LOST
    began, closed = world.clock.elapsed_s, world.script.closed
    world.run(None, fakes.fault(GPU_IS_LOST), None)
    assert world.values(SECOND) == ["lost"]
    assert world.values(FIRST) == []
    assert world.clock.elapsed_s - began <= 2
    assert world.script.waited_for == {FIRST}
    assert world.script.closed == closed + 1, "only at the end: closing loses the others' events"


def test_a_gpu_that_is_back_is_well_and_watched_again(world: World) -> None:
    world.run(
        XidEvent(SECOND, 79), world.becomes(LOST, SECOND), None, world.becomes(WELL, SECOND), None
    )
    assert world.values(SECOND) == []
    assert world.script.waited_for == {FIRST, SECOND}
    assert [reason for _, _, reason, _ in world.told.good_news] == ["GpuRecovered"]


def test_a_wait_that_fails_again_and_again_is_tried_ever_more_slowly(world: World) -> None:
    world.run(*[fakes.fault(UNKNOWN)] * 6)
    assert world.clock.waits == [0.5, 1.0, 2.0, 4.0, 5.0]
    world.clock.waits.clear()
    world.run(None, fakes.fault(UNKNOWN), fakes.fault(UNKNOWN), None)
    assert world.clock.waits == [0.5]


def test_while_nvml_is_gone_the_last_truth_stays(world: World) -> None:
    world.run(XidEvent(FIRST, 79))
    problems: list[str | None] = []

    def absent_for_a_minute() -> None:
        if world.clock.elapsed_s < 60:
            problems.append(world.watch.problem())
            assert world.values() == ["79"]
            raise fakes.fault(DRIVER_NOT_LOADED)

    world.script.before_gpus = absent_for_a_minute
    world.run(fakes.fault(DRIVER_NOT_LOADED), None)
    assert "NVML error 9" in str(problems[-1])
    assert world.watch.problem() is None
    assert world.values() == ["79"]
    assert world.script.waited_for == {FIRST, SECOND}
    assert max(world.clock.waits) <= 5
    assert world.told.good_news == []


def test_a_node_without_gpus_waits_without_nvml(world: World) -> None:
    world.script.now.clear()

    def stop_in_the_end() -> None:
        if world.clock.elapsed_s > 20:
            world.script.stop.set()

    world.script.before_gpus = stop_in_the_end
    world.run()
    assert set(world.clock.waits) == {1.0}
    assert world.watch.ailments() == {}


def test_watching_ends_with_the_event_set_freed(world: World) -> None:
    world.run(None)
    assert world.script.closed == 1
    assert not world.script.watching


def test_a_gpu_that_fails_three_times_a_day_stays_tainted_until_cleared(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.run(*[world.becomes(LOST), None, world.becomes(WELL), None] * 3)
    assert world.values() == ["3"]
    assert (world.sample("unhealthy_gpus"), world.sample("quarantined_gpus")) == (0, 1)
    assert world.told.told[-1][2] == "GpuQuarantined"
    recovered = [reason for _, _, reason, _ in world.told.good_news]
    assert recovered == ["GpuRecovered"] * 2

    again = World(tmp_path)
    assert again.values() == ["3"]
    again.run(None, None)
    assert again.values() == ["3"]
    assert again.values(SECOND) == []
    assert again.told.told == []
    again.kept.update(nodes.Node(ids.NodeName("n"), "", clear_quarantine=FIRST))
    again.run(again.becomes(WELL), None)
    assert again.values() == []
    assert [reason for _, _, reason, _ in again.told.good_news] == ["GpuQuarantineCleared"]
    assert again.sample("quarantined_gpus") == 0


def test_a_fault_present_at_every_start_is_no_new_failure(tmp_path: Path) -> None:
    broken = PollResult(recovery=0, repair_failed=True)
    for _ in range(5):
        world = World(tmp_path)
        world.script.now[FIRST] = broken
        world.run(None, None)
        assert world.values() == ["failed"]


def test_an_error_of_a_program_is_no_failure_of_the_gpu(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(*[XidEvent(FIRST, 13), world.becomes(WELL), None] * 5)
    assert world.values() == []


def test_a_gpu_that_does_not_answer_holds_up_no_other_and_is_asked_again(world: World) -> None:
    world.run(None)
    world.script.now[FIRST] = None

    def answer() -> None:
        world.script.now[FIRST] = PollResult(hung="nvmlDeviceGetMemoryInfo")

    polled = len(world.script.polls)
    world.run(*[None] * 6, XidEvent(SECOND, 79), answer, None, None)
    gpu_uuids = [gpu for _, gpu in world.script.polls[polled:]]
    assert gpu_uuids.count(FIRST) > gpu_uuids.count(SECOND)
    assert world.values(SECOND) == ["79"]
    assert world.values() == ["hung"]
    assert "nvmlDeviceGetMemoryInfo does not return" in (world.watch.unhealthy_summary() or "")
    assert [reason for _, _, reason, _ in world.told.told] == ["GpuUnhealthy", "GpuUnhealthy"]
    world.script.now[FIRST] = WELL
    world.run(*[None] * 6)
    assert world.values() == []
    assert "GpuRecovered" in [reason for _, _, reason, _ in world.told.good_news]


def test_a_gpu_that_is_known_from_before_is_polled_though_it_is_not_found(world: World) -> None:
    world.script.now[FIRST] = PollResult(hung="nvmlDeviceGetHandleByPciBusId")
    world.script.before_gpus = lambda: None
    world.run(None)
    assert world.values() == ["hung"]
    assert world.watch.problem() is None, "the others' health is known"
