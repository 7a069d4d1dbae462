"""A plugin's process that is killed at any moment, under calls of a kubelet's, and started again.

The process, its sockets, the supervisor and the machine's library are the real ones; the kubelet
is not, and the API server is whichever the client is of.
"""

import contextlib
import random  # noqa: TID251 - the same every time
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from driver import clock, ids
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from simulator import layout, store
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import mpsnode, packaged, waiting

HERE = Path(__file__).parents[2]
DRIVER = "gpu.ration.dev"
NAMESPACE = "default"
PLUGIN, DOOMED = "driver.kubeletplugin", "tests.fakes.doomed_plugin"
WITHIN_S = 60.0
SHARE = {"memory": "20Gi", "compute": "25"}
LONG = {
    "apiVersion": "resource.ration.dev/v1alpha1",
    "kind": "GpuConfig",
    "sharing": {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}},
}


@contextlib.contextmanager
def battered(
    kube: client.KubeClient, kubeconfig: Path, name: str, program: str = PLUGIN
) -> Iterator["Battered"]:
    """A node on a machine of its own; at the exit all of it has ended, however far it came.

    `program` is the plugin's module: the product's, or DOOMED for `perish`.
    """
    with mpsnode.machine() as base, contextlib.ExitStack() as ends:
        node = mpsnode.Node(base)
        ends.callback(node.close)
        created = Battered(node, kube, kubeconfig, name, program)
        ends.callback(created.close)
        created.begin()
        yield created


