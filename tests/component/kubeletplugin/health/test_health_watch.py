"""Tests from a fault of a simulated GPU, by unmodified pynvml, to the reported event."""

import threading
from collections.abc import Iterator
from pathlib import Path

import prometheus_client
import pytest

from driver import clock, ids
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.health import events as health_events
from driver.kubeletplugin.health import health_watch
from driver.kubeletplugin.records import quarantine
from driver.kubeletplugin.rpc import health_stream
from simulator import builder, control, layout, machine, node, store
from tests.contract import worlds
from tests.fakes import health as fakes
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import plugin_shell, waiting

WHOLE = str(0xFFFFFFFF)
GPUS = [ids.GpuUuid(gpu.uuid) for gpu in machine.build("hgx-h100", seed="contract").gpus]
CLAIM = ports.ClaimRef("ml", "train", ids.ClaimUid("uid-1"))
WELL: dict[ids.GpuUuid, list[str]] = {gpu: [] for gpu in GPUS}


class Running:
    """A watch on its thread, and the machine under it."""

    def __init__(self, base: Path, watcher: fakes.Counted, events: plugin_shell.Events) -> None:
        self._watcher = watcher
        counters = metrics.Metrics(prometheus_client.CollectorRegistry())
        self.base = base
        self.told = events
        time = clock.SystemClock()
        audience = health_events.EventTargets(
            ids.NodeName("node-a"),
            lambda: "node-uid",
            lambda gpu, _: (CLAIM,) if gpu == GPUS[3] else (),
        )
        news = health_events.HealthEvents(plugin_events.EventReporter(events), audience, time)
        self.watch = health_watch.HealthWatch(
            watcher,
            health_watch.Settings(poll_s=0.05, wait_s=0.05),
            health_watch.Deps(
                news, counters, time, quarantine.Quarantine(base / "quarantine.json", time)
            ),
        )
        self.changes = 0
        self.watch.subscribe(self._changed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.watch.run, args=(self._stop,))

    def _changed(self, _gpu: ids.GpuUuid) -> None:
        self.changes += 1

    def start(self) -> None:
        self._thread.start()
        # What was found is there a moment before it is told.
        waiting.until(lambda: self.found() == WELL and self.changes == len(GPUS))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(5)
        assert not self._thread.is_alive()

    def found(self) -> dict[ids.GpuUuid, list[str]]:
        """The ailments of every GPU, as their values."""
        return {
            gpu: [ailment.value for ailment in ailments]
            for gpu, ailments in self.watch.ailments().items()
        }

    def becomes(self, *values: str, gpu: int = 3) -> None:
        """Wait until these ail that GPU, and nothing ails the others."""
        expected = {**WELL, GPUS[gpu]: list(values)}
        waiting.until(lambda: self.found() == expected, within_s=10)
        self.polled()

    def polled(self) -> None:
        """Wait until every GPU has been polled again: a reset that none could see is not seen."""
        enough = self._watcher.polls + 2 * len(GPUS)
        waiting.until(lambda: self._watcher.polls >= enough)

    def xid(self, code: int, gpu: int = 3) -> None:
        control.send(self.base, "xid", GPUS[gpu], str(code), WHOLE, WHOLE)

    def fault(self, call: str, *arguments: str, gpu: int = 3) -> None:
        control.send(self.base, call, GPUS[gpu], *arguments)

    def reasons(self) -> list[tuple[str, str]]:
        return [(name, reason) for _, name, reason, _ in list(self.told.told)]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    with worlds.running(tmp_path, "hgx-h100") as path:
        yield path


@pytest.fixture
def running(library: Path, tmp_path: Path, events: plugin_shell.Events) -> Iterator[Running]:
    with fakes.simulated(library) as watcher:
        created = Running(tmp_path, watcher, events)
        created.start()
        yield created
        created.stop()


@pytest.mark.parametrize("code", [79, 48, 119])
def test_a_grave_xid_ails_its_gpu_alone_until_the_gpu_is_reset(running: Running, code: int) -> None:
    running.xid(code)
    running.becomes(str(code))
    assert running.reasons() == [("node-a", "GpuUnhealthy"), ("train", "GpuUnhealthy")]
    running.fault("restore")
    running.becomes()
    waiting.until(lambda: len(running.told.good_news) == 2)
    assert {reason for _, _, reason, _ in running.told.good_news} == {"GpuRecovered"}


