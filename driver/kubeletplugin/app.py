"""Wiring of the plugin: recovery, then the DRA service, registration, and the slices last."""

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import grpc
import prometheus_client
import structlog

from driver import clock, errors, ids, reasons
from driver.devices import health, xids
from driver.kube import backoff, client
from driver.kube.events import recorder
from driver.kubeletplugin import composition, metrics
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin.collectors import scrape
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.health import events as health_events
from driver.kubeletplugin.health import health_watch, reset_watch
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.publish import (
    conflicts,
    cordons,
    name_conflict,
    node_allocator,
    pool_builder,
    publisher,
    publisher_election,
    registered_plugins,
)
from driver.kubeletplugin.records import claims_api, quarantine
from driver.kubeletplugin.recovery import claim_gc, mps_holders, mps_watch, startup
from driver.kubeletplugin.rpc import dra_service, health_stream, registration, unix_server
from driver.kubeletplugin.rpc import health_report as kubeletplugin_health_report
from driver.kubeletplugin.status import claim_status, readiness
from driver.kubeletplugin.usage import activity_watch, claim_pods, usage_watch
from driver.resources.core import nodes
from driver.resources.publish import health_taints
from driver.runtime import lifecycle, malloc
from driver.runtime.metrics import collector as metric_collector
from driver.runtime.metrics import server as telemetry_server

_log = structlog.get_logger(__name__)
COMPONENT: Final = "ration-kubeletplugin"
_DRAIN_S = 6.0
_REGISTRATION_GRACE_S = 0.5
_REGISTRATION_WORKERS = 4
_STALE_S = 120.0
_SAYING_S = 5.0
"""Limit of a call that writes a claim's status; only a stop waits for its end."""
_LOOKING = backoff.Pace(base_s=2.0, max_s=20.0)


@dataclass(frozen=True, slots=True)
class ProcessDeps:
    """Dependencies of the process; tests provide their own."""

    kube: client.KubeClient
    jitter: backoff.Jitter
    clock: clock.Clock


