"""The GPUs' health as a test tells it, and the real watcher over a simulated library."""

import collections
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pynvml

from driver import errors, ids
from driver.devices import health
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import gpu_calls
from driver.kubeletplugin.nvml import health as nvml_health
from tests.fakes import clock as fake_clock
from tests.fakes import loading

GPUS = (ids.GpuUuid("GPU-0"), ids.GpuUuid("GPU-1"))
Happening = (
    health.XidEvent
    | ports.GpuChanged
    | ports.MigChanged
    | errors.DeviceFault
    | Callable[[], None]
    | None
)
"""An event, a fault of the wait, something to do instead of waiting, or a wait for nothing."""


def fault(code: int) -> errors.DeviceFault:
    return errors.DeviceFault("", "nvmlEventSetWait_v2", code, "no")


class NoGpus:
    """There is nothing to watch."""

    watching = False

    def readable_gpus(self) -> tuple[ids.GpuUuid, ...]:
        return ()

    def watch(self, gpus: Iterable[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        assert not tuple(gpus)
        return ()

    def wait(self, timeout_s: float) -> None:
        raise AssertionError(f"nothing is watched, yet waited for {timeout_s} s")

    def known_gpus(self) -> tuple[ids.GpuUuid, ...]:
        return ()

    def poll(self, gpu: ids.GpuUuid) -> health.PollResult:
        raise AssertionError(f"{gpu} is not there")

    def close(self) -> None:
        """Nothing is held."""


class ScriptedWatcher:
    """Two GPUs. Waits take what is in `script` one by one, and set `stop` at its end."""

    def __init__(self, clock: fake_clock.FakeClock) -> None:
        self.script: collections.deque[Happening] = collections.deque()
        self.stop = threading.Event()
        self.now: dict[ids.GpuUuid, health.PollResult | None] = dict.fromkeys(
            GPUS, health.PollResult(recovery=0)
        )
        self.before_gpus: Callable[[], None] = lambda: None
        self.waited_for: set[ids.GpuUuid] = set()
        self.watched: set[ids.GpuUuid] = set()
        self.polls: list[tuple[float, ids.GpuUuid]] = []
        self.closed = 0
        self._clock = clock

    @property
    def watching(self) -> bool:
        return bool(self.watched)

    def readable_gpus(self) -> tuple[ids.GpuUuid, ...]:
        self.before_gpus()
        return tuple(
            gpu
            for gpu, signs in self.now.items()
            if signs is None or not (signs.problem or signs.hung)
        )

    def watch(self, gpus: Iterable[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        previous, self.watched = self.watched, set(gpus)
        return tuple(health.Watched(gpu) for gpu in sorted(self.watched - previous))

    def wait(
        self, timeout_s: float
    ) -> health.XidEvent | ports.GpuChanged | ports.MigChanged | None:
        self.waited_for = set(self.watched)
        if not self.script:
            self.stop.set()
            return None
        match self.script.popleft():
            case errors.DeviceFault() as raised:
                raise raised
            case None:
                self._clock.advance(timeout_s)
            case health.XidEvent() | ports.GpuChanged() | ports.MigChanged() as event:
                return event
            case act:
                act()
        return None

    def known_gpus(self) -> tuple[ids.GpuUuid, ...]:
        return tuple(self.now)

    def poll(self, gpu: ids.GpuUuid) -> health.PollResult | None:
        self.polls.append((self._clock.elapsed_s, gpu))
        return self.now[gpu]

    def close(self) -> None:
        self.watched = set()
        self.closed += 1


class Counted(nvml_health.NvmlHealth):
    """The real watcher, and how many polls it has finished."""

    polls = 0

    def poll(self, gpu: ids.GpuUuid) -> health.PollResult | None:
        poll_result = super().poll(gpu)
        self.polls += poll_result is not None
        return poll_result


@contextlib.contextmanager
def simulated(library: Path) -> Iterator[Counted]:
    """The real watcher, over pynvml and that library."""

    def start() -> None:
        loading.load(library)
        try:
            pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
        except pynvml.NVMLError as e:
            raise errors.DeviceFault("", "nvmlInitWithFlags", e.value, str(e)) from e

    def end() -> None:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()

    session = gpu_calls.GpuSession(start, end)
    try:
        yield Counted(session, patience_s=20)
    finally:
        session.close()
        loading.forget()