def test_a_recovery_action_is_reported_and_clears_its_xid(
    running: Running,
) -> None:
    running.xid(48)
    running.fault("recovery", "GPU_RESET")
    running.becomes("48", "GPU_RESET")
    running.fault("recovery", "NONE")
    running.becomes()


@pytest.mark.parametrize(
    ("code", "reason"), [(63, "GpuNotice"), (94, "GpuNotice"), (13, "GpuApplicationError")]
)
def test_an_xid_that_asks_for_nothing_is_told_and_changes_nothing(
    running: Running, code: int, reason: str
) -> None:
    changes = running.changes
    for _ in range(5):
        running.xid(code)
    running.xid(13, gpu=0)
    waiting.until(lambda: len(running.reasons()) == 3)
    assert running.reasons()[:2] == [("node-a", reason), ("train", reason)]
    assert running.found() == WELL
    assert running.changes == changes


def test_a_lost_gpu_is_unhealthy_alone_and_healthy_again_when_back(
    running: Running,
) -> None:
    running.fault("lose")
    running.becomes("lost")
    running.xid(48, gpu=0)
    waiting.until(lambda: running.found()[GPUS[0]] == ["48"])
    running.polled()
    running.fault("restore", gpu=0)
    running.fault("restore")
    running.becomes()
    running.xid(119)
    running.becomes("119")


def test_a_gpu_that_leaves_the_bus_ails_until_it_returns(running: Running) -> None:
    running.fault("remove")
    running.becomes("lost")
    running.fault("restore")
    running.becomes()


def test_a_row_to_remap_ails_until_the_reset_and_a_failed_one_for_good(running: Running) -> None:
    running.fault("remap", "1", "0")
    running.becomes("pending")
    running.fault("restore")
    running.becomes()
    running.fault("remap", "0", "1")
    running.becomes("failed")
    running.fault("restore")
    running.xid(13, gpu=0)
    waiting.until(lambda: ("node-a", "GpuApplicationError") in running.reasons())
    running.becomes("failed")


def test_the_kubelet_hears_of_a_fault_and_of_its_end(
    running: Running,
    shell: plugin_shell.Shell,
    kubelet: fake_kubelet.Kubelet,
    devices: list[health_stream.DeviceHealth],
    streams: health_stream.HealthStreams,
) -> None:
    del shell

    def show(_gpu: ids.GpuUuid) -> None:
        ailments = running.watch.ailments()[GPUS[3]]
        text = "; ".join(ailment.message for ailment in ailments)
        devices[:] = [health_stream.DeviceHealth("node-a", "gpu-0", not ailments, text)]
        streams.notify()

    running.watch.subscribe(show)
    stream = kubelet.register().watch_health()
    assert next(stream).devices[0].health == 1
    running.xid(79)
    sick = next(stream).devices[0]
    assert (sick.health, sick.message[:7]) == (2, "Xid 79:")
    running.polled()
    running.fault("restore")
    assert next(stream).devices[0].health == 1


def test_while_nvml_is_gone_the_truth_stays_and_then_it_is_watched_again(
    tmp_path: Path, events: plugin_shell.Events
) -> None:
    builder.build(tmp_path, store.create(tmp_path, "hgx-h100", "contract"))
    first = node.Node(tmp_path)
    first.start()
    library = layout.Layout(tmp_path).libraries / "libnvidia-ml.so.1"
    with fakes.simulated(library) as watcher:
        running = Running(tmp_path, watcher, events)
        running.start()
        running.fault("remap", "1", "0")
        running.becomes("pending")
        first.stop()
        waiting.until(lambda: running.watch.problem() is not None)
        assert running.found() == {**WELL, GPUS[3]: ["pending"]}
        second = node.Node(tmp_path)
        second.start()
        waiting.until(lambda: running.watch.problem() is None, within_s=10)
        running.becomes("pending")
        running.xid(48, gpu=0)
        waiting.until(lambda: running.found()[GPUS[0]] == ["48"])
        running.stop()
    second.stop()


def test_a_gpu_that_is_lost_three_times_is_quarantined_although_healthy(
    running: Running,
) -> None:
    for count in range(3):
        running.fault("lose")
        running.becomes("lost")
        running.fault("restore")
        running.becomes(*(["3"] if count == 2 else []))
    text = (running.base / "quarantine.json").read_text()
    assert GPUS[3] in text
    assert ("node-a", "GpuQuarantined") in running.reasons()
    assert ("train", "GpuQuarantined") in running.reasons()