class App:
    """All threads of a plugin process."""

    def __init__(self, config: PluginConfig, core: composition.Core, deps: ProcessDeps) -> None:
        self._config = config
        self._core = core
        self._clock = deps.clock
        self._paths = sockets.socket_paths(config.kubelet_root, config.driver_name, config.instance)
        self._registry = prometheus_client.CollectorRegistry()
        counters = metrics.Metrics(self._registry)
        self._recorder = recorder.EventRecorder(
            deps.kube, COMPONENT, config.node_name, self._clock, deps.jitter
        )
        reporter = plugin_events.EventReporter(self._recorder)
        self._recovery = startup.StartupRecovery(
            core.recover, backoff.Backoff(startup.RECOVERING, deps.jitter), self._clock
        )
        self._mps_watch = _build_mps_watch(core, reporter, counters, self._clock)
        self._status_writer = _build_status_writer(config, deps)
        watch = usage_watch.Deps(reporter, self._status_writer, counters)
        activity = activity_watch.ActivityWatch(
            core.activity_sources, self._status_writer, self._clock
        )
        self._usage_watch = usage_watch.UsageWatch(
            core.usage_sources, watch, config.usage_interval_seconds, self._clock, activity.observe
        )
        self._claim_collector = claim_gc.ClaimCollector(
            core.gc_targets, functools.partial(self._warn_node, reporter), self._clock, deps.jitter
        )
        self._thread_guard = startup.LibraryThreadGuard(self._clock)
        self._readiness = readiness.ReadinessTracker(
            self._status_writer, core.preparation.check, self._clock
        )
        self._service = dra_service.DraService(
            core.preparation, dra_service.Deps(reporter, counters, self._readiness, self._clock)
        )
        self._streams = health_stream.HealthStreams(self._device_health, self._clock)
        serving = unix_server.Settings(dra_service.HANDLERS, _DRAIN_S, self._clock)
        self._dra = unix_server.UnixServer("dra", self._paths.service, self._add_services, serving)
        self._registration = registration.Registration(
            config.driver_name, self._paths.service, counters
        )
        self._quarantine = quarantine.Quarantine(config.state_dir / "quarantine.json", self._clock)
        self._health = _build_health_watch(
            config, core, deps, self._node_uid, (reporter, counters, self._quarantine)
        )
        self._cordons = cordons.Cordons()
        self._pool_builder = _build_pool_builder(config, core, deps, (self._health, self._cordons))
        self._election = publisher_election.PublisherElection(
            config.state_dir / "publishers", config.instance or str(os.getpid()), self._clock
        )
        detector = self._build_conflict_detector()
        publisher_deps = self._publisher_deps(deps, reporter, counters, detector)
        self._publisher = _build_publisher(config, self._pool_builder, deps, publisher_deps)
        self._name_gate = self._build_name_gate(detector)
        self._subscribe()
        self._reset_thread = (
            self._build_reset_watch(reporter, counters) if config.reset_gpus else None
        )
        self._register_collector(activity)

    def _subscribe(self) -> None:
        """Connect what changes GPUs to what publishes them."""
        self._health.subscribe(self._publisher.publish_now)
        self._core.mode_refusals.subscribe(self._publisher.publish_now)
        self._health.subscribe(self._streams.notify)
        self._health.on_gpus_changed(self._publisher.publish_now)

    def _register_collector(self, activity: activity_watch.ActivityWatch) -> None:
        config = self._config
        sources = scrape.Sources(
            self._core.records,
            self._core.write_time,
            self._pool_builder.last_published,
            self._health.ailments,
            activity.readings,
            self._publisher.lag_s,
        )
        source = scrape.ScrapeSource(config.driver_name, config.node_name, sources, self._clock)
        self._registry.register(metric_collector.FigureCollector(scrape.FAMILIES, source.figures))

    def _publisher_deps(
        self,
        deps: ProcessDeps,
        reporter: plugin_events.EventReporter,
        counters: metrics.Metrics,
        detector: conflicts.ConflictDetector,
    ) -> publisher.Deps:
        config, time = self._config, self._clock
        allocator = node_allocator.NodeAllocator(
            config.allocator,
            config.state_dir / "allocator",
            node_allocator.Deps(reporter, counters, time),
        )
        return publisher.Deps(
            deps.kube,
            reporter,
            counters,
            time,
            allocator,
            self._election.is_elected,
            self._update_from_node,
            detector,
        )

    def _update_from_node(self, node: nodes.Node) -> None:
        """Apply an operator's annotations of the Node."""
        self._quarantine.update(node)
        self._cordons.update(node)

    def _build_name_gate(self, detector: conflicts.ConflictDetector) -> name_conflict.NameGate:
        return name_conflict.NameGate(
            lambda: detector.check_name(self._publisher.stored_slices()),
            lambda: bool(self._core.records()),
            self._publisher.report,
            self._publisher.slices.synced,
            self._clock,
        )

    def _build_conflict_detector(self) -> conflicts.ConflictDetector:
        config, own_socket = self._config, self._paths.registration
        return conflicts.ConflictDetector(
            config.driver_name,
            config.allow_device_plugin,
            lambda: registered_plugins.find_foreign_plugins(
                config.kubelet_root, config.driver_name, own_socket
            ),
        )

    def _build_reset_watch(
        self, reporter: plugin_events.EventReporter, counters: metrics.Metrics
    ) -> reset_watch.ResetWatch:
        node, reason = ids.NodeName(self._config.node_name), reasons.Reason.GPU_RESET
        deps = reset_watch.Deps(
            lambda text: reporter.notify_node(node, self._node_uid(), reason, text),
            lambda text: reporter.warn_node(node, self._node_uid(), reason, text),
            counters,
            self._clock,
        )
        watch = reset_watch.ResetWatch(self._core.reset_target, self._health.ailments, deps)
        self._health.subscribe(watch.wake)
        return watch

    def _add_services(self, server: grpc.Server) -> None:
        self._service.add_to(server)
        self._streams.add_to(server)

    def _node_uid(self) -> str:
        return self._publisher.node_uid()

    def _warn_node(self, reporter: plugin_events.EventReporter, text: str) -> None:
        node = ids.NodeName(self._config.node_name)
        reporter.warn_node(node, self._node_uid(), reasons.Reason.CLAIM_RECLAIMED, text)

    def _device_health(self) -> tuple[health_stream.DeviceHealth, ...]:
        pool, gpus = self._pool_builder.last_published()
        if pool is None:
            return ()
        return kubeletplugin_health_report.pool_health(pool, gpus, self._health.ailments())

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
            life = lifecycle.Lifecycle(_log, self._clock)
            self._register_threads(life, telemetry)
            _log.info("started", metrics_port=telemetry.port, node=self._config.node_name)
            return life.run()
        finally:
            threading.excepthook = threading.__excepthook__
            instance.release()

    def _register_threads(
        self, life: lifecycle.Lifecycle, telemetry: telemetry_server.Telemetry
    ) -> None:
        """Register the threads in start order; they stop in reverse."""
        recovered, time, slices = self._recovery.ran_once, self._clock, self._publisher.slices
        registrar = unix_server.UnixServer(
            "registration",
            self._paths.registration,
            self._registration.add_to,
            unix_server.Settings(_REGISTRATION_WORKERS, _REGISTRATION_GRACE_S, self._clock),
        )
        life.thread("orphans", self._thread_guard.run)
        life.thread("telemetry", telemetry.run)
        life.thread("events", self._recorder.run, interrupt=self._recorder.interrupt)
        life.thread("heap", malloc.HeapTrimmer(self._clock).run)
        life.on_stop("nvml", self._core.close)
        life.on_stop("claims", self._service.close)
        life.thread("recovery", self._recovery.run)
        life.thread("health", self._health.run)
        life.thread("mps", self._mps_watch.run)
        life.thread("conditions", self._status_writer.run, interrupt=self._status_writer.interrupt)
        life.thread("usage", self._usage_watch.run)
        life.thread("refusals", lifecycle.start_after(recovered, self._track_readiness, time))
        life.thread("reclaim", lifecycle.start_after(recovered, self._claim_collector.run, time))
        if self._reset_thread is not None:
            resets = self._reset_thread
            run = lifecycle.start_after(recovered, resets.run, time)
            life.thread("resets", run, interrupt=resets.wake)
        life.thread("dra", lifecycle.start_after(recovered, self._dra.run, time))
        life.on_stop("health streams", self._streams.close)
        life.on_stop("newest", self._election.leave)
        life.thread("slices", slices.run, interrupt=slices.interrupt)
        life.thread(
            "publisher",
            # Before the kubelet knows us it would refuse a pod, and try again a minute later.
            lifecycle.start_after(self._registration.accepted, self._publisher.run, time),
            interrupt=self._publisher.interrupt,
        )
        life.thread("name", lifecycle.start_after(self._dra.serving, self._name_gate.run, time))
        life.thread(
            "registration", lifecycle.start_after(self._name_gate.name_free, registrar.run, time)
        )

    def _track_readiness(self, stop: threading.Event) -> None:
        """Report prepared claims again, then track refusals."""
        try:
            self._readiness.restore(self._core.records())
        except errors.NodeFault as e:
            _log.warning("not said what stands", error=str(e))
        self._readiness.run(stop)

    def _build_telemetry(self) -> telemetry_server.Telemetry:
        def stale() -> str | None:
            old = self._publisher.slices.age_s() > _STALE_S
            return f"no word from the API server for {_STALE_S:.0f} s" if old else None

        host, port = self._config.metrics_host_port
        ready = {
            "recovery": self._recovery.problem,
            "name": self._name_gate.problem,
            "registration": self._registration.problem,
            "slices": self._publisher.problem,
            "health": self._health.problem,
            "caches": stale,
        }
        # Health is about this process: without the API server it still serves the kubelet.
        health = {"publisher": self._publisher_stalled, "health": self._health_stalled}
        # One faulty GPU of eight does not make the node's plugin not ready.
        notes = {"gpus": self._health.unhealthy_summary, "slices": self._publisher.withheld}
        return telemetry_server.Telemetry(
            host, port, self._registry, health=health, ready=ready, notes=notes
        )

    def _health_stalled(self) -> str | None:
        idle_s = self._health.idle_s()
        limit_s = self._config.health_poll_seconds + _STALE_S
        return f"no round for {idle_s:.0f} s" if idle_s > limit_s else None

    def _publisher_stalled(self) -> str | None:
        if not self._registration.accepted.is_set():
            return None
        idle_s = self._publisher.idle_s()
        limit_s = self._config.rediscover_seconds + _STALE_S
        return f"no round for {idle_s:.0f} s" if idle_s > limit_s else None


