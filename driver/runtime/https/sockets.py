"""Sockets whose reads and writes end at one deadline, with TLS and without."""

import socket
import ssl
from typing import Any

import cheroot.errors
import cheroot.makefile
import cheroot.ssl

from driver import clock


class _DeadlineSocket:
    """Common base of both kinds: `set_deadline` sets the deadline."""

    _clock: clock.Clock
    _until: float

    def set_deadline(self, time: clock.Clock, deadline_s: float) -> None:
        """Allow `deadline_s` from now for all further reads and writes."""
        self._clock, self._until = time, time.monotonic() + deadline_s
        self._apply_deadline()

    def _apply_deadline(self) -> None:
        left_s = self._until - self._clock.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")  # cheroot matches this text
        self.settimeout(left_s)  # type: ignore[attr-defined]


class Plain(_DeadlineSocket, socket.socket):
    """A socket without TLS."""

    def handshake(self) -> None:
        """Do nothing: there is no handshake."""

    def recv_into(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """Receive within the deadline."""
        self._apply_deadline()
        return super().recv_into(*arguments, **more)

    def send(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """Send within the deadline."""
        self._apply_deadline()
        return super().send(*arguments, **more)


class Secure(_DeadlineSocket, ssl.SSLSocket):
    """A socket with TLS."""

    def handshake(self) -> None:
        """Do the handshake, unless it is done."""
        if self.version() is None:
            self.do_handshake()

    def recv_into(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """Receive within the deadline."""
        self._apply_deadline()
        return super().recv_into(*arguments, **more)

    def send(self, *arguments: Any, **more: Any) -> int:  # noqa: ANN401 - as the socket's
        """Send within the deadline."""
        self._apply_deadline()
        return super().send(*arguments, **more)


class Adapter(cheroot.ssl.Adapter):
    """Gives each accepted socket its deadline; cheroot asks an adapter for TLS only."""

    scheme = "http"

    def __init__(self) -> None:
        """Create it without cheroot's arguments: certificates come later, or not at all."""

    def bind(self, sock: Any) -> Any:  # noqa: ANN401 - cheroot's sockets
        """Return the socket unchanged."""
        return sock

    def wrap(self, sock: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - cheroot's sockets
        """Return the same connection with a deadline."""
        return Plain(fileno=sock.detach()), self.get_environ()

    def get_environ(self) -> dict[str, str]:
        """Return the WSGI variables."""
        return {"wsgi.url_scheme": self.scheme}

    def makefile(self, sock: Any, mode: str = "r", bufsize: int = -1) -> Any:  # noqa: ANN401 - as above
        """Return a file of the socket."""
        return cheroot.makefile.MakeFile(sock, mode, bufsize)


class Tls(Adapter):
    """Wraps sockets with the current context; the first reader does the handshake."""

    scheme = "https"

    def __init__(self) -> None:
        super().__init__()
        self.context: ssl.SSLContext | None = None

    def wrap(self, sock: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - cheroot's sockets
        """Return the same connection with TLS; without a certificate it is closed."""
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
        """Return the WSGI variables."""
        return {**super().get_environ(), "HTTPS": "on"}
