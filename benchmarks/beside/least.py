"""The least DRA plugin in Python: what of our figures is the language and the libraries.

It imports what ours is built on, serves the kubelet by grpc, reads the claim from the API server,
writes a record and a CDI spec, and answers. It publishes nothing, and touches no hardware.
"""

import argparse
import functools
import json
import os
import signal
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import jinja2
import prometheus_client
import pydantic
import pynvml
import structlog

from driver.kube import client, gvr
from driver.pb import dra_v1_pb2, dra_v1_pb2_grpc
from driver.pb import registration_v1_pb2 as registration
from driver.pb import registration_v1_pb2_grpc as registration_grpc

LIBRARIES = (jinja2, prometheus_client, pydantic, pynvml, structlog)
_HANDLERS = 16


class Plugin(registration_grpc.RegistrationServicer, dra_v1_pb2_grpc.DRAPluginServicer):
    """Both services of a plugin whose files are in `folder`."""

    def __init__(self, driver: str, folder: Path, kube: client.KubeClient) -> None:
        self._driver = driver
        self._folder = folder
        self._kube = kube

    def GetInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ANN401
        """Return the plugin's name and its socket."""
        del request, context
        return registration.PluginInfo(
            type="DRAPlugin",
            name=self._driver,
            endpoint=str(self._folder / "dra.sock"),
            supported_versions=["v1.DRAPlugin"],
        )

    def NotifyRegistrationStatus(  # noqa: N802
        self,
        request: Any,  # noqa: ANN401
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401
        """Take the kubelet's verdict."""
        del request, context
        return registration.RegistrationStatusResponse()

    def NodePrepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ANN401
        """Record and describe each claim's devices."""
        del context
        prepared = {claim.uid: self._prepare(claim) for claim in request.claims}
        return dra_v1_pb2.NodePrepareResourcesResponse(claims=prepared)

    def NodeUnprepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ANN401
        """Remove each claim's files."""
        del context
        for claim in request.claims:
            for kind in ("record", "spec"):
                self._path(claim.uid, kind).unlink(missing_ok=True)
        removed = {
            claim.uid: dra_v1_pb2.NodeUnprepareResourceResponse() for claim in request.claims
        }
        return dra_v1_pb2.NodeUnprepareResourcesResponse(claims=removed)

    def _prepare(self, claim: Any) -> Any:  # noqa: ANN401
        record = self._path(claim.uid, "record")
        if not record.exists():
            body = self._kube.get(gvr.RESOURCE_CLAIMS, claim.name, claim.namespace)
            results = body["status"]["allocation"]["devices"]["results"]
            self._write(record, results)
            self._write(self._path(claim.uid, "spec"), {"devices": results})
        devices = [
            dra_v1_pb2.Device(
                request_names=[result["request"]],
                pool_name=result["pool"],
                device_name=result["device"],
                cdi_device_ids=[f"{self._driver}/claim={claim.uid}"],
            )
            for result in json.loads(record.read_bytes())
        ]
        return dra_v1_pb2.NodePrepareResourceResponse(devices=devices)

    def _path(self, uid: str, kind: str) -> Path:
        return self._folder / f"{uid}.{kind}"

    def _write(self, path: Path, content: object) -> None:
        part = path.with_name(f".{path.name}")
        part.write_bytes(json.dumps(content).encode())
        os.rename(part, path)  # noqa: PTH104 - as the plugin does


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("kubeconfig", "plugin-dir", "registry-dir"):
        parser.add_argument(f"--{flag}", type=Path, required=True)
    parser.add_argument("--driver", required=True)
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    kube = client.KubeClient.connect(options.kubeconfig, "ration-least")
    plugin = Plugin(options.driver, options.plugin_dir, kube)
    served = {
        options.plugin_dir / "dra.sock": dra_v1_pb2_grpc.add_DRAPluginServicer_to_server,
        options.registry_dir
        / f"{options.driver}-reg.sock": registration_grpc.add_RegistrationServicer_to_server,
    }
    servers = []
    for socket, add in served.items():
        socket.unlink(missing_ok=True)
        server = grpc.server(futures.ThreadPoolExecutor(_HANDLERS))
        functools.partial(add, plugin)(server)
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        servers.append(server)
    stop.wait()
    for server in servers:
        server.stop(1).wait()


if __name__ == "__main__":
    main()
