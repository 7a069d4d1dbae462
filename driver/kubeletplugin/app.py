"""The plugin, wired: recovery, then the DRA service, registration, and the slices last."""

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import grpc
import prometheus_client
import structlog

from driver import clock, errors, heap, ids, lifecycle, reasons
from driver.devices import health, xids
from driver.kube import backoff, client, events
from driver.kubeletplugin import (
    activity_watch,
    claim_reader,
    consumers,
    cordons,
    device_conditions,
    exposition,
    health_news,
    health_report,
    health_stream,
    health_watch,
    metrics,
    mps_holders,
    mps_watch,
    name_gate,
    neighbourhood,
    newest,
    node_allocator,
    publisher,
    quarantine,
    reclaim,
    refusals,
    registration,
    reset_watch,
    rpc,
    server,
    sockets,
    stages,
    strangers,
    supply,
    telling,
    usage_watch,
    wiring,
)
from driver.kubeletplugin.config import PluginConfig
from driver.resources import ailing, nodes
from driver.telemetry import server as telemetry_server
from driver.telemetry import shown

_log = structlog.get_logger(__name__)
COMPONENT: Final = "ration-kubeletplugin"
_DRAIN_S = 6.0
_REGISTRATION_GRACE_S = 0.5
_REGISTRATION_WORKERS = 4
_STALE_S = 120.0
_SAYING_S = 5.0
"""A call that says something on a claim: nobody waits for it, but for its end at a stop."""
_LOOKING = backoff.Pace(base_s=2.0, max_s=20.0)


@dataclass(frozen=True, slots=True)
class Outside:
    """What the process brings along; tests bring their own."""

    kube: client.KubeClient
    jitter: backoff.Jitter
    clock: clock.Clock


