"""A certificate in two files, re-read whenever they change."""

import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from driver import clock, errors

_log = structlog.get_logger(__name__)
RELOAD_S = 15.0
SOON_S = 1.0
"""Until there is a certificate."""
Use = Callable[[bytes, bytes], None]
"""Serves a certificate and its key (PEM). Raises BadInput."""


class CertificateFiles:
    """Follows two files, however they are replaced. `run` is a thread's target."""

    def __init__(self, certificate: Path, key: Path, use: Use, time: clock.Clock) -> None:
        self._certificate = certificate
        self._key = key
        self._use = use
        self._clock = time
        self._served: tuple[bytes, bytes] | None = None

    def run(self, stop: threading.Event) -> None:
        """Read them every fifteen seconds until `stop` is set."""
        while not stop.is_set():
            try:
                self.reload()
            except errors.RationError as error:
                _log.warning("certificate not read", error=str(error))
            self._clock.wait(stop, RELOAD_S if self._served else SOON_S)

    def reload(self) -> None:
        """Serve the files' content if it is new.

        Raises:
            NodeFault: one cannot be read.
            BadInput: they are not a pair, for example if only one has been replaced so far.
        """
        try:
            pair = self._certificate.read_bytes(), self._key.read_bytes()
        except OSError as error:
            raise errors.NodeFault("read", str(error.filename), str(error.strerror)) from error
        if pair != self._served:
            self._use(*pair)
            _log.info("certificate served", file=str(self._certificate))
            self._served = pair
