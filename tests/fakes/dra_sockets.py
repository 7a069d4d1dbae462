"""The two sockets of any DRA driver at a kubelet: registration, and the DRA service, v1 alone."""

import functools
import logging
import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from driver.pb import dra_v1_pb2 as dra
from driver.pb import dra_v1_pb2_grpc as dra_grpc
from driver.pb import registration_v1_pb2 as registration
from driver.pb import registration_v1_pb2_grpc as registration_grpc

_log = logging.getLogger(__name__)
Prepare = Callable[[Any], dra.NodePrepareResourceResponse]
Unprepare = Callable[[Any], dra.NodeUnprepareResourceResponse]


class Sockets(dra_grpc.DRAPluginServicer, registration_grpc.RegistrationServicer):
    """Sockets below a kubelet's root folder; `prepare` and `unprepare` answer for a claim each."""

    def __init__(self, root: Path, driver: str, prepare: Prepare, unprepare: Unprepare) -> None:
        self._service = root / "plugins" / driver / "dra.sock"
        self._registration = root / "plugins_registry" / f"{driver}-reg.sock"
        self._driver = driver
        self._prepare = prepare
        self._unprepare = unprepare
        self._servers: list[grpc.Server] = []
        self.registered = threading.Event()
        """Set once a kubelet has registered the driver."""

    def start(self) -> None:
        """Listen, the service first. Raises OSError."""
        for path, add in (
            (self._service, dra_grpc.add_DRAPluginServicer_to_server),
            (self._registration, registration_grpc.add_RegistrationServicer_to_server),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            server = grpc.server(futures.ThreadPoolExecutor(16))
            functools.partial(add, self)(server)
            try:
                server.add_insecure_port(f"unix:{path}")
            except RuntimeError as e:
                raise OSError(str(e)) from e
            server.start()
            self._servers.append(server)

    def stop(self) -> None:
        """Leave, the registration first; no socket stays."""
        for server in reversed(self._servers):
            server.stop(grace=2.0).wait()
        for path in (self._registration, self._service):
            path.unlink(missing_ok=True)

    def GetInfo(self, request: Any, context: Any) -> registration.PluginInfo:  # noqa: N802
        del request, context
        return registration.PluginInfo(
            type="DRAPlugin",
            name=self._driver,
            endpoint=str(self._service),
            supported_versions=["v1.DRAPlugin"],
        )

    def NotifyRegistrationStatus(  # noqa: N802
        self, request: Any, context: Any
    ) -> registration.RegistrationStatusResponse:
        del context
        _log.info("registered: %s %s", request.plugin_registered, request.error)
        if request.plugin_registered:
            self.registered.set()
        return registration.RegistrationStatusResponse()

    def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        answers = {claim.uid: self._prepare(claim) for claim in request.claims}
        return dra.NodePrepareResourcesResponse(claims=answers)

    def NodeUnprepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        answers = {claim.uid: self._unprepare(claim) for claim in request.claims}
        return dra.NodeUnprepareResourcesResponse(claims=answers)
