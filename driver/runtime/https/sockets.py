"""Sockets whose every read and write ends at one deadline, with TLS and without."""

import socket
import ssl
from typing import Any

import cheroot.errors
import cheroot.makefile
import cheroot.ssl

from driver import clock


class _DeadlineSocket:
    """What both kinds share: `begin` sets the deadline."""

    _clock: clock.Clock
    _until: float

    def set_deadline(self, time: clock.Clock, deadline_s: float) -> None:
        """From now on, `deadline_s` for all there is to read and write."""
        self._clock, self._until = time, time.monotonic() + deadline_s
        self._apply_deadline()

    def _apply_deadline(self) -> None:
        left_s = self._until - self._clock.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")  # cheroot knows it by these words
        self.settimeout(left_s)  # type: ignore[attr-defined]


class Plain(_DeadlineSocket, socket.socket):
    """Without TLS."""

    def handshake(self) -> None:
        """There is none."""

    def recv_into(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """As the socket's."""
        self._apply_deadline()
        return super().recv_into(*arguments, **more)

    def send(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """As the socket's."""
        self._apply_deadline()
        return super().send(*arguments, **more)


class Secure(_DeadlineSocket, ssl.SSLSocket):
    """With TLS."""

    def handshake(self) -> None:
        """Shake hands, unless that is done."""
        if self.version() is None:
            self.do_handshake()

    def recv_into(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """As the socket's."""
        self._apply_deadline()
        return super().recv_into(*arguments, **more)

    def send(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """As the socket's."""
        self._apply_deadline()
        return super().send(*arguments, **more)


class Adapter(cheroot.ssl.Adapter):
    """Gives each accepted socket its deadline; cheroot asks an adapter for TLS only."""

    scheme = "http"

    def __init__(self) -> None:
        """Without what cheroot's own adapters take: certificates come later, or not at all."""

    def bind(self, sock: Any) -> Any:  # noqa: ANN401 - cheroot's sockets
        """As it is."""
        return sock

    def wrap(self, sock: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - cheroot's sockets
        """The same connection, in a hurry."""
        return Plain(fileno=sock.detach()), self.get_environ()

    def get_environ(self) -> dict[str, str]:
        """What WSGI is to know."""
        return {"wsgi.url_scheme": self.scheme}

    def makefile(self, sock: Any, mode: str = "r", bufsize: int = -1) -> Any:  # noqa: ANN401 - as above
        """A file of it."""
        return cheroot.makefile.MakeFile(sock, mode, bufsize)


class Tls(Adapter):
    """Wraps sockets by the present context; the handshake is left to who reads first."""

    scheme = "https"

    def __init__(self) -> None:
        super().__init__()
        self.context: ssl.SSLContext | None = None

    def wrap(self, sock: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - cheroot's sockets
        """The same connection with TLS; without a certificate it is closed."""
        if self.context is None:
            sock.close()  # cheroot leaves it to the garbage collector
            raise cheroot.errors.FatalSSLAlert("there is no certificate yet")
        try:
            wrapped = self.context.wrap_socket(
                sock, server_side=True, do_handshake_on_connect=False
            )
        except OSError as error:  # gone before it began
            sock.close()
            raise cheroot.errors.FatalSSLAlert(str(error)) from error
        return wrapped, self.get_environ()

    def get_environ(self) -> dict[str, str]:
        """What WSGI is to know."""
        return {**super().get_environ(), "HTTPS": "on"}
