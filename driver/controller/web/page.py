"""Wires the page: access, source, address. Without an address there is none."""

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
LIMITS = server.Limits(deadline_s=10.0, body=guard.MAX_BYTES, threads=8, connections=256)
_CALL_S = 4.0
"""Of what the API server is asked about who reads."""


@dataclass(frozen=True, slots=True)
class PageConfig:
    """Address and TLS files: `certificate` and its key, both or none."""

    address: tuple[str, int]
    token_required: bool
    certificate: Path | None = None
    key: Path | None = None


class PageThread(NamedTuple):
    """A thread of the process."""

    name: str
    run: lifecycle.Target
    interrupt: Callable[[], None] | None = None


class Page:
    """Listens from construction on. Raises NodeFault where it cannot."""

    def __init__(
        self,
        config: PageConfig,
        kube: client.KubeClient,
        source: ports.ReportSource,
        leads: leader.Leader,
        registry: prometheus_client.CollectorRegistry,
        time: clock.Clock,
    ) -> None:
        self._config = config
        self._clock = time
        host, port = config.address
        reviewer = (
            token_reviews.TokenReviewer(kube.with_timeout(_CALL_S), time)
            if config.token_required
            else None
        )
        local = rules.is_loopback(host)
        parts = application.AppDeps(
            source,
            guard.Guard(reviewer, local=local and reviewer is None, secure=config.key is not None),
            metrics.Metrics(registry),
            time,
            None if local else leader_proxy.LeaderProxy(leads.address, port, config.certificate),
        )
        app = application.build_app(parts)
        self._server = server.Server(
            config.address, app, time, LIMITS, tls=config.certificate is not None
        )

    @property
    def port(self) -> int:
        """The port listened on."""
        return self._server.port

    def threads(self) -> Iterator[PageThread]:
        """Yield the threads to run."""
        config = self._config
        if config.certificate and config.key:
            followed = cert_files.CertificateFiles(
                config.certificate, config.key, self._server.use, self._clock
            )
            yield PageThread("page-certificate", followed.run)
        yield PageThread("page", self._server.run, self._server.interrupt)
