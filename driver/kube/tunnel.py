"""A connection to a port of a pod's own loopback, through the API server (`pods/portforward`)."""

import http.client
import ssl
from pathlib import Path
from typing import Any

from driver import errors

_TIMEOUT_S = 10.0


class Tunnel:
    """Asks a server that listens in a pod, one request after another. Not thread safe.

    The right to create pods/portforward in the pod's namespace is all it takes.
    """

    def __init__(self, kubeconfig: Path | None, namespace: str, pod: str, port: int) -> None:
        self._kubeconfig = kubeconfig
        self._to = namespace, pod, port
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str) -> tuple[int, bytes]:
        """GET a path: the status and the body. Raises Unreachable, or what the server refused."""
        namespace, pod, port = self._to
        try:
            connection = self._connection or self._open()
            connection.request("GET", path, headers={"Host": "localhost"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            self._connection = None
            told = f"pod {namespace}/{pod} port {port}: {str(error) or type(error).__name__}"
            raise errors.Unreachable(0, "Unreachable", told) from error

    def _open(self) -> http.client.HTTPConnection:
        # The client's models take half a second to load, and nothing else here needs them.
        from kubernetes import client, config, stream  # noqa: PLC0415
        from kubernetes.client import exceptions  # noqa: PLC0415

        settings = client.Configuration()
        inside = self._kubeconfig is None
        load: Any = config.load_incluster_config if inside else config.load_kube_config
        named = {} if inside else {"config_file": str(self._kubeconfig)}
        namespace, pod, port = self._to
        try:
            load(client_configuration=settings, **named)
            api = client.CoreV1Api(client.ApiClient(settings))
            forward: Any = stream.portforward(
                api.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(port)
            )
            plug = forward.socket(port)
        except (config.ConfigException, exceptions.ApiException) as error:
            raise errors.Unreachable(0, "Unreachable", _reason(error)) from error
        plug.setblocking(True)  # noqa: FBT003 - the socket's own signature
        plug.settimeout(_TIMEOUT_S)
        self._connection = http.client.HTTPConnection("localhost", port, timeout=_TIMEOUT_S)
        self._connection.sock = plug
        return self._connection


def _reason(error: Exception) -> str:
    """The first line of what the server said."""
    told = str(getattr(error, "reason", "") or error)
    return told.strip().partition("\n")[0]
