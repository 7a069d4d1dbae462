"""The calls of one GPU hang, at every moment, under a real plugin process; the others go on.

RATION_HANG_SECONDS=600 has every hang last so long, at the product's own patience: by hand.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import clock, names
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from simulator import control, layout, store
from tests.fakes import battering, waiting
from tests.fakes.apiserver import server as api_server

LONGER_S = float(os.environ.get("RATION_HANG_SECONDS", "0"))
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="MIG and MPS are root's"),
    pytest.mark.timeout(300 + 3 * LONGER_S),
]
NODE = "node-k"
TIME = clock.SystemClock()
PATIENCE_S, POLL_S = (8.0, 5.0) if LONGER_S else (2.0, 1.0)
TOLD_S = 15.0
OTHERS = ("whole", "ts", "mig")
FACES = ("whole", "ts", "mps", "mig")
DEFAULT, EXCLUSIVE = 0, 3
SET_MODE = """
import sys
import pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(int(sys.argv[1]))
pynvml.nvmlDeviceSetComputeMode(gpu, int(sys.argv[2]))
"""


class World:
    """A node whose GPUs 4, 5 and 6 are the others'; `spent` is how long their calls took, in s."""

    def __init__(self, node: battering.Battered, api: api_server.ApiServer) -> None:
        self.node, self._api = node, api
        offered = node.published()
        self.whole = [name for name in offered if name.count("-") == 4]
        part = next(name for name in offered if name.startswith(f"{self.whole[6]}-mig-1g"))
        self._others = dict(zip(OTHERS, (self.whole[4], f"{self.whole[5]}-ts", part), strict=True))
        self.spent: dict[tuple[str, str], list[float]] = {}
        self._made = 0

    def claim(self, device: str) -> ports.ClaimRef:
        self._made += 1
        return self.node.claim(f"claim-{self._made}", device)

    def others_go(self, when: str) -> None:
        """Prepare and unprepare one claim of each of the others, and note how long it took."""
        for mode, device in self._others.items():
            ref = self.claim(device)
            for call in ("prepare", "unprepare"):
                began = TIME.monotonic()
                self.succeeds(call, ref)
                self.spent.setdefault((when, f"{mode} {call}"), []).append(TIME.monotonic() - began)
            self.node.forget((ref,))

    def succeeds(self, call: str, ref: ports.ClaimRef) -> None:
        assert self.asked(call, ref) == ""

    def asked(self, call: str, ref: ports.ClaimRef) -> str:
        """The error of one call."""
        answer = self.node.start_call(call, (ref,)).result(60)
        return str(answer.claims[ref.uid].error)

    def taints(self, device: str) -> dict[str, str]:
        slices = self._api.all(gvr.RESOURCE_SLICES)
        listed = (entry for each in slices for entry in each["spec"].get("devices") or ())
        (mine,) = (entry.get("taints") or () for entry in listed if entry["name"] == device)
        return {taint["key"]: taint["value"] for taint in mine}

    def is_tainted(self, device: str) -> bool:
        return self.taints(device).get(names.TAINT_LOST) == "hung"

    def told(self, reason: str) -> list[str]:
        events = self._api.all(gvr.EVENTS)
        return [event["note"] for event in events if event["reason"] == reason]

    def page(self, name: str) -> tuple[int, str]:
        port = re.findall(r'"metrics_port": ?(\d+)', self.node.log.read_text())[-1]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    @contextlib.contextmanager
    def hanging(self, minor: int) -> Iterator[None]:
        """The GPU hangs until the exit, where it is told, and after which it is well again.

        The same process serves all the while, and no probe would have it restarted.
        """
        device, process = self.whole[minor], self.node.processes[-1]
        began = TIME.monotonic()
        control.send(self.node.base, "hang", str(minor), "*")
        try:
            yield
            waiting.until(lambda: self.is_tainted(device))
            say(f"GPU {minor}: tainted {TIME.monotonic() - began:.1f} s after the hang began")
            assert self.node.processes[-1] is not process or TIME.monotonic() - began < TOLD_S
            self._check(device)
            while TIME.monotonic() - began < LONGER_S:
                self.others_go("hanging")
                self._check(device)
        finally:
            control.send(self.node.base, "hang", str(minor), "")
        waiting.until(lambda: names.TAINT_LOST not in self.taints(device), TOLD_S + 20)
        say(f"GPU {minor}: hung for {TIME.monotonic() - began:.1f} s, and is well again")
        assert self.node.processes[-1].poll() is None

    def _check(self, device: str) -> None:
        healthy, page = self.page("healthz")
        assert healthy == 200, page
        ready, page = self.page("readyz")
        assert ready == 200, page
        assert "does not return" in page
        tainted = [name for name in self.whole if names.TAINT_LOST in self.taints(name)]
        assert tainted == [device]

    def report(self) -> None:
        """The others' calls took no longer; seconds on a busy machine are noisy: with slack."""
        for (when, description), quiet in self.spent.items():
            if when == "quiet":
                hanging = self.spent["hanging", description]
                say(f"{description}: {_figures(quiet)} quiet, {_figures(hanging)} beside a hang")
                assert max(hanging) < 2 * max(quiet) + PATIENCE_S / 2, description


