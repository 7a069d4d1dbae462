"""A publisher that runs, as the process runs it."""

import threading
from typing import Any, Protocol

from driver.kube import resource
from driver.kubeletplugin import newest, publisher
from tests.fakes import plugin_shell
from tests.fakes.apiserver import server as api_server


class Running:
    """A publisher on its threads."""

    def __init__(self, made: publisher.Publisher, turn: newest.Newest) -> None:
        self.publisher = made
        self._turn = turn
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=run, args=(self._stop,)) for run in (made.slices.run, made.run)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        self.publisher.slices.interrupt()
        self.publisher.interrupt()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()
        self._turn.leave()


class Start(Protocol):
    """Start one more, which sees the GPUs of the fixture unless told of others."""

    def __call__(self, others: plugin_shell.Gpus | None = None) -> Running: ...


def only_slice(api: api_server.ApiServer) -> dict[str, Any]:
    """The one slice with devices; counters have theirs."""
    (found,) = (
        one for one in api.all(resource.RESOURCE_SLICES) if "sharedCounters" not in one["spec"]
    )
    return found


def devices(api: api_server.ApiServer) -> list[dict[str, Any]]:
    """All that are published, in the slices' order."""
    slices = api.all(resource.RESOURCE_SLICES)
    return [one for each in slices for one in each["spec"].get("devices") or ()]


def brand_of(api: api_server.ApiServer) -> str | None:
    """Of the GPUs as they are published; None between two writes."""
    found = {device["attributes"]["brand"]["string"] for device in devices(api)}
    return str(found.pop()) if len(found) == 1 else None
