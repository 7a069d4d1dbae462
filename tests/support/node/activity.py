"""A node whose GPUs are at work, for tests of the activity watch."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.usage import activity_watch
from driver.resources.dra import claims
from simulator import control, library
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, users
from tests.support.builders import allocated_claims
from tests.support.node.shares import GPU, a_share, prepare

GIB = 1 << 30
POD, OTHER = (ids.PodUid(f"pod-{name}") for name in ("mine", "other"))
WHOLE = 0xFFFFFFFF


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
        answer = self.node.nvml.library
        self.workers = Workers(answer)
        node = activity_watch.ActivitySources(
            self.node.process().executor.records.list_records,
            users.FakeUsers(answer),
            self.workers,
            lambda pid: (self.pods[pid],) if pid in self.pods else (),
            self.node.reader,
            users.FakeMeter(answer),
        )
        self.watch = activity_watch.ActivityWatch(node, self.told, self.time)

    def whole(self, gpu: str = GPU, number: int = 100) -> claims.Claim:
        uid = allocated_claims.numbered_uid(number)
        name = f"whole-{number}" if gpu != GPU else "whole"
        claim = allocated_claims.an_allocated_claim(
            allocated_claims.a_result(gpu), uid=uid, name=name
        )
        assert isinstance(prepare(self.node, claim), ports.Prepared)
        return claim

    def share(self, number: int, *pods: ids.PodUid, **more: Any) -> claims.Claim:
        consumers = tuple(claims.Consumer("", "pods", f"of-{pod}", pod) for pod in pods)
        claim = dataclasses.replace(a_share(number, **more), consumers=consumers)
        assert isinstance(prepare(self.node, claim), ports.Prepared)
        return claim

    def process(self, pid: int, percent: int, gib: int = 1, pod: ids.PodUid | None = POD) -> None:
        source = control.Control(self.machine)
        source.process(self.machine.gpus[0].uuid, pid, gib * GIB, WHOLE, WHOLE)
        source.work(self.machine.gpus[0].uuid, pid, percent)
        if pod:
            self.pods[pid] = pod

    def look(self, seconds: float = 60.0) -> dict[str, tuple[int | None, int, str]]:
        """A look that much later: what was told of each claim's first device."""
        self.time.advance(seconds)
        previous = len(self.told.words)
        self.watch.observe()
        result = {}
        for name, seen in self.told.words[previous:]:
            observed_activity = next(iter(seen.values()))
            result[name] = (
                observed_activity.percent,
                observed_activity.peak_bytes // GIB,
                observed_activity.last_busy,
            )
        return result