def say(text: str) -> None:
    """Shown by `pytest -s`, and with a failure."""
    sys.stdout.write(f"{text}\n")


def _figures(results: list[float]) -> str:
    ordered = sorted(results)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"p50 {ordered[len(ordered) // 2]:.3f} s, p99 {p99:.3f} s of {len(ordered)}"


@pytest.fixture
def world(
    api: api_server.ApiServer,
    kube: client.KubeClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    monkeypatch.setenv("RATION_NVML_PATIENCE_SECONDS", str(PATIENCE_S))
    monkeypatch.setenv("RATION_HEALTH_POLL_SECONDS", str(POLL_S))
    api.put(gvr.NODES, {"metadata": {"name": NODE, "uid": "node-uid"}})
    with battering.battered(kube, api.kubeconfig(tmp_path), NODE) as node:
        created = World(node, api)
        waiting.until(lambda: created.page("readyz")[0] == 200)
        began = TIME.monotonic()
        for _ in range(8):
            created.others_go("quiet")
        while TIME.monotonic() - began < min(LONGER_S, 60):
            created.others_go("quiet")
        yield created
        if ("hanging", "whole prepare") in created.spent:
            created.report()


# Covers L-1.
@pytest.mark.parametrize("face", FACES)
def test_a_gpu_hanging_in_prepare_or_unprepare_does_not_block_others(
    world: World, face: str
) -> None:
    device = world.node.devices[face]
    minor = next(n for n, name in enumerate(world.whole) if device.startswith(name))
    ref = world.claim(device)
    with world.hanging(minor):
        call = world.node.start_call("prepare", (ref,))
        for _ in range(4):
            world.others_go("hanging")
        error = call.result(60).claims[ref.uid].error
        assert ("hangs" in error) or (face == "whole" and not error), error
        waiting.until(lambda: world.is_tainted(world.whole[minor]))
        late = world.claim(device)
        began = TIME.monotonic()
        assert "hangs" in world.asked("prepare", late)
        assert TIME.monotonic() - began < PATIENCE_S, "nobody calls into a GPU that hangs"
        world.succeeds("unprepare", late)
        assert any("does not return" in text for text in world.told("GpuUnhealthy"))
    world.node.again("prepare", (ref,))
    with world.hanging(minor):
        call = world.node.start_call("unprepare", (ref,))
        for _ in range(4):
            world.others_go("hanging")
        error = call.result(60).claims[ref.uid].error
        assert ("hangs" in error) if face == "mig" else not error, error
    world.node.again("unprepare", (ref,))
    waiting.value(world.node.left, lambda left: not left, 30)
    again = world.claim(device)
    world.node.again("prepare", (again,))
    world.node.again("unprepare", (again,))
    waiting.value(world.node.left, lambda left: not left, 30)


def test_a_plugin_that_starts_beside_a_hang_serves_the_others_and_taints_the_sick(
    world: World,
) -> None:
    claim_refs = {face: world.claim(world.whole[number]) for number, face in enumerate(("a", "b"))}
    for ref in claim_refs.values():
        world.succeeds("prepare", ref)
    with world.hanging(1):
        world.node.kill()
        began = TIME.monotonic()
        world.node.start()
        say(f"registered {TIME.monotonic() - began:.1f} s after its start beside a hang")
        assert TIME.monotonic() - began < PATIENCE_S + 20
        world.others_go("first of a process")
        for _ in range(3):
            world.others_go("hanging")
        for ref in claim_refs.values():
            world.succeeds("prepare", ref)
            world.succeeds("unprepare", ref)
        waiting.until(lambda: world.page("readyz")[0] == 200)
    again = world.claim(world.whole[1])
    world.node.again("prepare", (again,))
    world.node.again("unprepare", (again,))
    assert world.node.left() == []


# Covers L-3.
def test_forty_claims_of_a_gpu_that_hangs_keep_no_other_waiting(world: World) -> None:
    refs = tuple(world.claim(world.node.devices["mig"]) for _ in range(40))
    with world.hanging(2):
        calls = [world.node.start_call("prepare", (ref,)) for ref in refs]
        for _ in range(4):
            world.others_go("hanging")
        for call, ref in zip(calls, refs, strict=True):
            assert call.result(60).claims[ref.uid].error
        for ref in refs:
            world.succeeds("unprepare", ref)


def test_a_time_slice_whose_program_hangs_is_given_up_and_the_others_go_on(world: World) -> None:
    control.send(world.node.base, "hang", "3", "nvidia_smi")
    ref = world.claim(world.node.devices["ts"])
    call = world.node.start_call("prepare", (ref,))
    for _ in range(4):
        world.others_go("hanging")
    assert call.result(60).claims[ref.uid].error
    control.send(world.node.base, "hang", "3", "")
    world.node.again("prepare", (ref,))
    world.node.again("unprepare", (ref,))
    machine = store.load(world.node.base)
    assert machine.board(machine.gpus[3]).timeslice == 0
    assert threading.active_count() < 100


def compute_mode(base: Path, minor: int) -> int:
    machine = store.load(base)
    return int(machine.board(machine.gpus[minor]).compute_mode)


def set_compute_mode(base: Path, minor: int, mode: int) -> None:
    """Set the compute mode as an administrator does."""
    libraries = {"LD_LIBRARY_PATH": str(layout.Layout(base).libraries)}
    command = [sys.executable, "-c", SET_MODE, str(minor), str(mode)]
    subprocess.run(command, env={**os.environ, **libraries}, check=True)


@pytest.mark.parametrize(("face", "minor", "shared"), [("ts", 3, DEFAULT), ("mps", 1, EXCLUSIVE)])
def test_the_administrators_compute_mode_is_there_again_after_a_hang_under_unprepare(
    world: World, face: str, minor: int, shared: int
) -> None:
    base, device = world.node.base, world.node.devices[face]
    set_compute_mode(base, minor, EXCLUSIVE)
    refs = (world.claim(device), world.claim(device))
    for ref in refs:
        world.succeeds("prepare", ref)
    assert compute_mode(base, minor) == shared
    with world.hanging(minor):
        for ref in refs:
            world.succeeds("unprepare", ref)
    waiting.until(lambda: compute_mode(base, minor) == EXCLUSIVE, 90)
    again = world.claim(device)
    world.node.again("prepare", (again,))
    world.node.again("unprepare", (again,))
    assert compute_mode(base, minor) == EXCLUSIVE
