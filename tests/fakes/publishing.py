"""A publisher that runs, as the process runs it."""

import threading
from collections.abc import Callable
from typing import Any, Protocol

from driver.kube import gvr
from driver.kubeletplugin.publish import pool_builder, publisher, publisher_election
from tests.fakes import clock as fake_clock
from tests.fakes import handing, plugin_shell, waiting
from tests.fakes.apiserver import faults
from tests.fakes.apiserver import server as api_server


class Running:
    """A publisher on its threads."""

    def __init__(
        self, created: publisher.Publisher, turn: publisher_election.PublisherElection
    ) -> None:
        self.publisher = created
        self._turn = turn
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=run, args=(self._stop,))
            for run in (created.slices.run, created.run)
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
    """Start another publisher, of the fixture's GPUs unless others or sources are passed."""

    def __call__(
        self,
        others: plugin_shell.Gpus | None = None,
        sources: pool_builder.Sources | None = None,
        rediscover_s: float = 0.05,
    ) -> Running: ...


NodeMaker = Callable[[dict[str, str]], None]
"""Makes the Node anew, with these labels."""


def published(running: Running) -> None:
    """Wait until it says that all is as it should be, and offered."""
    waiting.until(lambda: running.publisher.problem() is running.publisher.withheld() is None)


def writes(api: api_server.ApiServer) -> list[str]:
    """The methods of all writes so far."""
    return [request.method for request in api.requests if faults.writes(request)]


def only_slice(api: api_server.ApiServer) -> dict[str, Any]:
    """The one slice with devices; counters have theirs."""
    (result,) = (
        entry for entry in api.all(gvr.RESOURCE_SLICES) if "sharedCounters" not in entry["spec"]
    )
    return result


def devices(api: api_server.ApiServer) -> list[dict[str, Any]]:
    """All that are published, in the slices' order."""
    slices = api.all(gvr.RESOURCE_SLICES)
    return [entry for each in slices for entry in each["spec"].get("devices") or ()]


def brand_of(api: api_server.ApiServer) -> str | None:
    """Return the brand of the published GPUs; None between two writes."""
    strings = {device["attributes"]["brand"]["string"] for device in devices(api)}
    return str(strings.pop()) if len(strings) == 1 else None


def until_given_by(api: api_server.ApiServer, whom: str | None) -> None:
    """Wait until all devices are given out by one allocator; None: until nobody gives out any."""
    waiting.until(lambda: {handing.giver(device) for device in devices(api)} == {whom}, 20)


def breaches(api: api_server.ApiServer) -> list[str]:
    """Return what the judge says of all slices ever written, by publishers with a swift clock."""
    judge = handing.Judge(handing.APART_S / fake_clock.SWIFT)
    for request in api.requests:
        if faults.writes(request) and "resourceslices" in request.path and request.body:
            judge.see(request.body["metadata"]["name"], request.body, request.at)
    return judge.breaches
