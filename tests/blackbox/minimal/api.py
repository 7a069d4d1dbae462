"""Client of the minimal driver: reads claims and writes its own slice."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes
import urllib3

_log = logging.getLogger(__name__)
_BASE = "/apis/resource.k8s.io/v1"
_ASK_S = 10


class Refused(Exception):
    """The claim cannot be prepared; the text is for the pod's event."""


class Given(NamedTuple):
    """A device of a claim; `admin`: it is looked at, and may be somebody's."""

    request: str
    pool: str
    device: str
    admin: bool = False


class Server:
    """One node's view."""

    def __init__(self, kubeconfig: Path, driver: str, node: str) -> None:
        self._client = kubernetes.config.new_client_from_config(  # type: ignore[no-untyped-call]
            str(kubeconfig)
        )
        self._driver = driver
        self._node = node

    def devices_of(self, namespace: str, name: str, uid: str) -> list[Given]:
        """Return what a claim was given of this driver's. Raises Refused."""
        claim = self.claim(namespace, name)
        if claim["metadata"]["uid"] != uid:
            raise Refused(f"claim {namespace}/{name} is another one now, not {uid}")
        allocation = claim.get("status", {}).get("allocation")
        if not allocation:
            raise Refused(f"claim {namespace}/{name} is not allocated")
        return [
            Given(
                entry["request"].partition("/")[0],
                entry["pool"],
                entry["device"],
                bool(entry.get("adminAccess")),
            )
            for entry in allocation["devices"].get("results", ())
            if entry["driver"] == self._driver
        ]

    def claim(self, namespace: str, name: str) -> Any:
        """A claim as it is. Raises Refused."""
        try:
            return self._ask("GET", f"{_BASE}/namespaces/{namespace}/resourceclaims/{name}")
        except kubernetes.client.ApiException as e:
            raise Refused(f"claim {namespace}/{name}: {e.status} {e.reason}") from e

    def publish(self, names: Sequence[str]) -> None:
        """Have the slice as it should be; nothing is written when it is."""
        try:
            self._publish(names)
        except (kubernetes.client.ApiException, OSError) as e:
            _log.warning("not published: %s", e)

    def _publish(self, names: Sequence[str]) -> None:
        name = f"{self._node}-{self._driver}"
        path = f"{_BASE}/resourceslices"
        devices = [{"name": name, "attributes": {"kind": {"string": "thing"}}} for name in names]
        try:
            answer = self._ask("GET", f"{path}/{name}")
        except kubernetes.client.ApiException as e:
            if e.status != 404:
                raise
            self._ask("POST", path, self._slice(name, devices))
            return
        if answer["spec"]["devices"] != devices:
            answer["spec"]["devices"] = devices
            answer["spec"]["pool"]["generation"] += 1
            self._ask("PUT", f"{path}/{name}", answer)

    def _slice(self, name: str, devices: list[dict[str, Any]]) -> dict[str, Any]:
        node = self._ask("GET", f"/api/v1/nodes/{self._node}")
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._node,
            "uid": node["metadata"]["uid"],
            "controller": True,
        }
        pool = {"name": self._node, "generation": 1, "resourceSliceCount": 1}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {
                "driver": self._driver,
                "nodeName": self._node,
                "pool": pool,
                "devices": devices,
            },
        }

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        url = self._client.configuration.host + path
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        try:
            answer = self._client.call_api(method, url, headers, body, _request_timeout=_ASK_S)
            data = answer.read()
        except urllib3.exceptions.HTTPError as e:
            raise OSError(f"the API server does not answer: {e}") from e
        if answer.status >= 400:
            raise kubernetes.client.ApiException(status=answer.status, reason=answer.reason)
        return json.loads(data)
