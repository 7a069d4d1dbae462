"""The page, wired: who may read, where from, at which address. Without an address there is none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import prometheus_client
import structlog

from driver import clock
from driver.controller.web import application, leader, leader_proxy, metrics, ports
from driver.controller.web.auth import guard, rules, token_reviews
from driver.kube import client
from driver.runtime import lifecycle
from driver.runtime.https import cert_files, server

_log = structlog.get_logger(__name__)
LIMITS = server.Limits(deadline_s=10.0, body=guard.MOST_BYTES, threads=8, connections=256)
_CALL_S = 4.0
"""Of what the API server is asked about who reads."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is: `certificate` and its key, both or none."""

    address: tuple[str, int]
    with_token: bool
    certificate: Path | None = None
    key: Path | None = None


class Thread(NamedTuple):
    """A thread of the process."""

    name: str
    run: lifecycle.Target
    interrupt: Callable[[], None] | None = None


class Page:
    """Listens from construction on. Raises NodeFault where it cannot."""

    def __init__(
        self,
        place: Place,
        kube: client.KubeClient,
        source: ports.Source,
        leads: leader.Leader,
        registry: prometheus_client.CollectorRegistry,
        time: clock.Clock,
    ) -> None:
        self._place = place
        self._clock = time
        host, port = place.address
        asked = (
            token_reviews.Callers(kube.with_timeout(_CALL_S), time) if place.with_token else None
        )
        local = rules.is_loopback(host)
        parts = application.Parts(
            source,
            guard.Guard(asked, local=local and asked is None, secure=place.key is not None),
            metrics.Metrics(registry),
            time,
            None if local else leader_proxy.Forwarding(leads.address, port, place.certificate),
        )
        made = application.make(parts)
        self._server = server.Server(
            place.address, made, time, LIMITS, tls=place.certificate is not None
        )

    @property
    def port(self) -> int:
        """The port listened on."""
        return self._server.port

    def threads(self) -> Iterator[Thread]:
        """What has to run."""
        place = self._place
        if place.certificate and place.key:
            followed = cert_files.CertificateFiles(
                place.certificate, place.key, self._server.use, self._clock
            )
            yield Thread("page-certificate", followed.run)
        yield Thread("page", self._server.run, self._server.interrupt)
