"""A plugin of another driver at the kubelet, as Kubernetes' own library for drivers makes it."""

import functools
from concurrent import futures
from pathlib import Path
from typing import Any, Self

import grpc

from driver.pb import registration_v1_pb2 as pb
from driver.pb import registration_v1_pb2_grpc as pb_grpc
from tests.support.builders.allocated_claims import NODE


class Stranger(pb_grpc.RegistrationServicer):
    """`with Stranger(root, "gpu.ration.dev"):` registers it for as long."""

    def __init__(self, root: Path, driver: str, uid: str = "abc", kind: str = "DRAPlugin") -> None:
        self._info = pb.PluginInfo(
            type=kind,
            name=driver,
            endpoint=str(root / "plugins" / driver / f"dra-{uid}.sock"),
            supported_versions=["v1.DRAPlugin"],
        )
        self.socket = root / "plugins_registry" / f"{driver}-{uid}-reg.sock"
        self.asked = 0
        self._server = grpc.server(futures.ThreadPoolExecutor(2))

    def __enter__(self) -> Self:
        self.socket.parent.mkdir(exist_ok=True)
        functools.partial(pb_grpc.add_RegistrationServicer_to_server, self)(self._server)
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Go, with the socket's file."""
        self._server.stop(0).wait()
        self.socket.unlink(missing_ok=True)

    def GetInfo(self, request: pb.InfoRequest, context: grpc.ServicerContext) -> pb.PluginInfo:  # noqa: N802 - the service names it
        del request, context
        self.asked += 1
        return self._info


def a_slice(driver: str, node: str = NODE, name: str = "") -> dict[str, Any]:
    """A ResourceSlice as NVIDIA's driver publishes a GPU."""
    device = {
        "name": "gpu-0",
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-1"}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": "node-uid"}
    return {
        "metadata": {"name": name or f"{node}-{driver}-x7k2p", "ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
