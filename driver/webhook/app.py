"""The webhook's process, wired: certificates -> server -> verdicts, beside a few caches.

It is a process of its own and no part of the controller's: the API server waits for it, so it must
not wait for the decider's interpreter lock; every replica answers, while only one controller
leads; and what reads bytes of anybody's holds no right to write allocations.
"""

import threading

import prometheus_client
import structlog

from driver import clock
from driver.kube import backoff, client, lease
from driver.resources import extended_resources
from driver.runtime import lifecycle
from driver.runtime.https import cert_files, server
from driver.runtime.metrics import server as telemetry
from driver.webhook import claim_templates, cluster, handler, metrics, verdicts
from driver.webhook import server as door
from driver.webhook.config import AdmissionConfig
from driver.webhook.tls import ca, certificates

_log = structlog.get_logger(__name__)
_LEASE = "ration-admission"
_CALL_S = 2.0
"""For each half of a call on behalf of a review, which has five seconds in all."""


class App:
    """Everything a replica of the webhook runs."""

    def __init__(
        self,
        config: AdmissionConfig,
        kube: client.KubeClient,
        identity: str,
        jitter: backoff.Jitter,
    ) -> None:
        self._config = config
        self._kube = kube
        self._clock = clock.SystemClock()
        self._registry = prometheus_client.CollectorRegistry()
        self._metrics = metrics.Metrics(self._registry)
        self._leadership = LeaderElection(kube, config.namespace, identity, self._clock, jitter)
        self._world = cluster.ClusterState(kube, config.driver_name, config.namespace, self._clock)
        self._reflectors = self._world.reflectors(kube, self._clock, jitter)
        self._server = server.Server(
            config.webhook_host_port, self._application(), self._clock, door.LIMITS
        )

    def run(self) -> int:
        """Until told to stop, or until something essential dies; the exit code."""
        life = lifecycle.Lifecycle(_log, self._clock)
        pages = self._pages()
        ages = claim_templates.Ages(unused_s=self._config.template_ttl_seconds)
        leads = self._leads
        sweeper = claim_templates.Sweeper(self._kube, leads, self._clock, ages)
        life.thread("telemetry", pages.run)
        life.thread("elector", self._leadership.run)
        for name, reflector in self._reflectors.items():
            life.thread(f"reflector-{name}", reflector.run, interrupt=reflector.interrupt)
        life.thread("sweeper", sweeper.run)
        life.thread("certificates", self._certificates().run)
        # Last to start and first to stop: what it answers by is there before and after.
        life.thread("webhook", self._server.run, interrupt=self._server.interrupt)
        _log.info("started", metrics_port=pages.port, port=self._server.port)
        return life.run()

    def _leads(self) -> bool:
        leads = self._leadership.is_leader
        self._metrics.leading.set(leads)
        return leads

    def _application(self) -> door.Application:
        config = self._config
        ages = claim_templates.Ages(unused_s=config.template_ttl_seconds)
        templates = claim_templates.Templates(self._kube.with_timeout(_CALL_S), self._clock, ages)
        classes = extended_resources.Classes(
            config.driver_name, config.whole_class, config.shared_class, config.mig_class
        )
        validate = handler.ReviewHandler(
            "validate",
            lambda request: verdicts.validate(request, self._world),
            self._metrics,
            self._clock,
        )
        mutate = handler.ReviewHandler(
            "mutate",
            lambda request: verdicts.mutate(request, self._world, templates.ensure, classes),
            self._metrics,
            self._clock,
        )
        gate = handler.ReviewHandler(
            "gate",
            lambda request: verdicts.gate(request, self._world),
            self._metrics,
            self._clock,
            patched="gated",
        )
        return door.Application({"/validate": validate, "/mutate": mutate, "/gate": gate})

    def _serve(self, certificate: bytes, key: bytes) -> None:
        """Serve a certificate. Raises BadInput."""
        self._server.use(certificate, key)
        self._metrics.expires.set(ca.not_after(certificate))

    def _certificates(self) -> certificates.SecretCertificates | cert_files.CertificateFiles:
        config, use = self._config, self._serve
        if config.tls_cert_file and config.tls_key_file and config.certificates == "files":
            return cert_files.CertificateFiles(
                config.tls_cert_file, config.tls_key_file, use, self._clock
            )
        certificate_config = certificates.CertificateConfig(
            config.namespace, config.secret, config.hosts, config.webhook_configuration
        )
        return certificates.SecretCertificates(
            self._kube, certificate_config, self._leads, use, self._clock
        )

    def _pages(self) -> telemetry.Telemetry:
        def unserved() -> str | None:
            return None if self._server.ready else "no certificate yet"

        def unfilled() -> str | None:
            empty = [
                name
                for name, reflector in self._reflectors.items()
                if not reflector.synced.is_set()
            ]
            return f"not listed yet: {', '.join(empty)}" if empty else None

        host, port = self._config.metrics_host_port
        return telemetry.Telemetry(
            host,
            port,
            self._registry,
            health={},
            ready={"certificate": unserved, "caches": unfilled},
        )


class LeaderElection:
    """Runs for the webhook's Lease, and again whenever it is lost: nobody dies of losing it.

    What the leader writes is guarded by resource versions, so two leaders for a moment do no harm.
    """

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        identity: str,
        time: clock.Clock,
        jitter: backoff.Jitter,
    ) -> None:
        self._kube = kube
        self._place = namespace, _LEASE, identity
        self._clock = time
        self._timings = lease.Timings(jitter=jitter)
        self._elector = self._candidate()

    @property
    def is_leader(self) -> bool:
        """Return whether this replica surely leads."""
        return self._elector.is_leader

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set."""
        while not stop.is_set():
            self._elector.run(stop, lambda _: None, lambda: None)
            if not stop.is_set():
                self._elector = self._candidate()

    def _candidate(self) -> lease.Elector:
        return lease.Elector(self._kube, *self._place, self._clock, self._timings)
