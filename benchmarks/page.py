"""Measure the page and the JSON API at 1,000 nodes of 8 GPUs: `python -m benchmarks.page`.

Every GPU is published as the plugin publishes it (whole, MIG, MPS, time-slicing); every second one
has a claim with a pod. `first` is after the caches changed: everything is worked out anew but for
what did not change on a node; `again` is within the same second. Processor time of one thread. The
paths take turns: what slows the machine for a few seconds slows one round of each.
"""

import argparse
import dataclasses
import functools
import json

import prometheus_client
import werkzeug.test

from benchmarks import record, timing
from benchmarks.allocator import fixtures
from driver import clock
from driver.controller.web import application, metrics
from driver.controller.web.auth import guard
from driver.scheduling.reports import catalog, read_model
from tests.support.builders import objects
from tests.support.scenarios import fleets

NODES, GPUS, USED = 1_000, 8, 4
ROUNDS, AGAIN = 6, 5
_OK = 200
_AT = "2026-11-22T12:00:00Z"
_ASKED = {
    "overview, a page of 100 nodes": "/",
    "overview, filtered": "/?state=idle&mode=whole",
    "JSON of 100 nodes": "/api/v1/nodes",
    "JSON of 1,000 nodes": "/api/v1/nodes?limit=1000",
    "JSON of the fleet": "/api/v1/fleet",
    "a node": "/nodes/@NODE@",
    "claims, a page of 100": "/claims",
}


def main() -> None:
    """Measure, print, store."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--nodes", type=int, default=NODES)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    options = arguments.parse_args()
    start = record.Start()
    source = _Changing(fleets.objects_of(cluster(options.nodes)))
    app = application.build_app(
        application.AppDeps(
            source,
            guard.Guard(),
            metrics.Metrics(prometheus_client.CollectorRegistry()),
            clock.SystemClock(),
        )
    )
    client = app.test_client()
    node = fixtures.node_name(options.nodes // 2)
    _rounds(1, source, client, node)  # as nothing is worked out yet
    times, calibrations = _rounds(options.rounds, source, client, node)
    figures = [
        figure for name, asked in times.items() for figure in asked.figures(name, calibrations)
    ]
    record.write("page", figures, start)


@dataclasses.dataclass(slots=True)
class _Times:
    """Milliseconds of the requests for a path, and the bytes of the last answer."""

    path: str
    first: list[float] = dataclasses.field(default_factory=list)
    again: list[float] = dataclasses.field(default_factory=list)
    size: int = 0

    def measure(self, client: werkzeug.test.Client) -> None:
        """Request it for the first time since the caches changed, and again."""
        get = functools.partial(client.get, self.path)
        self.first.append(timing.thread_ms(get))
        self.again += [timing.thread_ms(get) for _ in range(AGAIN)]
        answer = get()
        assert answer.status_code == _OK, answer.text  # noqa: S101 - else nothing was measured
        self.size = len(answer.data)

    def figures(self, name: str, calibrations: record.Calibrations) -> list[record.Figure]:
        """Return the figures, with how slow the machine was between the rounds."""
        return [
            calibrations.figure(f"{name}, first", "ms", self.first),
            record.figure(f"{name}, size", "KiB", [self.size / 1024]),
            calibrations.figure(f"{name}, again", "ms", self.again),
        ]


class _Changing:
    """A source whose next look is of caches in which one claim has changed."""

    def __init__(self, objects: read_model.Objects) -> None:
        self._objects = objects
        self._now = catalog.Reports(read_model.ClusterModel(objects), _AT)

    def change(self) -> None:
        changed = dataclasses.replace(self._objects, claims=dict(self._objects.claims))
        self._now = catalog.Reports(read_model.ClusterModel(changed, self._now.cluster), _AT)

    def read(self) -> catalog.Reports:
        return self._now


def _rounds(
    count: int, source: _Changing, client: werkzeug.test.Client, node: str
) -> tuple[dict[str, _Times], record.Calibrations]:
    """Measure every path so many times, in turn, the calibrators between the rounds."""
    times = {name: _Times(path.replace(fixtures.NODE, node)) for name, path in _ASKED.items()}
    calibrations = record.Calibrations()
    for _ in calibrations.between(range(count)):
        for asked in times.values():
            source.change()
            asked.measure(client)
    return times, calibrations


def cluster(count: int) -> list[fleets.Raw]:
    """Nodes as the simulated machine publishes them; every second GPU has a claim with a pod."""
    template = fixtures.every_face("controller")
    raw: list[fleets.Raw] = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **device_class}
        for device_class in fixtures.classes()
    ]
    for number in range(count):
        node = fixtures.node_name(number)
        raw.append({"apiVersion": "v1", "kind": "Node", **fixtures.node(number)})
        published = json.loads(fixtures.filled(template, number))
        raw += published
        for gpu in _gpus(published)[:: GPUS // USED]:
            raw += _user(node, gpu)
    return raw


def _gpus(published: list[fleets.Raw]) -> list[str]:
    """The whole GPUs of a node's slices."""
    devices = (device for piece in published for device in piece["spec"].get("devices", ()))
    return [
        device["name"] for device in devices if device["attributes"]["type"].get("string") == "gpu"
    ]


def _user(node: str, gpu: str) -> tuple[fleets.Raw, fleets.Raw]:
    """A claim that has a GPU, and its pod."""
    name = f"{node}-{gpu}"
    user = {"resource": "pods", "name": name, "uid": objects.uid_of(name)}
    status = objects.allocated(node, gpu, reserved=[user], allocationTimestamp=_AT)
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    pod = objects.a_pod(name, name, nodeName=node, status={"phase": "Running"})
    return (
        claim | objects.a_claim(name, status=status),
        {"apiVersion": "v1", "kind": "Pod", **pod},
    )


if __name__ == "__main__":
    main()
