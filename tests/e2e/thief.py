"""Whoever holds a token of one of our accounts, and asks for whatever he likes."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import errors
from driver.kube import client, gvr
from driver.kube.http import credentials, transport
from hack.cluster import api

NAMESPACE = "ration-system"
AGENT = "thief"
"""His user agent: what he asked is no request of the driver's."""
Raw = dict[str, Any]
_LIMITS = (5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Call:
    """One request; a patch says how it is read. `manager`: as whom it is written."""

    method: str
    path: str
    body: Any = None
    kind: str = "application/json"
    manager: str = "thief"


def patch(path: str, body: Any, kind: client.PatchType) -> Call:
    return Call("PATCH", path, body, kind.value)


class Thief:
    """Sends requests with one token."""

    def __init__(self, cluster: api.Cluster, token: str, folder: Path) -> None:
        document = yaml.safe_load(cluster.kubeconfig.read_text())
        document["users"] = [{"name": "user", "user": {"token": token}}]
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(document))
        self._wire = transport.Transport(credentials.Credentials(file), AGENT)

    def asks(self, call: Call) -> Raw:
        """The server's answer. Raises ApiError."""
        manager = {"fieldManager": call.manager} if call.method in {"PATCH", "POST", "PUT"} else {}
        force = {"force": "true"} if "apply" in call.kind else {}
        sent = transport.Call(
            call.method, call.path, _LIMITS, {**manager, **force}, call.body, call.kind
        )
        document: Raw = json.loads(self._wire.read(sent))
        return document

    def is_refused(self, call: Call, *words: str) -> None:
        """It is refused, for a reason that one of these names."""
        with pytest.raises((errors.Forbidden, errors.Invalid)) as refused:
            self.asks(call)
        assert any(word in str(refused.value) for word in words), str(refused.value)


def token(cluster: api.Cluster, account: str, pod: str = "") -> str:
    """A token of a component's account; as the kubelet's is, of a pod, and so of its node."""
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod}") if pod else ()
    return cluster.kubectl("create", "token", account, "-n", NAMESPACE, *bound).strip()


def plugin_pod(kube: client.KubeClient, node: str) -> str:
    """The name of a node's plugin pod."""
    (pod,) = kube.list(
        gvr.PODS,
        namespace=NAMESPACE,
        label_selector="app.kubernetes.io/component=kubeletplugin",
        field_selector=f"spec.nodeName={node}",
    ).items
    return str(pod["metadata"]["name"])
