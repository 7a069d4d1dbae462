"""Builds the parts of a plugin process over the node's core."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import prometheus_client

from driver import clock, ids, reasons
from driver.devices import health, xids
from driver.kube import backoff, client
from driver.kube.events import recorder
from driver.kubeletplugin import composition, metrics
from driver.kubeletplugin import events as plugin_events
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
from driver.kubeletplugin.recovery import claim_gc, mps_holders, mps_watch
from driver.kubeletplugin.rpc import dra_service
from driver.kubeletplugin.status import claim_status, readiness
from driver.kubeletplugin.usage import activity_watch, claim_pods, usage_watch
from driver.resources.core import nodes
from driver.resources.publish import health_taints

COMPONENT: Final = "ration-kubeletplugin"
_SAYING_S = 5.0
"""Limit of a call that writes a claim's status; only a stop waits for its end."""
_LOOKING = backoff.Pace(base_s=2.0, max_s=20.0)


@dataclass(frozen=True, slots=True)
class ProcessDeps:
    """Dependencies of the process; tests provide their own."""

    kube: client.KubeClient
    jitter: backoff.Jitter
    clock: clock.Clock


@dataclass(frozen=True, slots=True)
class Base:
    """Parts that most others are built on."""

    config: PluginConfig
    core: composition.Core
    deps: ProcessDeps
    registry: prometheus_client.CollectorRegistry
    metrics: metrics.Metrics
    recorder: recorder.EventRecorder
    reporter: plugin_events.EventReporter
    node_uid: Callable[[], str]

    @property
    def node(self) -> ids.NodeName:
        """The node's name."""
        return ids.NodeName(self.config.node_name)

    def warn_node(self, reason: reasons.Reason, text: str) -> None:
        """Record a warning about the node's devices."""
        self.reporter.warn_node(self.node, self.node_uid(), reason, text)

    def notify_node(self, reason: reasons.Reason, text: str) -> None:
        """Record a normal event about the node's devices."""
        self.reporter.notify_node(self.node, self.node_uid(), reason, text)


@dataclass(frozen=True, slots=True)
class Claims:
    """Parts that serve claims, and report on them."""

    status_writer: claim_status.ClaimStatusWriter
    activity: activity_watch.ActivityWatch
    usage_watch: usage_watch.UsageWatch
    mps_watch: mps_watch.MpsWatch
    collector: claim_gc.ClaimCollector
    readiness: readiness.ReadinessTracker
    service: dra_service.DraService


@dataclass(frozen=True, slots=True)
class Publishing:
    """Parts that watch the GPUs' health and publish them."""

    health: health_watch.HealthWatch
    pool_builder: pool_builder.PoolBuilder
    election: publisher_election.PublisherElection
    publisher: publisher.Publisher
    name_gate: name_conflict.NameGate
    reset_watch: reset_watch.ResetWatch | None


def build_base(
    config: PluginConfig,
    core: composition.Core,
    deps: ProcessDeps,
    node_uid: Callable[[], str],
) -> Base:
    """Build what most others are built on; `node_uid` may be called once all is built."""
    registry = prometheus_client.CollectorRegistry()
    events = recorder.EventRecorder(deps.kube, COMPONENT, config.node_name, deps.clock, deps.jitter)
    return Base(
        config=config,
        core=core,
        deps=deps,
        registry=registry,
        metrics=metrics.Metrics(registry),
        recorder=events,
        reporter=plugin_events.EventReporter(events),
        node_uid=node_uid,
    )


def build_claims(base: Base) -> Claims:
    """Build what serves claims."""
    config, core, time = base.config, base.core, base.deps.clock
    status_writer = _build_status_writer(config, base.deps)
    activity = activity_watch.ActivityWatch(core.activity_sources, status_writer, time)
    usage_deps = usage_watch.Deps(base.reporter, status_writer, base.metrics)
    usage = usage_watch.UsageWatch(
        core.usage_sources, usage_deps, config.usage_interval_seconds, time, activity.observe
    )
    collector = claim_gc.ClaimCollector(
        core.gc_targets,
        functools.partial(base.warn_node, reasons.Reason.CLAIM_RECLAIMED),
        time,
        base.deps.jitter,
    )
    tracker = readiness.ReadinessTracker(status_writer, core.preparation.check, time)
    service_deps = dra_service.Deps(base.reporter, base.metrics, tracker, time)
    return Claims(
        status_writer,
        activity,
        usage,
        _build_mps_watch(core, base.reporter, base.metrics, time),
        collector,
        tracker,
        dra_service.DraService(core.preparation, service_deps),
    )