def _build_mps_watch(
    core: composition.Core,
    reporter: plugin_events.EventReporter,
    counters: metrics.Metrics,
    time: clock.Clock,
) -> mps_watch.MpsWatch:
    pods = claim_pods.ClaimPods(core.usage_sources.reader)
    holders = mps_holders.MpsHolders(reporter, core.usage_sources.process_pods, pods, time)
    return mps_watch.MpsWatch(core.records, core.daemons, reporter, counters, holders, time)


def _build_status_writer(config: PluginConfig, deps: ProcessDeps) -> claim_status.ClaimStatusWriter:
    claims_client = claims_api.KubeClaimStatus(deps.kube.with_timeout(_SAYING_S))
    return claim_status.ClaimStatusWriter(
        config.driver_name, config.node_name, claims_client, deps.clock, deps.jitter
    )


def _build_pool_builder(
    config: PluginConfig,
    core: composition.Core,
    deps: ProcessDeps,
    watches: tuple[health_watch.HealthWatch, cordons.Cordons],
) -> pool_builder.PoolBuilder:
    watch, cordon = watches
    sources = pool_builder.Sources(
        core.read_gpus,
        core.rules,
        lambda inventory: health_taints.taints(
            inventory.all_gpus,
            health.with_unread_gpus(watch.ailments(), (gpu.uuid for gpu in inventory.lost)),
        ),
        core.held_devices,
        cordon.taints,
        core.mode_refusals.taints,
    )
    read_backoff = backoff.Backoff(_LOOKING, deps.jitter)
    return pool_builder.PoolBuilder(sources, config.rediscover_seconds, read_backoff, deps.clock)


