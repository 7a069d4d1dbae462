"""The kubelet's side of the plugin's sockets: finds a plugin, registers it, asks it to prepare."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc

from driver.kubeletplugin import ports
from driver.pb import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    health_v1_pb2,
    health_v1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
)
from driver.pb import registration_v1_pb2 as registration
from driver.pb import registration_v1_pb2_grpc as registration_grpc
from tests.fakes import waiting

CALL_S = 45.0

DRA: dict[str, tuple[Any, Any]] = {
    "v1": (dra_v1_pb2, dra_v1_pb2_grpc.DRAPluginStub),
    "v1beta1": (dra_v1beta1_pb2, dra_v1beta1_pb2_grpc.DRAPluginStub),
}
HEALTH: dict[str, tuple[Any, Any]] = {
    "v1": (health_v1_pb2, health_v1_pb2_grpc.DRAResourceHealthStub),
    "v1alpha1": (health_v1alpha1_pb2, health_v1alpha1_pb2_grpc.DRAResourceHealthStub),
}


@dataclass
class Plugin:
    """A registered plugin, over one connection; `version` is that of its DRA service."""

    info: registration.PluginInfo
    channel: grpc.Channel
    version: str = "v1"

    def prepare(self, *claims: ports.ClaimRef) -> dict[str, Any]:
        """One call for all of them; the entries by UID."""
        call = self.start_prepare(*claims)
        return dict(call.result().claims)

    def start_prepare(self, *claims: ports.ClaimRef) -> Any:
        """The call, not waited for; `cancel()` breaks it off."""
        messages, stub = self._dra()
        request = messages.NodePrepareResourcesRequest(claims=_claims(messages, claims))
        return stub.NodePrepareResources.future(request, timeout=CALL_S)

    def unprepare(self, *claims: ports.ClaimRef) -> dict[str, Any]:
        """Same as `prepare`."""
        return dict(self.start_unprepare(*claims).result().claims)

    def start_unprepare(self, *claims: ports.ClaimRef) -> Any:
        """Same as `start_prepare`."""
        messages, stub = self._dra()
        request = messages.NodeUnprepareResourcesRequest(claims=_claims(messages, claims))
        return stub.NodeUnprepareResources.future(request, timeout=CALL_S)

    def watch_health(self, version: str = "v1") -> Any:
        """The stream of the devices' health: iterate it, `cancel()` ends it."""
        messages, stub = HEALTH[version]
        return functools.partial(stub, self.channel)().NodeWatchResources(
            messages.NodeWatchResourcesRequest()
        )

    def _dra(self) -> tuple[Any, Any]:
        messages, stub = DRA[self.version]
        return messages, functools.partial(stub, self.channel)()


class Kubelet:
    """`with Kubelet(root) as kubelet: plugin = kubelet.register()`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._channels: list[grpc.Channel] = []
        for folder in ("plugins_registry", "plugins"):
            (root / folder).mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """End every connection, and what is asked on them, as the end of the process would."""
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def found(self) -> list[Path]:
        """Sockets in the registry, as the plugin watcher sees them: dot files are skipped."""
        registry = self.root / "plugins_registry"
        return sorted(path for path in registry.iterdir() if not path.name.startswith("."))

    def register(
        self, refusal: str = "", within_s: float = 5.0, path: Path | None = None
    ) -> Plugin:
        """Do what the plugin manager does with the one plugin it finds, or with that of `path`."""
        waiting.until(self.found, within_s)
        channel = self._dial(path or self.found()[0])
        stub = functools.partial(registration_grpc.RegistrationStub, channel)()
        info = stub.GetInfo(registration.InfoRequest(), timeout=1)
        status = registration.RegistrationStatus(plugin_registered=not refusal, error=refusal)
        stub.NotifyRegistrationStatus(status, timeout=5)
        return Plugin(info, self._dial(Path(info.endpoint)))

    def reach(self) -> Plugin:
        """The plugin, which another kubelet may have registered."""
        info = self.get_info()
        return Plugin(info, self._dial(Path(info.endpoint)))

    def get_info(self) -> registration.PluginInfo:
        channel = self._dial(self.found()[0])
        stub = functools.partial(registration_grpc.RegistrationStub, channel)()
        info: registration.PluginInfo = stub.GetInfo(registration.InfoRequest(), timeout=1)
        return info

    def _dial(self, path: Path) -> grpc.Channel:
        channel = grpc.insecure_channel(f"unix:{path}")
        self._channels.append(channel)
        grpc.channel_ready_future(channel).result(timeout=10)
        return channel


def _claims(messages: Any, refs: Iterable[ports.ClaimRef]) -> list[Any]:
    return [messages.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid) for ref in refs]
