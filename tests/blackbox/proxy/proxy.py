"""Stands between a kubelet and the plugins of one node.

Plugins put their sockets below a root of their own; the proxy watches its registry as the kubelet
would, and shows the kubelet a registration socket and a service socket for each that it finds. What
a plugin's sockets do is done to the kubelet's: they come, go, are replaced, and refuse when nobody
listens. A test may hide them, cut connections, and break calls (`faults`).
"""

import contextlib
import itertools
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import grpc

from tests.blackbox.proxy import bridge, faults, records, relay, wire

STEP_S = 0.1
_GET_INFO = "/pluginregistration.Registration/GetInfo"


class Proxy:
    """`with Proxy(kubelet root, plugins' root) as proxy:`, both with the kubelet's two folders.

    `name` begins the names of what the kubelet is shown; several proxies may serve one kubelet.
    """

    def __init__(self, kubelet: Path, plugins: Path, name: str = "bb") -> None:
        self.kubelet = kubelet
        self.plugins = plugins
        self._name = name
        self.faults = faults.Faults()
        self.records = records.Records()
        self._hidden = bridge.Hidden()
        self._bridges: dict[str, bridge.Bridge] = {}
        self._numbers: dict[str, int] = {}
        self._insides = itertools.count(1)
        self._folder = Path(tempfile.mkdtemp(prefix="bb"))
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        for root in (self.kubelet, self.plugins):
            for folder in (bridge.REGISTRY, bridge.PLUGINS):
                (root / folder).mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)
        self.faults.lift()
        for _bridge in self._bridges.values():
            _bridge.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _inside(self) -> Path:
        """Return a new path, without the lock: a bridge that has its own asks for one."""
        return self._folder / str(next(self._insides))

    def bridges(self) -> list[bridge.Bridge]:
        """Return the bridges of the plugins that are there."""
        with self._lock:
            return list(self._bridges.values())

    def step(self) -> None:
        """Look at the plugins' registry once, and follow."""
        result = {path.name: (path, identity) for path, identity in self._found()}
        with self._lock:
            for name in [_bridge for _bridge in self._bridges if _bridge not in result]:
                self._bridges.pop(name).close()
            for name, (path, identity) in result.items():
                item = self._bridges.get(name)
                if item is None:
                    self._bridges[name] = self._bridge(path, identity)
                elif item.identity != identity:
                    item.renew(identity)
            for item in self._bridges.values():
                item.follow(self._hidden)

    def _bridge(self, path: Path, identity: tuple[int, int]) -> bridge.Bridge:
        number = self._numbers.setdefault(path.name, len(self._numbers))
        shown = bridge.Shown(self.kubelet, f"{self._name}{number}")
        tools = relay.Tools(path.name, self.faults, self.records)
        return bridge.Bridge(path, identity, shown, tools, self._inside)

    def hide(
        self, *, service: bool = False, registration: bool = False, versions: Sequence[str] = ()
    ) -> None:
        """Hide sockets of all plugins from the kubelet; by default show them again.

        Versions of services are hidden from a kubelet that registers the plugin after this.
        """
        self._hidden = bridge.Hidden(service, registration, tuple(versions))
        self.step()

    def cut(self) -> None:
        """End the kubelet's connections to all services, once."""
        for item in self.bridges():
            item.cut()

    def info(self) -> wire.Info:
        """Return the GetInfo of the only plugin. Raises grpc.RpcError, LookupError."""
        bridges = self.bridges()
        if not bridges:
            raise LookupError("no plugin has a registration socket")
        return wire.info(bridges[0].registration.relay.ask(_GET_INFO, b"", 5.0))

    def ask(self, method: str, *claims: wire.Claim, within_s: float = 40.0) -> dict[str, str]:
        """Ask the plugin ourselves, past the kubelet: by UID what is wrong, "" if nothing is.

        A call that fails whole is an answer for each of its claims, as the kubelet takes it.
        """
        service = next(item.service for item in self.bridges() if item.service is not None)
        version = next(version for version in self.info().versions if version.endswith("DRAPlugin"))
        package = version.partition(".")[0]
        path = f"/k8s.io.kubelet.pkg.apis.dra.{package}.DRAPlugin/{method}"
        try:
            answer = service.relay.ask(path, wire.request(*claims), within_s)
        except grpc.RpcError as e:
            message = f"{e.code().name}: {e.details()}"
            return {claim.uid: message for claim in claims}
        return dict(wire.refused(answer, method))

    def _found(self) -> Iterator[tuple[Path, tuple[int, int]]]:
        for path in sorted((self.plugins / bridge.REGISTRY).iterdir()):
            with contextlib.suppress(OSError):
                if not path.name.startswith(".") and path.is_socket():
                    stat = path.stat()
                    yield path, (stat.st_ino, stat.st_mtime_ns)

    def _run(self) -> None:
        while not self._stop.wait(STEP_S):
            self.step()
