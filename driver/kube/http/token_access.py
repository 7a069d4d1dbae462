"""Credentials that are a server, its CA and a token, read without the official Kubernetes client.

They are those of every pod: a service account, or a kubeconfig with no more than these. Whatever
has more, or cannot be read, is None here, and the official client reads or refuses it.
"""

import base64
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PROXIES = ("https_proxy", "http_proxy", "all_proxy")
_CLUSTER_FIELDS = frozenset({"server", "certificate-authority", "certificate-authority-data"})
_USER_FIELDS = frozenset({"token", "tokenFile"})
UNREADABLE = (OSError, yaml.YAMLError, LookupError, TypeError, AttributeError, ValueError)
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 9}
"""As client-go: without them a watch through a load balancer ends unnoticed. In s, and a count."""


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """Base URL, the CA's certificates as PEM ("" for HTTP), the token ("" for none)."""

    host: str
    authority: str
    token: str

    @property
    def authorization(self) -> str:
        """The `Authorization` header; "" without a token."""
        return f"Bearer {self.token}" if self.token else ""

    def make_pool(self, size: int) -> urllib3.PoolManager:
        """Return connections, at most `size`, which retry nothing by themselves."""
        return urllib3.PoolManager(
            maxsize=size,
            retries=False,
            socket_options=_socket_options(),
            cert_reqs="CERT_REQUIRED",
            ca_cert_data=self.authority or None,
        )


def read_service_account(
    folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ
) -> TokenAccess | None:
    """Return the access of the pod we run in; None outside of a pod, or through a proxy."""
    if _has_proxy(environment):
        return None
    try:
        host, port = (environment[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
        authority, token = (folder / "ca.crt").read_text(), (folder / "token").read_text().strip()
    except UNREADABLE:
        return None
    if not (host and port and authority and token):
        return None
    return TokenAccess(f"https://{f'[{host}]' if ':' in host else host}:{port}", authority, token)


def read_kubeconfig(path: Path, environment: Mapping[str, str] = os.environ) -> TokenAccess | None:
    """Return the access of a kubeconfig's current context; None if it has more than a token."""
    if _has_proxy(environment):
        return None
    try:
        document = yaml.safe_load(path.read_text())
        context = _current_context(document)
        cluster = _find_entry(document["clusters"], context["cluster"])["cluster"]
        user = _find_entry(document["users"], context["user"])["user"] or {}
        if cluster.keys() - _CLUSTER_FIELDS or user.keys() - _USER_FIELDS:
            return None
        host = str(cluster["server"]).rstrip("/")
        authority = _read_authority(path.parent, cluster)
        token = _read_token(path.parent, user)
    except UNREADABLE:
        return None
    return TokenAccess(host, authority, token) if authority or host.startswith("http:") else None


def find_token_file(kubeconfig: Path) -> Path | None:
    """Return `tokenFile` of the current context's user; None if there is none."""
    try:
        document = yaml.safe_load(kubeconfig.read_text())
        user = _find_entry(document["users"], _current_context(document)["user"])["user"]
        token_file = user.get("tokenFile")
    except UNREADABLE:
        return None  # whoever reads the file reports what is wrong with it
    return kubeconfig.parent / token_file if token_file else None


def find_context(kubeconfig: Path) -> Mapping[str, Any]:
    """Return the current context. Raises one of UNREADABLE."""
    return _current_context(yaml.safe_load(kubeconfig.read_text()))


def _socket_options() -> list[tuple[int, int, int]]:
    """Return urllib3's options, and those of TCP keepalive that the system has: macOS lacks one."""
    return [
        *urllib3.connection.HTTPConnection.default_socket_options,
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *(
            (socket.IPPROTO_TCP, getattr(socket, name), value)
            for name, value in _KEEPALIVE.items()
            if hasattr(socket, name)
        ),
    ]


def _has_proxy(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) or environment.get(name.upper()) for name in _PROXIES)


def _find_entry(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return {entry["name"]: entry for entry in entries}[name]


def _current_context(document: dict[str, Any]) -> dict[str, Any]:
    context: dict[str, Any] = _find_entry(document["contexts"], document["current-context"])[
        "context"
    ]
    return context


def _read_authority(folder: Path, cluster: Mapping[str, Any]) -> str:
    data = cluster.get("certificate-authority-data")
    if data:
        return base64.b64decode(data, validate=True).decode()
    file = cluster.get("certificate-authority")
    return (folder / file).read_text() if file else ""


def _read_token(folder: Path, user: Mapping[str, Any]) -> str:
    file = user.get("tokenFile")
    return (folder / file).read_text().strip() if file else str(user.get("token") or "")