class Battered:
    """A node of four claims: a whole GPU, an MPS share, a MIG device and a time-slice.

    `devices` names one of each face, each of a GPU of its own, which has the face's place there as
    its minor number. `processes` are all the plugin's ever, the newest last.
    """

    def __init__(
        self,
        node: mpsnode.Node,
        kube: client.KubeClient,
        kubeconfig: Path,
        name: str,
        program: str,
    ) -> None:
        self._kube = kube
        self._node = node
        self._name = name
        self._program = program
        self._at = layout.Layout(node.base)
        self._root = Path(tempfile.mkdtemp(prefix="k"))
        self._kubelet = fake_kubelet.Kubelet(self._root)
        self._flags = (
            f"--kubeconfig={kubeconfig}",
            f"--node-name={name}",
            f"--kubelet-root={self._root}",
            f"--cdi-root={node.own / 'cdi'}",
            f"--state-dir={node.own / 'state'}",
            f"--mps-dir={node.own / 's'}",
            f"--driver-root={self._at.driver_root}",
            f"--host-root={self._at.host_root}",
            "--allocator=scheduler",
            "--share-domain=cluster",
        )
        self._bomb = self._root / "bomb"
        self._time = clock.SystemClock()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._made = 0
        self.base, self.own = node.base, node.own
        self.plugin: fake_kubelet.Plugin
        self.devices: dict[str, str] = {}

    def begin(self) -> None:
        """Have a supervisor and a plugin, which has published its devices."""
        self.supervise()
        self.start()
        self.devices = self._published()

    def supervise(self) -> None:
        """Start a supervisor of MPS; `supervisors` are all there ever were, the newest last."""
        self._node.supervise(f"--host-root={self._at.host_root}")

    @property
    def supervisors(self) -> list[mpsnode.Process]:
        return self._node.supervisors

    def daemons(self) -> list[int]:
        """Pids of MPS' daemons."""
        return [pid for minor in range(8) for pid in self._node.daemons(minor)]

    def start(self, *flags: str) -> fake_kubelet.Plugin:
        """A new process, registered with the kubelet."""
        previous = self._sockets()
        self.launch(*flags)
        waiting.until(lambda: set(self._sockets()) - set(previous), WITHIN_S)
        (socket,) = set(self._sockets()) - set(previous)
        self.plugin = self._kubelet.register(path=self._sockets()[socket])
        return self.plugin

    def restart_kubelet(self) -> None:
        """All connections end, and the plugin is found and registered anew."""
        self._kubelet.hang_up()
        self.plugin = self._kubelet.register()

    def launch(self, *flags: str) -> None:
        """A new process, whatever comes of it."""
        command = [sys.executable, "-m", self._program, *self._flags, *flags]
        around = packaged.environment({"RATION_TEST_BOMB": str(self._bomb)})
        with self.log.open("ab") as log:
            self.processes.append(subprocess.Popen(command, cwd=HERE, stderr=log, env=around))

    @property
    def log(self) -> Path:
        """Return the log of all processes."""
        return self._node.own / "plugin.log"

    def offered(self) -> list[Path]:
        """The sockets by which plugins ask the kubelet to be registered."""
        return sorted(self._sockets().values())

    def roll(self, instance: str) -> int:
        """A rolling update: a second process beside the first, which then ends; its exit status."""
        first = self.processes[-1]
        self.start(f"--instance={instance}")
        first.terminate()
        return first.wait(WITHIN_S)

    def kill(self) -> None:
        """SIGKILL, to the newest process."""
        self.processes[-1].kill()
        self.processes[-1].wait(WITHIN_S)

    def close(self) -> None:
        """End whatever plugin there is."""
        for process in self.processes:
            process.kill()
            process.wait(WITHIN_S)
        self._kubelet.__exit__()
        shutil.rmtree(self._root)

    def claims(self) -> tuple[ports.ClaimRef, ...]:
        """Four new claims, each allocated its device."""
        self._made += 1
        return tuple(
            self.claim(f"{self._name}-{self._made}-{face}", device)
            for face, device in self.devices.items()
        )

    def forget(self, refs: Iterable[ports.ClaimRef]) -> None:
        """Have the claims gone from the API."""
        for ref in refs:
            self._kube.delete(gvr.RESOURCE_CLAIMS, ref.name, ref.namespace)

    def survive(self, refs: tuple[ports.ClaimRef, ...], within_s: tuple[float, float]) -> None:
        """Prepare and unprepare, with a kill within so long of either's start; then the retry."""
        for call, after_s in zip(("prepare", "unprepare"), within_s, strict=True):
            self.start_call(call, refs)
            self._time.wait(threading.Event(), after_s)
            self.kill()
            self.start()
            self.again(call, refs)
            left = self.left()
            assert bool(left) == (call == "prepare"), left

    def endure(self, rounds: int, longest_s: float) -> None:
        """Run several rounds of four claims, with kills at random moments."""
        for when in moments(rounds, longest_s):
            refs = self.claims()
            self.survive(refs, when)
            self.forget(refs)

    def perish(self, face: str, call: str) -> list[str]:
        """Killed at every point of a prepare or an unprepare of a face, one by one; their names.

        Each death is followed by a start and the retry and, in the end, by nothing left over.
        """
        passed: list[str] = []
        while True:
            self._made += 1
            ref = self.claim(f"{self._name}-{self._made}-{face}", self.devices[face])
            if call == "unprepare":
                self.again("prepare", (ref,))
            died = self._dies(call, ref, after=len(passed))
            if died:
                passed.append(died)
                self.start()
            self.again(call, (ref,))
            self.again("unprepare", (ref,))
            assert self.left() == []
            self.forget((ref,))
            if not died:
                return passed

    def _dies(self, call: str, ref: ports.ClaimRef, after: int) -> str:
        """The point that the process died at; "" when the call had no more of them."""
        self._bomb.write_text(str(after))
        if self.start_call(call, (ref,)).exception(WITHIN_S) is None:
            self._bomb.unlink()
            return ""
        self.processes[-1].wait(WITHIN_S)
        return self._bomb.with_name("bomb.at").read_text()

    def again(self, call: str, refs: tuple[ports.ClaimRef, ...]) -> None:
        """Repeat a call as the kubelet does until every claim is answered without an error."""

        def errors() -> list[str]:
            entries = self.start_call(call, refs).result().claims
            assert set(entries) == {ref.uid for ref in refs}
            return [entries[ref.uid].error for ref in refs if entries[ref.uid].error]

        waiting.value(errors, lambda names: not names, WITHIN_S)
        if call == "prepare":
            assert len(list((self._node.own / "cdi").glob("*.json"))) == len(refs)

    def left(self) -> list[str]:
        """Everything on this node that is some claim's."""
        own = self._node.own
        folders = (own / "state/claims", own / "cdi", own / "s/desired")
        names = [str(path) for folder in folders for path in folder.glob("*")]
        machine = store.load(self._node.base)
        for gpu in machine.gpus:
            board = machine.board(gpu)
            state = (board.compute_mode, board.timeslice, board.instances, board.mig)
            if state != (0, 0, [], 0):
                names.append(f"{gpu.uuid}: {state}")
        return names

    def _sockets(self) -> dict[int, Path]:
        return {path.stat().st_ino: path for path in self._kubelet.found()}

    def start_call(self, call: str, refs: tuple[ports.ClaimRef, ...]) -> Any:
        """A prepare or an unprepare of all of them, not waited for."""
        begin = self.plugin.start_prepare if call == "prepare" else self.plugin.start_unprepare
        return begin(*refs)

    def published(self) -> list[str]:
        """The names of all devices, once the whole pool is there."""

        def names() -> list[str] | None:
            listed = self._kube.list(
                gvr.RESOURCE_SLICES, field_selector=f"spec.nodeName={self._name}"
            ).items
            if not listed or len(listed) != listed[0]["spec"]["pool"]["resourceSliceCount"]:
                return None
            return [entry["name"] for each in listed for entry in each["spec"].get("devices") or ()]

        return sorted(waiting.value(names, bool, WITHIN_S))

    def _published(self) -> dict[str, str]:
        """A device for each face, each of a GPU of its own."""
        published = self.published()
        whole = [name for name in published if name.count("-") == 4]
        parts = [name for name in published if name.startswith(f"{whole[2]}-mig-1g")]
        return {
            "whole": whole[0],
            "mps": f"{whole[1]}-mps",
            "mig": parts[0],
            "ts": f"{whole[3]}-ts",
        }

    def claim(self, name: str, device: str, share: Mapping[str, str] = SHARE) -> ports.ClaimRef:
        """A new claim that is allocated a device; of a shared one, `share`: a quarter."""
        request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        created = self._kube.create(gvr.RESOURCE_CLAIMS, body, NAMESPACE)
        uid = created["metadata"]["uid"]
        result: dict[str, Any] = {
            "request": "gpu",
            "driver": DRIVER,
            "pool": self._name,
            "device": device,
        }
        devices: dict[str, Any] = {"results": [result]}
        if device.endswith(("-mps", "-ts")):
            result |= {"consumedCapacity": dict(share), "shareID": uid}
        if device.endswith("-ts"):
            opaque = {"driver": DRIVER, "parameters": LONG}
            devices["config"] = [{"source": "FromClaim", "opaque": opaque}]
        body = {"status": {"allocation": {"devices": devices}}}
        self._kube.patch(gvr.RESOURCE_CLAIMS, name, body, namespace=NAMESPACE, subresource="status")
        return ports.ClaimRef(NAMESPACE, name, ids.ClaimUid(uid))


def moments(count: int, longest_s: float) -> Iterator[tuple[float, float]]:
    """When to kill under a prepare and under an unprepare: nobody chose them, and they repeat."""
    numbers = random.Random(5)  # noqa: S311 - no secret
    for _ in range(count):
        yield numbers.uniform(0, longest_s), numbers.uniform(0, longest_s)
