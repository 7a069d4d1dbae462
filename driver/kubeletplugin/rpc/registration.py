"""The kubelet's registration service (pluginregistration v1)."""

import functools
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import structlog

from driver.kubeletplugin import metrics
from driver.pb import registration_v1_pb2 as pb
from driver.pb import registration_v1_pb2_grpc as pb_grpc

_log = structlog.get_logger(__name__)

PLUGIN_TYPE: Final = "DRAPlugin"
SERVICES: Final = (
    "v1.DRAPlugin",
    "v1beta1.DRAPlugin",
    "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth",
)
"""Service versions as the kubelet's registry names them, newest first; not the wire's names."""


@dataclass(frozen=True, slots=True)
class PluginIdentity:
    """Identity that a DRA plugin reports to the kubelet."""

    driver: str
    endpoint: Path


def query_plugin(socket: Path, within_s: float) -> PluginIdentity | None:
    """Query a plugin as the kubelet does; None if none answers, or no DRA plugin does."""
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        stub = functools.partial(pb_grpc.RegistrationStub, channel)()
        try:
            info: pb.PluginInfo = stub.GetInfo(pb.InfoRequest(), timeout=within_s)
        except grpc.RpcError:
            return None
    return PluginIdentity(info.name, Path(info.endpoint)) if info.type == PLUGIN_TYPE else None


class Registration(pb_grpc.RegistrationServicer):
    """Answers the kubelet, and keeps its verdict. `accepted` is set once it has registered us."""

    def __init__(self, driver: str, endpoint: Path, counters: metrics.Metrics) -> None:
        self._driver = driver
        self._endpoint = endpoint
        self._metrics = counters
        self._problem: str | None = "the kubelet has not registered the plugin yet"
        self.accepted = threading.Event()

    def problem(self) -> str | None:
        """Return why the kubelet has not registered the plugin; None if it has."""
        return self._problem

    def add_to(self, server: grpc.Server) -> None:
        """Register on `server`."""
        functools.partial(pb_grpc.add_RegistrationServicer_to_server, self)(server)

    def GetInfo(  # noqa: N802 - the service names it
        self, request: pb.InfoRequest, context: grpc.ServicerContext
    ) -> pb.PluginInfo:
        """Return type, name, bare path of the DRA socket, services newest first."""
        del request, context
        return pb.PluginInfo(
            type=PLUGIN_TYPE,
            name=self._driver,
            endpoint=str(self._endpoint),
            supported_versions=SERVICES,
        )

    def NotifyRegistrationStatus(  # noqa: N802 - the service names it
        self, request: pb.RegistrationStatus, context: grpc.ServicerContext
    ) -> pb.RegistrationStatusResponse:
        """Record the kubelet's verdict; a refusal shows in log, metric and readiness."""
        del context
        if request.plugin_registered:
            self._problem = None
            self.accepted.set()
            self._metrics.registered.set(1)
            _log.info("registered with the kubelet", driver=self._driver)
        else:
            self._problem = f"the kubelet refused the plugin: {request.error}"
            self._metrics.registered.set(0)
            self._metrics.registrations_refused.inc()
            _log.error("registration refused", driver=self._driver, error=request.error)
        return pb.RegistrationStatusResponse()
