"""Wiring of the plugin: recovery, then the DRA service, registration, and the slices last."""

import threading
from dataclasses import dataclass

import grpc
import structlog

from driver import errors
from driver.kube import backoff
from driver.kubeletplugin import composition, process_parts
from driver.kubeletplugin.collectors import scrape
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.recovery import startup
from driver.kubeletplugin.rpc import dra_service, health_stream, registration, unix_server
from driver.kubeletplugin.rpc import health_report as kubeletplugin_health_report
from driver.runtime import lifecycle, malloc
from driver.runtime.metrics import collector as metric_collector
from driver.runtime.metrics import server as telemetry_server

_log = structlog.get_logger(__name__)
_DRAIN_S = 6.0
_REGISTRATION_GRACE_S = 0.5
_REGISTRATION_WORKERS = 4
_STALE_S = 120.0


@dataclass(frozen=True, slots=True)
class App:
    """All threads of a plugin process."""

    _base: process_parts.Base
    _claims: process_parts.Claims
    _publishing: process_parts.Publishing
    _paths: sockets.Paths
    _recovery: startup.StartupRecovery
    _thread_guard: startup.LibraryThreadGuard
    _streams: health_stream.HealthStreams
    _dra: unix_server.UnixServer
    _registration: registration.Registration

    def run(self) -> int:
        """Run until stopped, or until an essential thread dies; return the exit code.

        Raises:
            NodeFault: another process serves our sockets, or an address cannot be bound.
        """
        instance = sockets.InstanceLock.acquire(self._paths.service)
        try:
            sockets.refuse_if_served(self._paths.registration)
            sockets.refuse_if_served(self._paths.service)
            telemetry = self._build_telemetry()
            threading.excepthook = self._thread_guard.hook
            life = lifecycle.Lifecycle(_log, self._base.deps.clock)
            self._register_threads(life, telemetry)
            _log.info("started", metrics_port=telemetry.port, node=self._base.config.node_name)
            return life.run()
        finally:
            threading.excepthook = threading.__excepthook__
            instance.release()

    def _register_threads(
        self, life: lifecycle.Lifecycle, telemetry: telemetry_server.Telemetry
    ) -> None:
        """Register the threads in start order; they stop in reverse."""
        recovered, time, slices = (
            self._recovery.ran_once,
            self._base.deps.clock,
            self._publishing.publisher.slices,
        )
        registrar = unix_server.UnixServer(
            "registration",
            self._paths.registration,
            self._registration.add_to,
            unix_server.Settings(
                _REGISTRATION_WORKERS, _REGISTRATION_GRACE_S, self._base.deps.clock
            ),
        )
        life.thread("orphans", self._thread_guard.run)
        life.thread("telemetry", telemetry.run)
        life.thread("events", self._base.recorder.run, interrupt=self._base.recorder.interrupt)
        life.thread("heap", malloc.HeapTrimmer(self._base.deps.clock).run)
        life.on_stop("nvml", self._base.core.close)
        life.on_stop("claims", self._claims.service.close)
        life.thread("recovery", self._recovery.run)
        life.thread("health", self._publishing.health.run)
        life.thread("mps", self._claims.mps_watch.run)
        life.thread(
            "conditions",
            self._claims.status_writer.run,
            interrupt=self._claims.status_writer.interrupt,
        )
        life.thread("usage", self._claims.usage_watch.run)
        life.thread("refusals", lifecycle.start_after(recovered, self._track_readiness, time))
        life.thread("reclaim", lifecycle.start_after(recovered, self._claims.collector.run, time))
        if self._publishing.reset_watch is not None:
            resets = self._publishing.reset_watch
            run = lifecycle.start_after(recovered, resets.run, time)
            life.thread("resets", run, interrupt=resets.wake)
        life.thread("dra", lifecycle.start_after(recovered, self._dra.run, time))
        life.on_stop("health streams", self._streams.close)
        life.on_stop("newest", self._publishing.election.leave)
        life.thread("slices", slices.run, interrupt=slices.interrupt)
        life.thread(
            "publisher",
            # Before the kubelet knows us it would refuse a pod, and try again a minute later.
            lifecycle.start_after(
                self._registration.accepted, self._publishing.publisher.run, time
            ),
            interrupt=self._publishing.publisher.interrupt,
        )
        life.thread(
            "name", lifecycle.start_after(self._dra.serving, self._publishing.name_gate.run, time)
        )
        life.thread(
            "registration",
            lifecycle.start_after(self._publishing.name_gate.name_free, registrar.run, time),
        )

    def _track_readiness(self, stop: threading.Event) -> None:
        """Report prepared claims again, then track refusals."""
        try:
            self._claims.readiness.restore(self._base.core.records())
        except errors.NodeFault as e:
            _log.warning("not said what stands", error=str(e))
        self._claims.readiness.run(stop)

    def _build_telemetry(self) -> telemetry_server.Telemetry:
        def stale() -> str | None:
            old = self._publishing.publisher.slices.age_s() > _STALE_S
            return f"no word from the API server for {_STALE_S:.0f} s" if old else None

        host, port = self._base.config.metrics_host_port
        ready = {
            "recovery": self._recovery.problem,
            "name": self._publishing.name_gate.problem,
            "registration": self._registration.problem,
            "slices": self._publishing.publisher.problem,
            "health": self._publishing.health.problem,
            "caches": stale,
        }
        # Health is about this process: without the API server it still serves the kubelet.
        health = {"publisher": self._publisher_stalled, "health": self._health_stalled}
        # One faulty GPU of eight does not make the node's plugin not ready.
        notes = {
            "gpus": self._publishing.health.unhealthy_summary,
            "slices": self._publishing.publisher.withheld,
        }
        return telemetry_server.Telemetry(
            host, port, self._base.registry, health=health, ready=ready, notes=notes
        )

    def _health_stalled(self) -> str | None:
        idle_s = self._publishing.health.idle_s()
        limit_s = self._base.config.health_poll_seconds + _STALE_S
        return f"no round for {idle_s:.0f} s" if idle_s > limit_s else None

    def _publisher_stalled(self) -> str | None:
        if not self._registration.accepted.is_set():
            return None
        idle_s = self._publishing.publisher.idle_s()
        limit_s = self._base.config.rediscover_seconds + _STALE_S
        return f"no round for {idle_s:.0f} s" if idle_s > limit_s else None


