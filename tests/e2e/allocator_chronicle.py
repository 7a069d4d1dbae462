"""The history of claims and of DeviceTaintRules together: whose devices were whose to allocate."""

import threading
import time

from driver import errors
from driver.kube import client, gvr
from driver.kube.http import watch_stream
from driver.resources.dra import slices
from tests.e2e import chronicle, playground
from tests.fakes import allocator_history

_WATCH_S, _SILENCE_S, _AGAIN_S = 3600, 90.0, 0.3


class AllocatorChronicle(chronicle.Chronicle):
    """Two threads: of claims, and of rules."""

    def __init__(self, kube: client.KubeClient, hardware: list[slices.Slice]) -> None:
        self.owners = allocator_history.AllocatorHistory(hardware)
        super().__init__(kube, hardware, self.owners)
        self._rules_version = ""
        self._rules_stream: watch_stream.Watch | None = None
        self._rules_stop = threading.Event()
        self._rules_thread = threading.Thread(target=self._run_rules, daemon=True)

    def start(self) -> None:
        """Take the rules and claims that there are, and follow both."""
        listing = self._kube.list(gvr.DEVICE_TAINT_RULES)
        self._rules_version = listing.version
        for item in listing.items:
            self.owners.see_rule(gvr.object_version(item), item, time.monotonic())
        self._rules_thread.start()
        super().start()

    def stop(self) -> None:
        """End both threads."""
        self._rules_stop.set()
        if self._rules_stream is not None:
            self._rules_stream.interrupt()
        self._rules_thread.join(5)
        super().stop()

    def complete(self, field: playground.Playground) -> None:
        """Wait until all versions of claims until now are known."""
        version = int(self._kube.list(gvr.RESOURCE_CLAIMS).version)
        # Bookmarks are rare: a write of our own moves the watch on.
        field.create(playground.a_claim("the-last-word"))
        playground.until(lambda: self.reaches(version), 30, "the whole history is known")

    def _see(self, version: int, entry: gvr.Object, *, deleted: bool = False) -> None:
        self.owners.now_s = time.monotonic()
        super()._see(version, entry, deleted=deleted)

    def _run_rules(self) -> None:
        while not self._rules_stop.is_set():
            try:
                self._follow_rules()
            except (errors.Unreachable, errors.ServerError, errors.TooManyRequests):
                self._rules_stop.wait(_AGAIN_S)
            except errors.ApiError as gap:
                self.gap = gap
                return

    def _follow_rules(self) -> None:
        self._rules_stream = self._kube.watch(
            gvr.DEVICE_TAINT_RULES,
            version=self._rules_version,
            timeout_s=_WATCH_S,
            read_timeout_s=_SILENCE_S,
        )
        try:
            for event in self._rules_stream:
                version = gvr.object_version(event.object)
                if event.type is not watch_stream.EventType.BOOKMARK:
                    deleted = event.type is watch_stream.EventType.DELETED
                    self.owners.see_rule(version, event.object, time.monotonic(), deleted=deleted)
                self._rules_version = str(version)
        finally:
            self._rules_stream.close()
