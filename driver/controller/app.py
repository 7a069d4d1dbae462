"""The controller, wired: reflectors -> stores -> triggers -> decider -> writers, under a Lease.

A standby holds nothing. It lists when it has the Lease, and what leaders write only when the last
one can write no more, so that no allocation is missed (D22).
"""

import threading
from collections.abc import Callable, Iterable
from concurrent import futures
from dataclasses import dataclass

import prometheus_client
import structlog

from driver import clock
from driver.controller import documents, metrics
from driver.controller.collectors import scrape
from driver.controller.commit import reporter, write_pool
from driver.controller.config import ControllerConfig
from driver.controller.device_ownership import reconciler as ownership_reconciler
from driver.controller.device_ownership import reporter as ownership_reporter
from driver.controller.device_ownership import rule_writer
from driver.controller.informers import handlers, informers, stores
from driver.controller.nodes import extended_resource_pods, unconverted_pods
from driver.controller.nodes import labels as node_labels
from driver.controller.scheduler import build as scheduler_build
from driver.controller.scheduler import state as scheduler_state
from driver.controller.web import leader, page, recent_events
from driver.controller.web import source as web_source
from driver.kube import backoff, client, fenced_writer, gvr, lease, reflector, workqueue
from driver.kube.events import recorder
from driver.runtime import gc_tuning, lifecycle, malloc
from driver.runtime.metrics import collector as metric_collector
from driver.runtime.metrics import server
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.device_ownership import desired
from driver.scheduling.lifecycle import actions
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.reports.documents import explanation

_log = structlog.get_logger(__name__)
_STALE_S = 120.0
_POLL_S = 0.2
_LEASE = "ration-controller"


