"""Connection to a port of a pod's loopback, through the API server (`pods/portforward`)."""

import http.client
import ssl
from pathlib import Path
from typing import Any

from kubernetes.client import exceptions
from kubernetes.stream import ws_client

from driver import errors
from driver.kube import gvr
from driver.kube.http import official_client

_TIMEOUT_S = 10.0


class Tunnel:
    """HTTP requests to a server in a pod, one after another. Not thread safe.

    It needs only the right to create pods/portforward in the pod's namespace.
    """

    def __init__(self, kubeconfig: Path | None, namespace: str, pod: str, port: int) -> None:
        self._kubeconfig = kubeconfig
        self._target = namespace, pod, port
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str) -> tuple[int, bytes]:
        """GET a path: returns the status and the body.

        Raises Unreachable, or BadInput without credentials.
        """
        namespace, pod, port = self._target
        try:
            connection = self._connection or self._open()
            connection.request("GET", path, headers={"Host": "localhost"})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            self._connection = None
            message = f"pod {namespace}/{pod} port {port}: {str(error) or type(error).__name__}"
            raise errors.Unreachable(0, "Unreachable", message) from error

    def _open(self) -> http.client.HTTPConnection:
        settings = official_client.load_settings(self._kubeconfig)
        namespace, pod, port = self._target
        token = official_client.authorization(settings)
        # The websocket alone: to call the client's own method of this path its models are loaded,
        # for a second.
        forward: Any = ws_client.portforward_call
        try:
            tunnel_socket = forward(
                settings,
                "GET",
                settings.host + gvr.PODS.path(namespace, pod, "portforward"),
                query_params=[("ports", str(port))],
                headers={"authorization": token} if token else {},
            ).socket(port)
        except exceptions.ApiException as error:
            raise errors.Unreachable(0, "Unreachable", _reason(error)) from error
        tunnel_socket.setblocking(True)  # noqa: FBT003 - the socket's own signature
        tunnel_socket.settimeout(_TIMEOUT_S)
        self._connection = http.client.HTTPConnection("localhost", port, timeout=_TIMEOUT_S)
        self._connection.sock = tunnel_socket
        return self._connection


def _reason(error: Exception) -> str:
    """Return the first line of the server's message."""
    message = str(getattr(error, "reason", "") or error)
    return message.strip().partition("\n")[0]
