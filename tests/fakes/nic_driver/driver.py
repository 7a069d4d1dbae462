"""The NIC driver: its registration at the kubelets of nodes, its pools, its record of calls."""

import contextlib
import functools
import json
from pathlib import Path
from typing import Any, Self

from driver import errors
from driver.kube import client, gvr
from driver.pb import dra_v1_pb2 as dra
from tests.fakes import dra_sockets
from tests.fakes.nic_driver import pools, prepared_claims

Raw = dict[str, Any]


class NicDriver:
    """A driver for as long as its `with` lasts; `calls` are those of all kubelets, in order.

    End the pods before it: a kubelet cannot unprepare the claims of a driver that has left.
    """

    def __init__(self, kube: client.KubeClient, name: str = pools.DRIVER) -> None:
        self.name = name
        self.calls: list[prepared_claims.Call] = []
        self._kube = kube
        self._prepared = prepared_claims.PreparedClaims()
        self._sockets: dict[str, dra_sockets.Sockets] = {}
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._kube.create(gvr.DEVICE_CLASSES, pools.device_class(self.name))
        self._exits.callback(self._kube.delete, gvr.DEVICE_CLASSES, self.name)
        return self

    def __exit__(self, *_: object) -> None:
        for node in tuple(self._sockets):
            self.leave(node)
        self._exits.close()

    def serve(self, node: str, folder: Path) -> None:
        """Register at a node's kubelet; `folder` holds its `kubelet` and `cdi` folders."""
        prepare = functools.partial(self._prepare, node, folder / "cdi")
        unprepare = functools.partial(self._unprepare, node, folder / "cdi")
        sockets = dra_sockets.Sockets(folder / "kubelet", self.name, prepare, unprepare)
        sockets.start()
        self._sockets[node] = sockets

    def wait_registered(self, node: str, within_s: float = 30.0) -> None:
        """Wait for a node's kubelet: a pod that comes before it waits a minute for the next try."""
        assert self._sockets[node].registered.wait(within_s), f"{node} has not registered"

    def leave(self, node: str) -> None:
        """End the registration at a node's kubelet."""
        self._sockets.pop(node).stop()

    def publish(self, pool: pools.Pool) -> None:
        """Publish a pool, or what has become of it as its next generation."""
        entry = pool.slice(self.name)
        name = entry["metadata"]["name"]
        try:
            stored = self._kube.get(gvr.RESOURCE_SLICES, name)
        except errors.NotFound:
            self._exits.callback(self.withdraw, pool)
            self._kube.create(gvr.RESOURCE_SLICES, entry)
            return
        generation = stored["spec"]["pool"]["generation"] + 1
        body = {**pool.slice(self.name, generation), "metadata": stored["metadata"]}
        self._kube.replace(gvr.RESOURCE_SLICES, name, body)

    def withdraw(self, pool: pools.Pool) -> None:
        """Delete the slice of a pool, unless it is gone."""
        with contextlib.suppress(errors.NotFound):
            self._kube.delete(gvr.RESOURCE_SLICES, pool.slice(self.name)["metadata"]["name"])

    def _prepare(self, node: str, cdi: Path, claim: Any) -> dra.NodePrepareResourceResponse:
        results: list[Raw] = []
        error = ""
        try:
            results = self._results(claim)
            self._prepared.prepare(claim.uid, results)
            self._write_spec(cdi, claim.uid, results)
        except (prepared_claims.Refused, errors.ApiError) as refusal:
            error = str(refusal)
        devices = tuple(map(prepared_claims.device_name, results))
        self.calls.append(prepared_claims.Call("prepare", node, _key(claim), devices, error))
        prepared = () if error else (self._device(claim.uid, result) for result in results)
        return dra.NodePrepareResourceResponse(devices=prepared, error=error)

    def _unprepare(self, node: str, cdi: Path, claim: Any) -> dra.NodeUnprepareResourceResponse:
        (cdi / f"{self.name}-{claim.uid}.json").unlink(missing_ok=True)
        devices = self._prepared.unprepare(claim.uid)
        self.calls.append(prepared_claims.Call("unprepare", node, _key(claim), devices))
        return dra.NodeUnprepareResourceResponse()

    def _results(self, claim: Any) -> list[Raw]:
        """Return what a claim was allocated of this driver's. Raises Refused, ApiError."""
        stored = self._kube.get(gvr.RESOURCE_CLAIMS, claim.name, claim.namespace)
        allocation = stored.get("status", {}).get("allocation")
        if stored["metadata"]["uid"] != claim.uid or not allocation:
            raise prepared_claims.Refused(f"claim {_key(claim)} is not allocated")
        results = allocation["devices"].get("results", ())
        return [result for result in results if result["driver"] == self.name]

    def _write_spec(self, cdi: Path, uid: str, results: list[Raw]) -> None:
        """Write the claim's spec whole: containerd reads the folder meanwhile."""
        path = cdi / f"{self.name}-{uid}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(prepared_claims.cdi_spec(f"{self.name}/nic", uid, results)))
        part.replace(path)

    def _device(self, uid: str, result: Raw) -> dra.Device:
        return dra.Device(
            request_names=[result["request"].partition("/")[0]],
            pool_name=result["pool"],
            device_name=result["device"],
            cdi_device_ids=[f"{self.name}/nic={prepared_claims.cdi_name(uid, result)}"],
            share_id=result.get("shareID"),
        )


def _key(claim: Any) -> str:
    return f"{claim.namespace}/{claim.name}"