class Leadership:
    """Holds the Lease; `lose` ends the process at once.

    `acquired` is set with the Lease, `won` with the right to write, some seconds later.
    """

    def __init__(
        self, elector: lease.Elector, counters: metrics.Metrics, lose: Callable[[], None]
    ) -> None:
        self._elector = elector
        self._metrics = counters
        self._lose = lose
        self.acquired = elector.acquired
        self.won = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Compete for the Lease until `stop` is set."""
        self._elector.run(stop, self._lead, self._lose)

    def _lead(self, term: lease.Term) -> None:
        _log.info("leading", holder=term.holder, transitions=term.transitions)
        self._metrics.leading.set(1)
        self.won.set()


@dataclass(frozen=True, slots=True)
class App:
    """Everything a controller process runs."""

    _config: ControllerConfig
    _kube: client.KubeClient
    _clock: clock.Clock
    _jitter: backoff.Jitter
    _registry: prometheus_client.CollectorRegistry
    _metrics: metrics.Metrics
    _on_demand: provisioning_settings.ProvisionerSettings | None
    _managed: tuple[desired.ManagedDriver, ...]
    _leadership: Leadership
    _leader: leader.Leader
    _fenced: fenced_writer.FencedWriter
    _recorder: recorder.EventRecorder
    _recent_events: recent_events.RecentEvents
    _reporter: reporter.Reporter
    _stores: stores.Stores
    _items: workqueue.WorkQueue[write_pool.WorkItem]

    def run(self) -> int:
        """Until told to stop, or until something essential dies; the exit code."""
        life = lifecycle.Lifecycle(_log, self._clock)
        watched = informers.InformerFactory(
            self._kube,
            self._clock,
            self._jitter,
            self._config.relist_seconds,
            self._config.pod_groups,
        )
        reflectors = watched.build_reflectors(self._stores)
        telemetry = self._telemetry(reflectors)
        workers = self._config.write_workers
        pool = futures.ThreadPoolExecutor(workers, thread_name_prefix="writer")
        side_pool = futures.ThreadPoolExecutor(workers, thread_name_prefix="side-writer")
        decider = self._decider(pool, side_pool, reflectors)
        source = self._report_source(decider, reflectors)
        self._register_collector(decider, reflectors, source)
        # After the decider's own feed: it is to know of a change by the time it is told to look.
        handlers.EventHandlers(self._items, on_demand=self._config.node_shapes is not None).attach(
            self._stores
        )
        life.thread("telemetry", telemetry.run)
        life.thread("elector", self._leadership.run)
        life.thread("heap", malloc.HeapTrimmer(self._clock).run)
        life.thread("events", self._recorder.run, interrupt=self._recorder.interrupt)
        life.on_stop("side-writers", side_pool.shutdown)  # after the writers, who wait for them
        life.on_stop("writers", lambda: pool.shutdown(wait=True, cancel_futures=True))
        self._add_decider(life, reflectors, decider)
        life.thread(
            "saying", lifecycle.start_after(self._leadership.won, self._reporter.run, self._clock)
        )
        for name, run in (
            ("unconverted", self._unconverted().run),
            ("extended-resources", self._extended_resource_pods().run),
        ):
            life.thread(name, lifecycle.start_after(self._leadership.won, run, self._clock))
        if self._config.label_nodes:
            labels = lifecycle.start_after(
                self._leadership.won, self._node_labeler().run, self._clock
            )
            life.thread("labelling", labels)
        if self._managed:
            ownership = self._ownership_reconciler(reflectors).run
            follow = lifecycle.start_after(self._leadership.won, ownership, self._clock)
            life.thread("device-ownership", follow)
        shown = self._page(source)
        for thread in shown.threads() if shown else ():
            life.thread(thread.name, thread.run, interrupt=thread.interrupt)
        _log.info(
            "started",
            metrics_port=telemetry.port,
            page_port=shown.port if shown else None,
            policies=self._config.policies,
        )
        return life.run()

    def _add_decider(
        self,
        life: lifecycle.Lifecycle,
        reflectors: informers.Reflectors,
        decider: scheduler_build.Scheduler,
    ) -> None:
        """Add the threads that read once this process has the Lease, or leads, and that decides."""
        for name, informer in reflectors.items():
            readable = name in informers.LISTED_BEFORE_TERM
            start = self._leadership.acquired if readable else self._leadership.won
            follow = lifecycle.start_after(start, informer.run, self._clock)
            life.thread(f"reflector-{name}", follow, interrupt=informer.interrupt)
        life.thread(
            "decider",
            lifecycle.start_after(
                self._leadership.acquired,
                lambda stop: _decide(stop, reflectors, decider, self._leadership.won),
                self._clock,
            ),
            interrupt=self._items.shut_down,
        )

    def _register_collector(
        self,
        decider: scheduler_build.Scheduler,
        reflectors: dict[str, reflector.Reflector[object]],
        source: web_source.ReportSource,
    ) -> None:
        sources = scrape.Sources(
            self._leadership.won.is_set,
            source.nodes,
            lambda: self._stores.reservations.snapshot().values(),
            decider.pending_state,
            self._metrics.queue_values,
            lambda: {name: informer.age_s() for name, informer in reflectors.items()},
            source.shapes,
            lambda: self._stores.taint_rules.snapshot().values(),
        )
        collector = scrape.ControllerCollector(sources, self._clock)
        self._registry.register(
            metric_collector.FigureCollector(scrape.FAMILIES, collector.figures)
        )

    def _decider(
        self, pool: futures.Executor, side_pool: futures.Executor, reflectors: informers.Reflectors
    ) -> scheduler_build.Scheduler:
        how = scheduler_state.SchedulerSettings(
            self._config.driver_name,
            settings.Settings(
                ranking.parse_policies(
                    self._config.policies, documents.read_workload_mix(self._config.workload_mix)
                ),
                device_filter.ControllerRules(self._config.driver_name),
            ),
            lambda: informers.allocators_are_stale(reflectors, self._stores),
            actions.BindTimeouts(refused_s=self._config.unschedulable_timeout_seconds),
            evict_over_share=self._config.evict_over_share,
            on_demand=self._on_demand,
            backfill=self._config.backfill,
            other_drivers=frozenset(driver.name for driver in self._managed),
        )
        outputs = scheduler_build.Outputs(
            self._fenced, pool, side_pool, self._reporter, self._metrics
        )
        return scheduler_build.build(self._stores, self._items, outputs, how, self._clock)

    def _unconverted(self) -> unconverted_pods.UnconvertedPodReporter:
        """Standbys have no pods, and tell nobody."""
        labels = unconverted_pods.namespace_labels(self._kube)
        return unconverted_pods.UnconvertedPodReporter(
            self._stores.pods.snapshot, labels, self._recent_events, self._clock
        )

    def _extended_resource_pods(self) -> extended_resource_pods.ExtendedResourcePodReporter:
        caches = extended_resource_pods.Caches(
            self._stores.pods.snapshot,
            self._stores.nodes.snapshot,
            self._stores.classes.snapshot,
            self._stores.slices.snapshot,
            self._stores.taint_rules.snapshot,
        )
        return extended_resource_pods.ExtendedResourcePodReporter(
            caches, self._reporter, self._clock
        )

    def _node_labeler(self) -> node_labels.NodeLabeler:
        caches, driver = self._stores, self._config.driver_name
        return node_labels.NodeLabeler(
            self._kube, caches.nodes.snapshot, caches.slices.snapshot, driver, self._clock
        )

    def _ownership_reconciler(
        self, reflectors: informers.Reflectors
    ) -> ownership_reconciler.OwnershipReconciler:
        rules = self._stores.taint_rules
        caches = ownership_reconciler.Caches(
            self._stores.nodes,
            self._stores.slices,
            rules,
            lambda: informers.rules_may_change(reflectors),
        )
        writer = rule_writer.RuleWriter(self._kube, self._fenced, rules.observe)
        lease_ref = recorder.ObjectRef(
            "Lease", gvr.LEASES.api_version, self._config.namespace, _LEASE, ""
        )
        report = ownership_reporter.OwnershipReporter(self._recent_events, lease_ref)
        return ownership_reconciler.OwnershipReconciler(
            self._managed, caches, writer, report, self._clock
        )

    def _report_source(
        self, decider: scheduler_build.Scheduler, reflectors: dict[str, reflector.Reflector[object]]
    ) -> web_source.ReportSource:
        config = self._config

        def away() -> None:
            web_source.require_leader(self._leadership.won.is_set, self._leader.pod)
            web_source.require_synced(
                name for name, informer in reflectors.items() if not informer.synced.is_set()
            )

        explain = explanation.explain_by(decider.explain_queries.explain_now)
        minded = web_source.SourceInputs(
            away,
            lambda: _stale_caches(reflectors),
            explain,
            self._recent_events.newest,
            decider.shape_offer,
            decider.current_plan,
        )
        return web_source.ReportSource(self._stores, config.driver_name, minded, self._clock)

    def _page(self, source: web_source.ReportSource) -> page.Page | None:
        config = self._config.page
        if config is None:
            return None
        return page.Page(config, self._kube, source, self._leader, self._registry, self._clock)

    def _telemetry(self, reflectors: dict[str, reflector.Reflector[object]]) -> server.Telemetry:
        def stale() -> str | None:
            if not self._leadership.won.is_set():
                return None
            return "; ".join(_stale_caches(reflectors)) or None

        host, port = self._config.metrics_host_port
        return server.Telemetry(
            host, port, self._registry, health={"caches": stale}, ready={"caches": stale}
        )


def build(
    config: ControllerConfig,
    kube: client.KubeClient,
    identity: str,
    jitter: backoff.Jitter,
    lose: Callable[[], None],
) -> App:
    """Build a controller process. `lose` ends it at once. Raises BadInput."""
    time, registry = clock.SystemClock(), prometheus_client.CollectorRegistry()
    on_demand = _on_demand(config)
    shapes = on_demand.document.shapes if on_demand is not None else ()
    counters = metrics.Metrics(registry, [shape.name for shape in shapes])
    timings = lease.Timings(jitter=jitter)
    elector = lease.Elector(kube, config.namespace, _LEASE, identity, time, timings)
    fenced = fenced_writer.FencedWriter(kube, elector.term)
    events = recorder.EventRecorder(kube, "ration-controller", identity, time, jitter)
    recent = recent_events.RecentEvents(events, time)
    return App(
        config,
        kube,
        time,
        jitter,
        registry,
        counters,
        on_demand,
        documents.read_managed_drivers(config.managed_drivers, config.driver_name),
        Leadership(elector, counters, lose),
        leader.Leader(kube, _LEASE, config.namespace, time),
        fenced,
        events,
        recent,
        reporter.Reporter(recent, fenced, time),
        stores.empty(),
        workqueue.WorkQueue[write_pool.WorkItem](time, jitter, write_pool.RETRIES),
    )


def _on_demand(config: ControllerConfig) -> provisioning_settings.ProvisionerSettings | None:
    """Raises BadInput."""
    if config.node_shapes is None:
        return None
    return provisioning_settings.ProvisionerSettings(
        documents.read_node_shapes(config.node_shapes),
        config.namespace,
        config.placeholder_image,
        config.observed_shapes_configmap,
        frozenset(config.interruption_taints),
    )


def _stale_caches(reflectors: dict[str, reflector.Reflector[object]]) -> tuple[str, ...]:
    """The kinds that nothing was heard of for too long, in words."""
    old = [name for name, informer in reflectors.items() if informer.age_s() > _STALE_S]
    return (f"no word for {_STALE_S:.0f} s on {', '.join(old)}",) if old else ()


def _decide(
    stop: threading.Event,
    reflectors: dict[str, reflector.Reflector[object]],
    decider: scheduler_build.Scheduler,
    won: threading.Event,
) -> None:
    """Decide once every cache has its first listing, and this process leads."""
    _wait_all(stop, (reflectors[name].synced for name in informers.LISTED_BEFORE_TERM))
    decider.prepare()
    gc_tuning.freeze()
    _wait_all(stop, (won, *(informer.synced for informer in reflectors.values())))
    decider.prepare()
    gc_tuning.freeze()
    _log.info("caches filled")
    decider.loop.run(stop)


def _wait_all(stop: threading.Event, events: Iterable[threading.Event]) -> None:
    for event in events:
        while not stop.is_set() and not event.wait(_POLL_S):
            continue
