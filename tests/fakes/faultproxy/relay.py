"""A watch on its way through the proxy: frame by frame, each as the plan has it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import urllib3

from tests.fakes.faultproxy import plan

if TYPE_CHECKING:
    from tests.fakes.faultproxy import proxy

_HEAD = 24
"""A frame's type is within its first bytes."""
_PIECES = 8


class Cancelled(OSError):
    """The proxy closes."""


class Relay:
    """One stream from its first byte to its last."""

    def __init__(
        self, door: "proxy.Handler", answer: urllib3.BaseHTTPResponse, number: int
    ) -> None:
        self._door = door
        self._answer = answer
        self._number = number
        self._again: bytes | None = None

    def run(self) -> None:
        """Until the server ends it, or a fault does. Raises OSError and urllib3's errors."""
        door = self._door
        door.send_response_only(200)
        door.send_header("Content-Type", "application/json")
        door.send_header("Transfer-Encoding", "chunked")
        door.end_headers()
        door.wfile.flush()
        counts = {True: 0, False: 0}
        for frame in self._frames():
            door.proxy.pass_hole()
            bookmark = b'"BOOKMARK"' in frame[:_HEAD]
            fault = door.proxy.frame_fault(self._number, counts[bookmark], bookmark=bookmark)
            counts[bookmark] += 1
            replayed, self._again = self._again, None
            if not self._pass(frame, fault):
                return
            if replayed is not None:
                self._send(replayed)
        door.wfile.write(b"0\r\n\r\n")
        door.wfile.flush()

    def _pass(self, frame: bytes, fault: plan.FrameFault | None) -> bool:
        """Hand one frame on; whether the stream goes on."""
        match fault:
            case plan.Lose():
                pass
            case plan.Duplicate():
                self._send(frame + frame)
            case plan.Replay():
                self._send(frame)
                self._again = frame
            case plan.Expire():
                error = b'{"type":"ERROR","object":' + status(410, "Expired") + b"}\n"
                self._send(error)
                self._door.wfile.write(b"0\r\n\r\n")
                self._door.wfile.flush()
                return False
            case plan.Trickle(seconds):
                self._trickle(frame, seconds)
            case plan.Cut():
                self._send(frame[: len(frame) // 2])
                self._door.reset()
                return False
            case None:
                self._send(frame)
        return True

    def _frames(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._answer.stream(1 << 16, decode_content=False):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line + b"\n" for line in lines if line.strip())

    def _trickle(self, frame: bytes, seconds: float) -> None:
        size = max(1, len(frame) // _PIECES)
        for start in range(0, len(frame), size):
            self._send(frame[start : start + size])
            if self._door.proxy.closed.wait(seconds / _PIECES):
                raise Cancelled

    def _send(self, data: bytes) -> None:
        self._door.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self._door.wfile.flush()


def status(code: int, reason: str) -> bytes:
    """A metav1.Status, as the API server writes it."""
    text = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected: {reason}",
        "reason": reason,
        "code": code,
    }
    return json.dumps(text).encode()
