"""Pods that are force-deleted, and whose GPUs the API gives on at once, before the node let go.

Real sockets, the real core and MPS supervisor, a simulated machine; the kubelet is a fake, and so
is what the API says of claims.
"""

import dataclasses
import itertools
import os
import random  # noqa: TID251 - the same every time
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from driver import clock, ids
from driver.devices import faces
from driver.kubeletplugin import composition, ports
from driver.kubeletplugin.prepare import release_wait
from driver.kubeletplugin.rpc import dra_service, health_stream
from driver.resources import quantities
from simulator import state, store
from tests.fakes import gpunode, mpsnode, plugin_shell, supervised, waiting
from tests.fakes import kubelet as fake_kubelet
from tests.support.builders import allocated_claims

if TYPE_CHECKING:
    from driver.resources.dra import claims

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
GPUS, CYCLES = 8, int(os.environ.get("RATION_REUSES", "25"))
"""Of each GPU; the gate asks for 63, five hundred in all."""
LONG = {
    "apiVersion": "resource.ration.dev/v1alpha1",
    "kind": "GpuConfig",
    "sharing": {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}},
}
FACES = ("", "", "-mig-3g40gb-4", "-mig-1g10gb-4", "-mps", "-ts")
"""In turn: whatever comes next has no room beside what was there."""
AMOUNTS = {"memory": quantities.parse("20Gi"), "compute": quantities.parse("25")}
EXCLUSIVE_PROCESS, LONG_SLICE = 3, 3


@pytest.fixture
def node() -> Iterator[mpsnode.Node]:
    with supervised.node() as created:
        yield created


@pytest.fixture
def reader() -> gpunode.FakeReader:
    return gpunode.FakeReader()


@pytest.fixture
def wait_s() -> float:
    return release_wait.WAIT_S


@pytest.fixture
def core(
    node: mpsnode.Node, reader: gpunode.FakeReader, wait_s: float
) -> Iterator[composition.Core]:
    with supervised.core(node, reader, wait_s) as created:
        yield created


@pytest.fixture
def plugin(
    root: Path,
    core: composition.Core,
    streams: health_stream.HealthStreams,
    tools: dra_service.Deps,
) -> Iterator[fake_kubelet.Plugin]:
    """The core behind its sockets, as the kubelet has it."""
    shell = plugin_shell.Shell(
        root, dra_service.DraService(core.preparation, tools), streams, tools.metrics
    )
    shell.start()
    try:
        with fake_kubelet.Kubelet(root) as kubelet:
            yield kubelet.register()
    finally:
        shell.stop()


class Reuse:
    """Claims of one GPU, one after the other; each comes while the one before is still there."""

    def __init__(
        self, number: int, device: str, reader: gpunode.FakeReader, plugin: fake_kubelet.Plugin
    ) -> None:
        self._number = number
        self._device = device
        self._reader = reader
        self._plugin = plugin
        self._made = itertools.count()
        self._moments = random.Random(number)  # noqa: S311 - no secret

    def claim(self, face: str) -> ports.ClaimRef:
        """A new one, that the API has given a face of the GPU."""
        result = allocated_claims.a_result(f"{self._device}{face}")
        if face in {"-mps", "-ts"}:
            result = dataclasses.replace(result, consumed=AMOUNTS)
        text = f"{self._number:04d}{next(self._made):08d}"
        uid = ids.ClaimUid(f"5c7d1f6e-0000-4000-8000-{text}")
        configs = [LONG] if face == "-ts" else []
        claim = allocated_claims.an_allocated_claim(
            result, uid=uid, name=f"c-{text}", configs=configs
        )
        self._reader.claims[claim.key] = claim
        return ports.ClaimRef(claim.namespace, claim.name, uid)

    def free(self, ref: ports.ClaimRef, *, deleted: bool) -> None:
        """Free the claim as the API does at once when a pod is force-deleted."""
        key = f"{ref.namespace}/{ref.name}"
        gone: claims.Claim = self._reader.claims.pop(key)
        if not deleted:
            self._reader.claims[key] = dataclasses.replace(gone, allocation=None)

    def next(self, previous: ports.ClaimRef, face: str, *, deleted: bool) -> ports.ClaimRef:
        """The claim of the next pod, prepared before the last one's is unprepared."""
        self.free(previous, deleted=deleted)
        ref = self.claim(face)
        prepared = self._plugin.start_prepare(ref)
        clock.SystemClock().wait(threading.Event(), self._moments.uniform(0.01, 0.1))
        assert not prepared.done()
        released = self._plugin.start_unprepare(previous)
        assert prepared.result().claims[ref.uid].error == ""
        assert released.result().claims[previous.uid].error == ""
        return ref

    def first(self) -> ports.ClaimRef:
        ref = self.claim("")
        assert self._plugin.prepare(ref)[ref.uid].error == ""
        return ref


