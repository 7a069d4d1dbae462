"""One plugin's two sockets, and what the kubelet is shown of them."""

import dataclasses
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.blackbox.proxy import door, relay, wire

REGISTRY, PLUGINS = "plugins_registry", "plugins"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Features of plugins hidden from the kubelet; `versions` are of services, as GetInfo says."""

    service: bool = False
    registration: bool = False
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """Plugin as the kubelet finds it. The names are short: a socket's path has little room."""

    kubelet: Path
    name: str

    @property
    def registration(self) -> Path:
        """The registration socket."""
        return self.kubelet / REGISTRY / f"{self.name}-reg.sock"

    @property
    def service(self) -> Path:
        """The service's socket."""
        return self.kubelet / PLUGINS / self.name / "dra.sock"


class Leg:
    """One socket of a plugin and the kubelet's door to it."""

    def __init__(
        self, shown: Path, target: Path, inside: Path, tools: relay.Tools, came: Callable[[], None]
    ) -> None:
        shown.parent.mkdir(parents=True, exist_ok=True)
        self.target = target
        self.relay = relay.Relay(inside, target, tools)
        self.door = door.Door(shown, inside, came)

    def follow(self, *, hidden: bool) -> None:
        """Be open while the plugin's is."""
        if not hidden and door.answers(self.target):
            self.door.open()
        else:
            self.door.shut()

    def close(self) -> None:
        """Take it away."""
        self.door.remove()
        self.relay.close()


class Bridge:
    """A plugin: found by its registration socket, which names its service socket.

    `identity` is that of the socket's file; `inside` gives a new path for a relay to serve at.
    """

    def __init__(
        self,
        path: Path,
        identity: tuple[int, int],
        shown: Shown,
        tools: relay.Tools,
        inside: Callable[[], Path],
    ) -> None:
        self.identity = identity
        self._shown = shown
        self._tools = dataclasses.replace(tools, cut=self.cut)
        self._inside = inside
        self._hidden = Hidden()
        self._lock = threading.Lock()
        self._service: Leg | None = None
        replaced = dataclasses.replace(self._tools, change=self._change)
        self.registration = Leg(shown.registration, path, inside(), replaced, _nobody_counts)

    @property
    def service(self) -> Leg | None:
        """The plugin's service, once it was asked where that is."""
        return self._service

    def _change(self, method: str, answer: bytes) -> bytes:
        if method != "GetInfo":
            return answer
        self._serve(Path(wire.info(answer).endpoint))
        return wire.with_endpoint(answer, str(self._shown.service), self._hidden.versions)

    def _serve(self, endpoint: Path) -> None:
        with self._lock:
            if self._service is not None and self._service.target == endpoint:
                return
            if self._service is not None:
                self._service.close()
            came = self._tools.records.connected
            self._service = Leg(self._shown.service, endpoint, self._inside(), self._tools, came)
            self._service.follow(hidden=self._hidden.service)

    def follow(self, hidden: Hidden) -> None:
        """Do as the plugin's sockets do, but for what is hidden."""
        self._hidden = hidden
        if hidden.registration:
            self.registration.door.remove()
        else:
            self.registration.follow(hidden=False)
        with self._lock:
            if self._service is not None:
                self._service.follow(hidden=hidden.service)

    def cut(self) -> None:
        """End every connection to the service."""
        if self._service is not None:
            self._service.door.cut()

    def renew(self, identity: tuple[int, int]) -> None:
        """The plugin has put a new socket in the place of the old one: so does `follow`."""
        self.identity = identity
        self.registration.door.shut()
        if self._service is not None:
            self._service.door.shut()

    def close(self) -> None:
        """Take both sockets away."""
        self.registration.close()
        if self._service is not None:
            self._service.close()


def _nobody_counts() -> None:
    return None
