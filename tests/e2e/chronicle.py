"""The history of claims as the API server tells it, without a gap, and its judge.

It watches directly, from one listing on. A broken connection goes on at the last version seen; a
version that is gone would be a gap, and fails the test: the history is never listed anew.
"""

import threading

from driver import errors
from driver.kube import client, resource, watching
from driver.resources import slices
from tests.fakes import history

_WATCH_S = 3600
_SILENCE_S = 90.0


class Chronicle:
    """One thread; `judge` is complete up to `version`."""

    def __init__(self, kube: client.KubeClient, hardware: list[slices.Slice]) -> None:
        self._kube = kube
        self.judge = history.History(hardware)
        self.version = 0
        self.gap: Exception | None = None
        self._stream: watching.Watch | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        listing = self._kube.list(resource.RESOURCE_CLAIMS)
        self.version = int(listing.version)
        for one in sorted(listing.items, key=resource.version_of):
            self.judge.see(resource.version_of(one), one)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._stream is not None:
            self._stream.interrupt()
        self._thread.join(5)

    def reaches(self, version: int) -> bool:
        return self.version >= version

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except errors.Unreachable:
                continue
            except Exception as gap:  # noqa: BLE001 - the test's own thread raises it
                self.gap = gap
                return

    def _follow(self) -> None:
        self._stream = self._kube.watch(
            resource.RESOURCE_CLAIMS,
            version=str(self.version),
            timeout_s=_WATCH_S,
            read_timeout_s=_SILENCE_S,
        )
        try:
            for event in self._stream:
                self._take(event)
        finally:
            self._stream.close()

    def _take(self, event: watching.WatchEvent) -> None:
        version = resource.version_of(event.object)
        assert version > self.version or event.type is watching.EventType.BOOKMARK
        if event.type is not watching.EventType.BOOKMARK:
            deleted = event.type is watching.EventType.DELETED
            self.judge.see(version, event.object, deleted=deleted)
        self.version = version
