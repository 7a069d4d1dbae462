"""Kinds that not every server serves, or not under every version: absent means empty."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import structlog

from driver import errors
from driver.kube import client, gvr, reflector
from driver.kube.http import watch_stream

_log = structlog.get_logger(__name__)
AGAIN_S = 60.0
"""Retry interval for a server that does not serve a kind: it may be upgraded."""


class OptionalListWatch:
    """A reflector's source: the first of `versions` that the server serves, or nothing.

    With `forbidden` a kind that may not be listed counts as not served.
    """

    def __init__(
        self, source: reflector.ListWatch, versions: Sequence[str], *, forbidden: bool = False
    ) -> None:
        self._absent: tuple[type[errors.ApiError], ...] = (
            (errors.NotFound, errors.Forbidden) if forbidden else (errors.NotFound,)
        )
        self._source = source
        self._versions = versions
        self._served: reflector.ListWatch | None = None

    @property
    def name(self) -> str:
        """Return the resource's plural."""
        return self._source.name

    def list(self) -> client.Walk:
        """List all objects; none if the kind is not served."""
        for version in self._versions:
            kind: gvr.Resource = replace(self._source.resource, version=version)
            served = replace(self._source, resource=kind)
            try:
                walk = served.list()
            except self._absent as error:
                if isinstance(error, errors.Forbidden):
                    _log.warning(
                        "may not be listed, and is left out", kind=self.name, error=str(error)
                    )
                continue
            self._served = served
            return walk
        if self._served is not None:
            _log.info("no longer served", kind=self.name)
        self._served = None
        return client.Walk(iter(()), "0")

    def watch(self, version: str, timeout_s: int, read_timeout_s: float) -> reflector.Stream:
        """Watch changes after `version`; if the kind is not served, a silent stream."""
        if self._served is None:
            return Silence(self.name, AGAIN_S)
        return self._served.watch(version, timeout_s, read_timeout_s)


class Silence:
    """A stream without events. It ends by NotFound, so that the kind is listed again."""

    def __init__(self, name: str, lasts_s: float) -> None:
        self._name = name
        self._lasts_s = lasts_s
        self._broken = threading.Event()

    def __iter__(self) -> "Silence":
        return self

    def __next__(self) -> watch_stream.WatchEvent:
        self._broken.wait(self._lasts_s)
        raise errors.NotFound(404, "NotFound", f"{self._name} are not served")

    def interrupt(self) -> None:
        """End it now."""
        self._broken.set()

    def close(self) -> None:
        """Do nothing: no connection is held."""
