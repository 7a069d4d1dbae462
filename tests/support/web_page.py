"""Web page over the fleet of `scenarios.fleets`; `python -m tests.support.web_page` serves it."""

import contextlib
import dataclasses
import sys
import threading
from collections.abc import Iterator

import flask
import prometheus_client

from driver import clock, ids, names
from driver.controller.web import application, metrics, ports
from driver.controller.web.auth import guard
from driver.runtime.https import server
from driver.scheduling.reports import catalog, model
from tests.support.builders import objects
from tests.support.scenarios import fleets

HOST = "127.0.0.1"
LIMITS = server.Limits(deadline_s=2.0, body=guard.MAX_BYTES, threads=4, connections=64)
_REFUSALS = (
    model.Refusal(
        count=1,
        nodes=("gpu-1",),
        fits=1,
        wanted=9,
        devices={"CountersTaken": 5, "DeviceTainted": 2},
    ),
    model.Refusal(count=1, nodes=("gpu-2",), fits=3, wanted=9, devices={"CountersTaken": 5}),
    model.Refusal(count=1, nodes=("gpu-3",), reason="NodeCordoned", detail="cordoned"),
)
WAITS = model.Explanation(
    at=fleets.AT,
    refusals=_REFUSALS,
    nearest=model.Nearest(
        node="gpu-2", summary="3 of 9 GPUs are free there, and no node has more than 8", ever=False
    ),
)
PLACED = model.Explanation(
    at=fleets.AT,
    why="gpu-1 leaves the most whole GPUs together",
    node="gpu-1",
    considered=(
        model.Considered(node="gpu-1", scores={"topology": 100.0, "pack": 92.0}),
        model.Considered(node="gpu-2", scores={"topology": 100.0, "pack": 40.0}),
    ),
)


def _moment(time: str, reason: str, key: str, message: str, kind: str = "Pod") -> model.Moment:
    namespace, _, name = key.partition("/")
    reported = reason in {"NoFit", "Preempted"}
    return model.Moment(
        at=f"2026-11-22T{time}Z",
        reason=reason,
        warning=reported,
        kind=kind,
        namespace=namespace,
        name=name,
        message=message,
    )


MOMENTS = (
    _moment("11:58:03", "NoFit", "nlp/big", "no node has 16 GPUs; gpu-2 comes nearest with 7"),
    _moment("11:40:12", "Preempted", "dev/notebook", "made room for vision/train"),
    _moment("11:40:20", "Allocated", "vision/train", "4 GPUs on gpu-1", "ResourceClaim"),
    _moment("09:00:05", "Allocated", "nlp/serve", "20 GiB of gpu-1", "ResourceClaim"),
)


def explained(pod: ids.Key) -> model.Explanation | None:
    """Return the explanation of a pending and of a running pod."""
    return {"nlp/big": WAITS, "vision/train": PLACED}.get(pod)


def a_reading(results: list[fleets.Raw] | None = None) -> catalog.Reports:
    """The fleet, with what happened and why."""
    reports = fleets.a_reading(fleets.on_demand() if results is None else results)
    return dataclasses.replace(reports, explain=explained, events=MOMENTS)


@dataclasses.dataclass
class Fixed:
    """A source that says the same, or that it is away."""

    found: catalog.Reports | ports.NotLeader

    def read(self) -> catalog.Reports:
        if isinstance(self.found, ports.NotLeader):
            raise self.found
        return self.found


def an_application(
    source: ports.ReportSource,
    guarded: guard.Guard | None = None,
    forward: application.ForwardRequest | None = None,
    time: clock.Clock | None = None,
) -> flask.Flask:
    """The application, with a registry of its own in `extensions`."""
    registry = prometheus_client.CollectorRegistry()
    counted = metrics.Metrics(registry)
    parts = application.AppDeps(
        source, guarded or guard.Guard(), counted, time or clock.SystemClock(), forward
    )
    app = application.build_app(parts)
    app.extensions["registry"] = registry
    return app


@contextlib.contextmanager
def served(
    app: flask.Flask,
    limits: server.Limits = LIMITS,
    pair: tuple[bytes, bytes] | None = None,
    port: int = 0,
) -> Iterator[int]:
    """A real server on a port of this host, with TLS where there is a certificate and its key."""
    door = server.Server((HOST, port), app, clock.SystemClock(), limits, tls=pair is not None)
    if pair is not None:
        door.use(*pair)
    stop = threading.Event()
    thread = threading.Thread(target=door.run, args=(stop,))
    thread.start()
    try:
        yield door.port
    finally:
        stop.set()
        door.interrupt()
        thread.join(10)


def busy() -> list[fleets.Raw]:
    """The fleet with more at work: a picture of it shows something."""
    raw = fleets.raw()
    for node, index, namespace, name in _MORE:
        key = f"{name}-{node}-{index}"
        user = {"resource": "pods", "name": key, "uid": objects.uid_of(key)}
        document = {"reserved": [user], "allocationTimestamp": "2026-11-22T10:20:00Z"}
        status = objects.allocated(node, fleets.gpu(node, index), **document)
        claim = objects.a_claim(key, status=status, namespace=namespace)
        pod = objects.a_pod(key, key, nodeName=node, status={"phase": "Running"})
        pod["metadata"]["namespace"] = namespace
        raw.append({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim})
        raw.append({"apiVersion": "v1", "kind": "Pod", **pod})
    return raw


_MORE = (
    *(("gpu-2", index, "vision", "render") for index in (1, 2, 3, 4)),
    ("gpu-2", 6, "nlp", "eval"),
    *(("gpu-3", index, "nlp", "pretrain") for index in range(6)),
)


def main() -> None:
    """Serve it on port 8081 until interrupted."""
    with served(an_application(Fixed(a_reading(busy()))), port=8081) as port:
        sys.stdout.write(f"http://localhost:{port}/ ({names.DRIVER})\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