def build_publishing(base: Base, paths: sockets.Paths) -> Publishing:
    """Build what publishes GPUs."""
    config, time = base.config, base.deps.clock
    gpu_quarantine = quarantine.Quarantine(config.state_dir / "quarantine.json", time)
    watch = _build_health_watch(base, gpu_quarantine)
    cordon = cordons.Cordons()
    builder = _build_pool_builder(base, watch, cordon)
    election = publisher_election.PublisherElection(
        config.state_dir / "publishers", config.instance or str(os.getpid()), time
    )
    detector = conflicts.ConflictDetector(
        config.driver_name,
        config.allow_device_plugin,
        lambda: registered_plugins.find_foreign_plugins(
            config.kubelet_root, config.driver_name, paths.registration
        ),
    )

    def update_from_node(node: nodes.Node) -> None:
        """Apply an operator's annotations of the Node."""
        gpu_quarantine.update(node)
        cordon.update(node)

    allocator = node_allocator.NodeAllocator(
        config.allocator,
        config.state_dir / "allocator",
        node_allocator.Deps(base.reporter, base.metrics, time),
    )
    publishes = _build_publisher(
        base,
        builder,
        publisher.Deps(
            base.deps.kube,
            base.reporter,
            base.metrics,
            time,
            allocator,
            election.is_elected,
            update_from_node,
            detector,
        ),
    )
    return Publishing(
        watch,
        builder,
        election,
        publishes,
        name_conflict.NameGate(
            lambda: detector.check_name(publishes.stored_slices()),
            lambda: bool(base.core.records()),
            publishes.report,
            publishes.slices.synced,
            time,
        ),
        _build_reset_watch(base, watch) if config.reset_gpus else None,
    )


def _build_reset_watch(base: Base, watch: health_watch.HealthWatch) -> reset_watch.ResetWatch:
    reset = reasons.Reason.GPU_RESET
    deps = reset_watch.Deps(
        functools.partial(base.notify_node, reset),
        functools.partial(base.warn_node, reset),
        base.metrics,
        base.deps.clock,
    )
    return reset_watch.ResetWatch(base.core.reset_target, watch.ailments, deps)


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
    base: Base, watch: health_watch.HealthWatch, cordon: cordons.Cordons
) -> pool_builder.PoolBuilder:
    config, core, deps = base.config, base.core, base.deps
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
        core.check_gpus,
    )
    read_backoff = backoff.Backoff(_LOOKING, deps.jitter)
    return pool_builder.PoolBuilder(sources, config.rediscover_seconds, read_backoff, deps.clock)


def _build_publisher(
    base: Base, builder: pool_builder.PoolBuilder, publisher_deps: publisher.Deps
) -> publisher.Publisher:
    config = base.config
    settings = publisher.Settings(
        config.driver_name,
        base.node,
        config.share_domain,
        jitter=base.deps.jitter,
    )
    return publisher.Publisher(builder, settings, publisher_deps)


def _build_health_watch(
    base: Base, gpu_quarantine: quarantine.Quarantine
) -> health_watch.HealthWatch:
    config, core, deps = base.config, base.core, base.deps
    targets = health_events.EventTargets(base.node, base.node_uid, lambda gpu, _: core.holders(gpu))
    event_reporter = health_events.HealthEvents(base.reporter, targets, deps.clock)
    settings = health_watch.Settings(
        health.Policy(xids.build_table(config.xid_classes), evict=config.evict_on_gpu_fault),
        poll_s=config.health_poll_seconds,
        jitter=deps.jitter,
    )
    watch_deps = health_watch.Deps(event_reporter, base.metrics, deps.clock, gpu_quarantine)
    return health_watch.HealthWatch(core.watcher, settings, watch_deps)