class App:
    """Everything a plugin process runs."""

    def __init__(self, config: PluginConfig, core: wiring.Core, outside: Outside) -> None:
        self._config = config
        self._core = core
        self._clock = outside.clock
        self._paths = sockets.paths(config.kubelet_root, config.driver_name, config.instance)
        self._registry = prometheus_client.CollectorRegistry()
        counters = metrics.Metrics(self._registry)
        self._recorder = events.EventRecorder(
            outside.kube, COMPONENT, config.node_name, self._clock, outside.jitter
        )
        teller = telling.Teller(self._recorder)
        self._recovery = stages.Recovery(
            core.recover, backoff.Backoff(stages.RECOVERING, outside.jitter), self._clock
        )
        who = consumers.Consumers(core.sharers.reader)
        holders = mps_holders.MpsHolders(teller, core.sharers.pods_of, who, self._clock)
        self._mps = mps_watch.MpsWatch(
            core.records, core.daemons, teller, counters, holders, self._clock
        )
        self._conditions = _conditions(config, outside)
        watch = usage_watch.Tools(teller, self._conditions, counters)
        works = activity_watch.ActivityWatch(core.workers, self._conditions, self._clock)
        self._usage = usage_watch.UsageWatch(
            core.sharers, watch, config.usage_seconds, self._clock, works.look
        )
        self._reclaim = reclaim.Reclaim(
            core.leftovers, functools.partial(self._tell_node, teller), self._clock, outside.jitter
        )
        self._orphans = stages.Orphans(self._clock)
        self._refusals = refusals.Refusals(self._conditions, core.preparation.check, self._clock)
        self._service = server.DraService(
            core.preparation, server.Tools(teller, counters, self._refusals, self._clock)
        )
        self._streams = health_stream.HealthStreams(self._device_health, self._clock)
        serving = rpc.Settings(server.HANDLERS, _DRAIN_S, self._clock)
        self._dra = rpc.UnixServer("dra", self._paths.service, self._serve, serving)
        self._registration = registration.Registration(
            config.driver_name, self._paths.service, counters
        )
        self._quarantine = quarantine.Quarantine(config.state_dir / "quarantine.json", self._clock)
        self._health = _health(
            config, core, outside, self._node_uid, (teller, counters, self._quarantine)
        )
        self._cordons = cordons.Cordons()
        self._supply = _supply(config, core, outside, (self._health, self._cordons))
        self._newest = newest.Newest(
            config.state_dir / "publishers", config.instance or str(os.getpid()), self._clock
        )
        beside = self._neighbourhood()
        tools = self._publishing(outside, teller, counters, beside)
        self._publisher = _publisher(config, self._supply, outside, tools)
        self._name = self._name_gate(beside)
        self._health.subscribe(self._publisher.hurry)
        core.mode_refusals.subscribe(self._publisher.hurry)
        self._health.subscribe(self._streams.changed)
        self._health.on_stir(self._publisher.hurry)
        self._resets = self._reset_watch(teller, counters) if config.reset_gpus else None
        self._show(works)

    def _show(self, works: activity_watch.ActivityWatch) -> None:
        config = self._config
        sources = exposition.Sources(
            self._core.records,
            self._core.written,
            self._supply.shown,
            self._health.ailments,
            works.readings,
            self._publisher.lag_s,
        )
        made = exposition.Exposition(config.driver_name, config.node_name, sources, self._clock)
        self._registry.register(shown.Shown(exposition.FAMILIES, made.figures))

    def _publishing(
        self,
        outside: Outside,
        teller: telling.Teller,
        counters: metrics.Metrics,
        beside: neighbourhood.Neighbourhood,
    ) -> publisher.Tools:
        config, time = self._config, self._clock
        allocator = node_allocator.NodeAllocator(
            config.allocator,
            config.state_dir / "allocator",
            node_allocator.Tools(teller, counters, time),
        )
        return publisher.Tools(
            outside.kube,
            teller,
            counters,
            time,
            allocator,
            self._newest.is_newest,
            self._follow,
            beside,
        )

    def _follow(self, node: nodes.Node) -> None:
        """What an operator says on the Node."""
        self._quarantine.follow(node)
        self._cordons.follow(node)

    def _name_gate(self, beside: neighbourhood.Neighbourhood) -> name_gate.NameGate:
        return name_gate.NameGate(
            lambda: beside.name_taken(self._publisher.stored()),
            lambda: bool(self._core.records()),
            self._publisher.tell,
            self._publisher.slices.synced,
            self._clock,
        )

    def _neighbourhood(self) -> neighbourhood.Neighbourhood:
        config, own = self._config, self._paths.registration
        return neighbourhood.Neighbourhood(
            config.driver_name,
            config.beside,
            lambda: strangers.find(config.kubelet_root, config.driver_name, own),
        )

    def _reset_watch(
        self, teller: telling.Teller, counters: metrics.Metrics
    ) -> reset_watch.ResetWatch:
        node, reason = ids.NodeName(self._config.node_name), reasons.Reason.GPU_RESET
        tools = reset_watch.Tools(
            lambda text: teller.node_notice(node, self._node_uid(), reason, text),
            lambda text: teller.node_warning(node, self._node_uid(), reason, text),
            counters,
            self._clock,
        )
        made = reset_watch.ResetWatch(self._core.resets, self._health.ailments, tools)
        self._health.subscribe(made.hurry)
        return made

    def _serve(self, to: grpc.Server) -> None:
        self._service.add_to(to)
        self._streams.add_to(to)

    def _node_uid(self) -> str:
        return self._publisher.node_uid()

    def _tell_node(self, teller: telling.Teller, text: str) -> None:
        node = ids.NodeName(self._config.node_name)
        teller.node_warning(node, self._node_uid(), reasons.Reason.CLAIM_RECLAIMED, text)

    def _device_health(self) -> tuple[health_stream.DeviceHealth, ...]:
        pool, gpus = self._supply.shown()
        if pool is None:
            return ()
        return health_report.of_pool(pool, gpus, self._health.ailments())

    def run(self) -> int:
        """Until told to stop, or until something essential dies; the exit code.

        Raises:
            NodeFault: another process serves our sockets, or an address cannot be had.
        """
        instance = sockets.Instance.take(self._paths.service)
        try:
            sockets.refuse_if_served(self._paths.registration)
            sockets.refuse_if_served(self._paths.service)
            telemetry = self._telemetry()
            threading.excepthook = self._orphans.hook
            life = lifecycle.Lifecycle(_log, self._clock)
            self._register(life, telemetry)
            _log.info("started", metrics_port=telemetry.port, node=self._config.node_name)
            return life.run()
        finally:
            threading.excepthook = threading.__excepthook__
            instance.release()

    def _register(self, life: lifecycle.Lifecycle, telemetry: telemetry_server.Telemetry) -> None:
        """Name the threads in the order of their start; they stop in reverse."""
        recovered, time, slices = self._recovery.once, self._clock, self._publisher.slices
        registrar = rpc.UnixServer(
            "registration",
            self._paths.registration,
            self._registration.add_to,
            rpc.Settings(_REGISTRATION_WORKERS, _REGISTRATION_GRACE_S, self._clock),
        )
        life.thread("orphans", self._orphans.run)
        life.thread("telemetry", telemetry.run)
        life.thread("events", self._recorder.run, interrupt=self._recorder.interrupt)
        life.thread("heap", heap.Heap(self._clock).run)
        life.on_stop("nvml", self._core.close)
        life.on_stop("claims", self._service.close)
        life.thread("recovery", self._recovery.run)
        life.thread("health", self._health.run)
        life.thread("mps", self._mps.run)
        life.thread("conditions", self._conditions.run, interrupt=self._conditions.interrupt)
        life.thread("usage", self._usage.run)
        life.thread("refusals", lifecycle.after(recovered, self._attend, time))
        life.thread("reclaim", lifecycle.after(recovered, self._reclaim.run, time))
        if self._resets is not None:
            resets = self._resets
            run = lifecycle.after(recovered, resets.run, time)
            life.thread("resets", run, interrupt=resets.hurry)
        life.thread("dra", lifecycle.after(recovered, self._dra.run, time))
        life.on_stop("health streams", self._streams.close)
        life.on_stop("newest", self._newest.leave)
        life.thread("slices", slices.run, interrupt=slices.interrupt)
        life.thread(
            "publisher",
            # Before the kubelet knows us it would refuse a pod, and try again a minute later.
            lifecycle.after(self._registration.once, self._publisher.run, time),
            interrupt=self._publisher.interrupt,
        )
        life.thread("name", lifecycle.after(self._dra.serving, self._name.run, time))
        life.thread("registration", lifecycle.after(self._name.free, registrar.run, time))

    def _attend(self, stop: threading.Event) -> None:
        """Say again what stands, then watch refusals."""
        try:
            self._refusals.stand(self._core.records())
        except errors.NodeFault as e:
            _log.warning("not said what stands", error=str(e))
        self._refusals.run(stop)

    def _telemetry(self) -> telemetry_server.Telemetry:
        def stale() -> str | None:
            old = self._publisher.slices.age_s() > _STALE_S
            return f"no word from the API server for {_STALE_S:.0f} s" if old else None

        host, port = self._config.metrics_host_port
        ready = {
            "recovery": self._recovery.problem,
            "name": self._name.problem,
            "registration": self._registration.problem,
            "slices": self._publisher.problem,
            "health": self._health.problem,
            "caches": stale,
        }
        # Health is about this process: without the API server it still serves the kubelet.
        health = {"publisher": self._standing_still, "health": self._health_stands_still}
        # One sick GPU of eight is no reason to take the node's plugin for one that does not serve.
        notes = {"gpus": self._health.sick, "slices": self._publisher.withheld}
        return telemetry_server.Telemetry(
            host, port, self._registry, health=health, ready=ready, notes=notes
        )

    def _health_stands_still(self) -> str | None:
        idle_s = self._health.idle_s()
        limit_s = self._config.health_poll_seconds + _STALE_S
        return f"no round for {idle_s:.0f} s" if idle_s > limit_s else None

    def _standing_still(self) -> str | None:
        if not self._registration.once.is_set():
            return None
        idle_s = self._publisher.idle_s()
        limit_s = self._config.rediscover_seconds + _STALE_S
        return f"no round for {idle_s:.0f} s" if idle_s > limit_s else None