def build(config: PluginConfig, core: composition.Core, deps: process_parts.ProcessDeps) -> App:
    """Build a plugin process over the node's core."""

    def node_uid() -> str:
        return publishing.publisher.node_uid()

    base = process_parts.build_base(config, core, deps, node_uid)
    paths = sockets.socket_paths(config.kubelet_root, config.driver_name, config.instance)
    claims, publishing = (
        process_parts.build_claims(base),
        process_parts.build_publishing(base, paths),
    )
    streams = health_stream.HealthStreams(lambda: _device_health(publishing), deps.clock)
    _subscribe(core, publishing, streams)
    _register_collector(base, claims, publishing)

    def add_services(server: grpc.Server) -> None:
        claims.service.add_to(server)
        streams.add_to(server)

    serving = unix_server.Settings(dra_service.HANDLERS, _DRAIN_S, deps.clock)
    return App(
        base,
        claims,
        publishing,
        paths,
        startup.StartupRecovery(
            core.recover, backoff.Backoff(startup.RECOVERING, deps.jitter), deps.clock
        ),
        startup.LibraryThreadGuard(deps.clock),
        streams,
        unix_server.UnixServer("dra", paths.service, add_services, serving),
        registration.Registration(config.driver_name, paths.service, base.metrics),
    )


def _subscribe(
    core: composition.Core,
    publishing: process_parts.Publishing,
    streams: health_stream.HealthStreams,
) -> None:
    """Connect what changes GPUs to what publishes them."""
    watch, publisher = publishing.health, publishing.publisher
    watch.subscribe(publisher.publish_health)
    core.mode_refusals.subscribe(publisher.publish_now)
    watch.subscribe(lambda _gpu: streams.notify())
    watch.on_gpus_changed(publisher.publish_now)
    watch.on_gpu_changed(publisher.check_gpu)
    reset_watch = publishing.reset_watch
    if reset_watch is not None:
        watch.subscribe(lambda _gpu: reset_watch.wake())


def _register_collector(
    base: process_parts.Base, claims: process_parts.Claims, publishing: process_parts.Publishing
) -> None:
    config, core = base.config, base.core
    sources = scrape.Sources(
        core.records,
        core.write_time,
        publishing.pool_builder.last_published,
        publishing.health.ailments,
        claims.activity.readings,
        publishing.publisher.lag_s,
    )
    source = scrape.ScrapeSource(config.driver_name, config.node_name, sources, base.deps.clock)
    base.registry.register(metric_collector.FigureCollector(scrape.FAMILIES, source.figures))


def _device_health(publishing: process_parts.Publishing) -> tuple[health_stream.DeviceHealth, ...]:
    pool, gpus = publishing.pool_builder.last_published()
    if pool is None:
        return ()
    return kubeletplugin_health_report.pool_health(pool, gpus, publishing.health.ailments())
