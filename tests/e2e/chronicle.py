"""The history of claims as the API server tells it, without a gap, and its judge.

It watches directly, from one listing on. A broken connection goes on at the last version seen. An
API server that was started again tells nothing from before its start: those versions are read one
by one, as etcd keeps them for minutes. Where it does not, there is a gap, which fails the test.
"""

import json
import threading
from typing import Any

from driver import errors
from driver.kube import client, gvr
from driver.kube.http import watch_stream
from driver.resources.dra import slices
from tests.fakes import history

_WATCH_S = 3600
_SILENCE_S = 90.0
_AGAIN_S = 0.3
_AWAY = (errors.Unreachable, errors.ServerError, errors.TooManyRequests)


class Chronicle:
    """One thread; `judge` is complete up to `version`."""

    def __init__(
        self,
        kube: client.KubeClient,
        hardware: list[slices.Slice],
        judge: history.History | None = None,
    ) -> None:
        self._kube = kube
        self.judge = history.History(hardware) if judge is None else judge
        self.version = 0
        self.gap: Exception | None = None
        self._stream: watch_stream.Watch | None = None
        self._there: dict[str, tuple[int, Any]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        listing = self._kube.list(gvr.RESOURCE_CLAIMS)
        self.version = int(listing.version)
        for item in sorted(listing.items, key=gvr.object_version):
            self._see(gvr.object_version(item), item)
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
            except _AWAY:
                self._stop.wait(_AGAIN_S)
            except errors.Gone:
                self._catch_up()
            except Exception as gap:  # noqa: BLE001 - the test's own thread raises it
                self.gap = gap
                return

    def _follow(self) -> None:
        self._stream = self._kube.watch(
            gvr.RESOURCE_CLAIMS,
            version=str(self.version),
            timeout_s=_WATCH_S,
            read_timeout_s=_SILENCE_S,
        )
        try:
            for event in self._stream:
                self._take(event)
        finally:
            self._stream.close()

    def _take(self, event: watch_stream.WatchEvent) -> None:
        version = gvr.object_version(event.object)
        assert version > self.version or event.type is watch_stream.EventType.BOOKMARK
        if event.type is not watch_stream.EventType.BOOKMARK:
            deleted = event.type is watch_stream.EventType.DELETED
            self._see(version, event.object, deleted=deleted)
        self.version = version

    def _see(self, version: int, entry: gvr.Object, *, deleted: bool = False) -> None:
        self.judge.see(version, entry, deleted=deleted)
        uid = entry["metadata"]["uid"]
        if deleted:
            self._there.pop(uid, None)
        else:
            self._there[uid] = (version, entry)

    def _catch_up(self) -> None:
        """Every version until now, one by one."""
        try:
            until = int(self._kube.list(gvr.RESOURCE_CLAIMS).version)
            for version in range(self.version + 1, until + 1):
                self._at(version)
        except _AWAY:
            self._stop.wait(_AGAIN_S)
        except errors.ApiError as gap:
            self.gap = gap
            self._stop.set()

    def _at(self, version: int) -> None:
        query = {"resourceVersion": str(version), "resourceVersionMatch": "Exact"}
        items = json.loads(self._kube.get_text(gvr.RESOURCE_CLAIMS.path(None), query))["items"]
        now = {item["metadata"]["uid"]: item for item in items}
        for uid in self._there.keys() - now.keys():
            self._see(version, self._there[uid][1], deleted=True)
        for uid, entry in now.items():
            changed = gvr.object_version(entry)
            if changed > self._there.get(uid, (0, None))[0]:
                self._see(changed, entry)
        self.version = version
