"""`pods/portforward` of an API server, over a websocket, with an HTTP server in the pod."""

import base64
import contextlib
import hashlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_string

HOST = "127.0.0.1"
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _DATA, _ERRORS = 0x82, 0, 1
_SHORT = 126


@dataclass
class Server:
    """Answers each request that comes through a tunnel with `body`; keeps what was asked.

    `refusal` is an HTTP status line in place of the upgrade.
    """

    body: bytes
    refusal: str = ""
    opened: list[str] = field(default_factory=list)
    """Request lines of the upgrades."""
    authorizations: list[str | None] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    """What the pod's own server was sent."""

    def serve(self, listener: socket.socket, pod_port: int) -> None:
        """One connection after another until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(ConnectionError):
                self._connection(connection, pod_port)

    def _connection(self, connection: socket.socket, pod_port: int) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        line, _, rest = head.decode().partition("\r\n")
        headers = message_from_string(rest)
        self.opened.append(line)
        self.authorizations.append(headers["authorization"])
        if self.refusal:
            connection.sendall(f"HTTP/1.1 {self.refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            return
        key = str(headers["Sec-WebSocket-Key"]) + _GUID
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()  # noqa: S324 - RFC 6455
        protocol = str(headers["sec-websocket-protocol"]).partition(",")[0]
        connection.sendall(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n".encode()
        )
        for channel in (_DATA, _ERRORS):
            connection.sendall(_frame(channel, struct.pack("<H", pod_port)))
        while True:
            payload = _payload(connection)
            if payload[:1] == bytes((_DATA,)) and payload[1:]:
                self.requests.append(payload[1:])
                answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self.body)}\r\n\r\n".encode()
                connection.sendall(_frame(_DATA, answer + self.body))


@contextlib.contextmanager
def serving(server: Server, pod_port: int) -> Iterator[str]:
    """Its URL, while it is served."""
    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=server.serve, args=(listener, pod_port), daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _frame(channel: int, payload: bytes) -> bytes:
    body = bytes((channel,)) + payload
    if len(body) < _SHORT:
        return bytes((_BINARY, len(body))) + body
    return bytes((_BINARY, _SHORT)) + struct.pack(">H", len(body)) + body


def _payload(connection: socket.socket) -> bytes:
    """Return the payload of a client's next frame: frames are masked."""
    size = _exactly(connection, 2)[1] & 0x7F
    if size == _SHORT:
        (size,) = struct.unpack(">H", _exactly(connection, 2))
    mask = _exactly(connection, 4)
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(_exactly(connection, size)))


def _exactly(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        part = connection.recv(count - len(read))
        if not part:
            raise ConnectionError
        read += part
    return read