def _conditions(config: PluginConfig, outside: Outside) -> device_conditions.DeviceConditions:
    door = claim_reader.KubeClaimStatus(outside.kube.within(_SAYING_S))
    return device_conditions.DeviceConditions(
        config.driver_name, config.node_name, door, outside.clock, outside.jitter
    )


def _supply(
    config: PluginConfig,
    core: wiring.Core,
    outside: Outside,
    told: tuple[health_watch.HealthWatch, cordons.Cordons],
) -> supply.Supply:
    watch, cordoned = told
    sources = supply.Sources(
        core.look,
        core.rules,
        lambda inventory: ailing.taints(
            inventory.known,
            health.with_unread(watch.ailments(), (gpu.uuid for gpu in inventory.lost)),
        ),
        core.held,
        cordoned.taints,
        core.mode_refusals.taints,
    )
    looking = backoff.Backoff(_LOOKING, outside.jitter)
    return supply.Supply(sources, config.rediscover_seconds, looking, outside.clock)


def _publisher(
    config: PluginConfig,
    devices: supply.Supply,
    outside: Outside,
    tools: publisher.Tools,
) -> publisher.Publisher:
    settings = publisher.Settings(
        config.driver_name,
        ids.NodeName(config.node_name),
        config.share_domain,
        jitter=outside.jitter,
    )
    return publisher.Publisher(devices, settings, tools)


def _health(
    config: PluginConfig,
    core: wiring.Core,
    outside: Outside,
    node_uid: Callable[[], str],
    tools: tuple[telling.Teller, metrics.Metrics, quarantine.Quarantine],
) -> health_watch.HealthWatch:
    teller, counters, kept = tools
    audience = health_news.Audience(
        ids.NodeName(config.node_name), node_uid, lambda gpu, _: core.holders(gpu)
    )
    news = health_news.HealthNews(teller, audience, outside.clock)
    settings = health_watch.Settings(
        health.Policy(xids.table(config.xid_classes), evict=config.evict_from_broken),
        poll_s=config.health_poll_seconds,
        jitter=outside.jitter,
    )
    tools_of_watch = health_watch.Tools(news, counters, outside.clock, kept)
    return health_watch.HealthWatch(core.watcher, settings, tools_of_watch)
