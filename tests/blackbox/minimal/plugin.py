"""The minimal driver's two sockets."""

import functools
import logging
from collections.abc import Iterable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from driver.pb import dra_v1_pb2 as dra
from driver.pb import dra_v1_pb2_grpc as dra_grpc
from driver.pb import registration_v1_pb2 as registration
from driver.pb import registration_v1_pb2_grpc as registration_grpc
from tests.blackbox.minimal import api, state

_log = logging.getLogger(__name__)


class Plugin(dra_grpc.DRAPluginServicer, registration_grpc.RegistrationServicer):
    """Serves v1 alone."""

    def __init__(self, root: Path, driver: str, server: api.Server, retained: state.State) -> None:
        self._service = root / "plugins" / driver / "dra.sock"
        self._registration = root / "plugins_registry" / f"{driver}-reg.sock"
        self._driver = driver
        self._api = server
        self._state = retained
        self._servers: list[grpc.Server] = []

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
        return registration.RegistrationStatusResponse()

    def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        return dra.NodePrepareResourcesResponse(
            claims={claim.uid: self._prepare(claim) for claim in request.claims}
        )

    def _prepare(self, claim: Any) -> dra.NodePrepareResourceResponse:
        try:
            devices = self._api.devices_of(claim.namespace, claim.name, claim.uid)
            self._state.prepare(claim.uid, devices)
        except (api.Refused, OSError) as e:
            _log.warning("claim %s: %s", claim.uid, e)
            return dra.NodePrepareResourceResponse(error=str(e))
        return dra.NodePrepareResourceResponse(devices=self._told(claim.uid, devices))

    def _told(self, uid: str, devices: state.Devices) -> Iterable[dra.Device]:
        return [
            dra.Device(
                request_names=[device.request],
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=self._state.ids(uid, device.device),
            )
            for device in devices
        ]

    def NodeUnprepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        return dra.NodeUnprepareResourcesResponse(
            claims={claim.uid: self._unprepare(claim.uid) for claim in request.claims}
        )

    def _unprepare(self, uid: str) -> dra.NodeUnprepareResourceResponse:
        try:
            self._state.unprepare(uid)
        except OSError as e:
            return dra.NodeUnprepareResourceResponse(error=str(e))
        return dra.NodeUnprepareResourceResponse()