def setting(board: state.Board) -> tuple[int, int, int]:
    """Whom the hardware is set for: instances, compute mode, time slice."""
    return len(board.instances), board.compute_mode, board.timeslice


def expected(face: str) -> tuple[int, int, int]:
    return (
        int("-mig-" in face),
        EXCLUSIVE_PROCESS if face == "-mps" else 0,
        LONG_SLICE if face == "-ts" else 0,
    )


class Overlaps:
    """Looks all the time whether a GPU is two claims' at once, by the records."""

    def __init__(self, records: Callable[[], tuple[Any, ...]]) -> None:
        self._records = records
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.looks = 0
        self.found: list[list[str]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _look(self) -> None:
        while not self._stop.is_set():
            held = [gpu for record in self._records() for gpu in record.gpus]
            self.looks += 1
            if len(held) != len(set(held)):
                self.found.append(held)


def test_gpus_that_are_given_on_before_they_are_let_go_are_never_two_claims(
    node: mpsnode.Node,
    core: composition.Core,
    reader: gpunode.FakeReader,
    plugin: fake_kubelet.Plugin,
) -> None:
    devices = [faces.device_name(gpu.pci) for gpu in core.read_gpus().gpus]

    def endure(number: int) -> int:
        reuse = Reuse(number, devices[number], reader, plugin)
        ref = reuse.first()
        turns = itertools.islice(itertools.cycle(FACES), number, number + CYCLES)
        for count, face in enumerate(turns):
            ref = reuse.next(ref, face, deleted=count % 2 == 0)
            machine = store.load(node.base)
            assert setting(machine.board(machine.gpus[number])) == expected(face)
            assert [
                record.uid for record in core.records() if machine.gpus[number].uuid in record.gpus
            ] == [ref.uid]
        assert plugin.unprepare(ref)[ref.uid].error == ""
        return CYCLES

    with futures.ThreadPoolExecutor(GPUS) as pool, Overlaps(core.records) as overlaps:
        assert sum(pool.map(endure, range(GPUS))) == GPUS * CYCLES
    assert overlaps.looks > GPUS * CYCLES
    assert overlaps.found == []
    assert core.records() == ()
    load = store.load(node.base)
    assert {setting(load.board(gpu)) for gpu in load.gpus} == {(0, 0, 0)}
    assert not list((node.own / "cdi").iterdir())


@pytest.mark.parametrize("wait_s", [0.5])
@pytest.mark.parametrize("face", ["", "-mig-1g10gb-4", "-mps", "-ts"])
def test_a_claim_is_refused_after_the_wait_when_the_previous_is_never_released(
    node: mpsnode.Node,
    core: composition.Core,
    reader: gpunode.FakeReader,
    plugin: fake_kubelet.Plugin,
    face: str,
) -> None:
    reuse = Reuse(0, faces.device_name(core.read_gpus().gpus[0].pci), reader, plugin)
    first = reuse.first()
    reuse.free(first, deleted=True)
    second = reuse.claim(face)
    refused = plugin.prepare(second)[second.uid].error
    assert "is held by claim" in refused
    assert first.uid in refused
    assert [record.uid for record in core.records()] == [first.uid]
    machine = store.load(node.base)
    assert setting(machine.board(machine.gpus[0])) == (0, 0, 0)
    assert plugin.unprepare(first)[first.uid].error == ""
    assert plugin.prepare(second)[second.uid].error == ""
    waiting.until(lambda: [record.uid for record in core.records()] == [second.uid])
    assert plugin.unprepare(second)[second.uid].error == ""