def _build_publisher(
    config: PluginConfig,
    builder: pool_builder.PoolBuilder,
    deps: ProcessDeps,
    publisher_deps: publisher.Deps,
) -> publisher.Publisher:
    settings = publisher.Settings(
        config.driver_name,
        ids.NodeName(config.node_name),
        config.share_domain,
        jitter=deps.jitter,
    )
    return publisher.Publisher(builder, settings, publisher_deps)


def _build_health_watch(
    config: PluginConfig,
    core: composition.Core,
    deps: ProcessDeps,
    node_uid: Callable[[], str],
    reporting: tuple[plugin_events.EventReporter, metrics.Metrics, quarantine.Quarantine],
) -> health_watch.HealthWatch:
    reporter, counters, gpu_quarantine = reporting
    targets = health_events.EventTargets(
        ids.NodeName(config.node_name), node_uid, lambda gpu, _: core.holders(gpu)
    )
    event_reporter = health_events.HealthEvents(reporter, targets, deps.clock)
    settings = health_watch.Settings(
        health.Policy(xids.build_table(config.xid_classes), evict=config.evict_on_gpu_fault),
        poll_s=config.health_poll_seconds,
        jitter=deps.jitter,
    )
    watch_deps = health_watch.Deps(event_reporter, counters, deps.clock, gpu_quarantine)
    return health_watch.HealthWatch(core.watcher, settings, watch_deps)
