"""Composition of the scheduler."""

from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass

from driver import clock, ids
from driver.controller import metrics as controller_metrics
from driver.controller import ports
from driver.controller.commit import (
    allocations,
    decisions,
    gate_delay,
    object_writer,
    reporter,
    workload_writer,
    write_pool,
)
from driver.controller.informers import snapshot_updater, stores
from driver.controller.nodes import condition_writer
from driver.controller.scheduler import (
    backfill,
    claim_reconciler,
    collector,
    cycle,
    gang_scheduler,
    loop,
    pending,
    pod_scheduler,
    results,
    state,
    workload_scheduler,
)
from driver.controller.scheduler.eviction import (
    bound_pods,
    claim_remediation,
    evictions,
    fault_remediation,
    idle_reclaim,
    preemption,
    reservations,
)
from driver.controller.scheduler.explain import (
    explanations,
    holder_names,
    in_flight,
    pending_reporter,
    queries,
    queue_notes,
    refresh,
)
from driver.controller.scheduler.metrics import pending as pending_metrics
from driver.controller.scheduler.provisioner import (
    arrived_capacity,
    node_protection,
    node_provisioning,
    node_requests,
    pending_demand,
    placeholder_writer,
    provisioner,
    shape_catalog,
)
from driver.controller.scheduler.provisioner import reporter as provisioning_reporter
from driver.controller.scheduler.queues import pending_order, queue_status, queue_usage
from driver.resources.core import pods
from driver.scheduling.allocator import ownership
from driver.scheduling.explain import explainer
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.lifecycle import claim_remediation as remediation_rules
from driver.scheduling.preemption import victims
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.provisioning import shape_status
from driver.scheduling.queues import engine
from driver.scheduling.snapshot import cluster_state, node_usage


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs of the scheduler: fenced writes, the threads that make them, reports, metrics."""

    writer: ports.Writer
    threads: futures.Executor
    side_threads: futures.Executor
    reporter: reporter.Reporter
    metrics: controller_metrics.Metrics


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The loop, and what other threads may read of the scheduler."""

    loop: loop.SchedulingLoop
    prepare: Callable[[], None]
    """To be called once the caches are filled, ahead of the loop."""
    explain_queries: queries.ExplainQueries
    _state: state.SchedulerState
    _gangs: gang_index.GangIndex
    _backfill: backfill.BackfillReservation
    _provisioning: node_provisioning.NodeProvisioning | None

    def current_plan(self) -> backfill_plan.BackfillPlan | None:
        """Return the backfill plan; from any thread."""
        return self._backfill.plan

    def shape_offer(self) -> shape_status.ShapeStatus | None:
        """Return the status of node shapes; None without provisioning. From any thread."""
        return self._provisioning.offer() if self._provisioning is not None else None

    def pending_state(self) -> pending_metrics.PendingState:
        """Return pending workloads and writes in flight for metrics; from any thread."""
        memory = self._state
        return pending_metrics.PendingState(
            tuple(memory.waiting.copy().items()),
            memory.uids.copy(),
            memory.pending_reasons.copy(),
            len(self._gangs),
            len(memory.in_flight),
            len(memory.in_doubt),
            self._backfill.plan,
        )


@dataclass(frozen=True, slots=True)
class _Base:
    """Parts of the scheduler that most others are built on."""

    context: state.SchedulerContext
    items: loop.Items
    outputs: Outputs
    guard: loop.Guard
    pool: write_pool.WritePool
    claims: allocations.AllocationWriter
    workloads: workload_writer.WorkloadWriter
    objects: object_writer.ObjectWriter
    gangs: gang_index.GangIndex
    engine: engine.QueueEngine
    usage: queue_usage.QueueUsage
    victims: victims.VictimIndex
    arrived: arrived_capacity.ArrivedCapacity
    reservations: reservations.ReservationController


@dataclass(frozen=True, slots=True)
class _Reports:
    """Parts that explain and report why workloads are pending."""

    backfill: backfill.BackfillReservation
    claims: in_flight.InFlightClaims
    explanations: explanations.Explanations
    refresh: refresh.MessageRefresh
    reporter: pending_reporter.PendingReporter


def build(
    caches: stores.Stores,
    items: loop.Items,
    outputs: Outputs,
    settings: state.SchedulerSettings,
    time: clock.Clock,
) -> Scheduler:
    """Build the scheduler over caches that reflectors have yet to fill."""
    base = _build_base(caches, items, outputs, settings, time)
    reports = _build_reports(base)
    writer = decisions.DecisionWriter(
        base.pool,
        items,
        base.claims,
        outputs.reporter,
        outputs.metrics,
        gate_delay.GateDelay(time),
    )
    outcomes = results.ResultHandler(
        base.context, writer, items, base.usage, reports.reporter, outputs.metrics
    )
    unbound = pod_scheduler.PodScheduler(
        base.context, base.workloads, outcomes, reports.reporter, outputs.metrics
    )
    bound = bound_pods.BoundPods(base.context, base.workloads, outcomes, reports.reporter)
    gangs = gang_scheduler.GangScheduler(
        base.context, base.workloads, outcomes, reports.reporter, base.gangs
    )
    schedulers: dict[pending.WorkloadKind, workload_scheduler.Scheduler] = {
        pending.WorkloadKind.POD: unbound,
        pending.WorkloadKind.BOUND_POD: bound,
        pending.WorkloadKind.GANG: gangs,
    }
    order = pending_order.PendingOrder(base.context, base.engine, base.usage, base.reservations)
    _register(base)
    provisioning = _build_provisioning(base, order)
    explain_queries = queries.ExplainQueries(
        base.context, items, reports.explanations, reports.claims, lambda: reports.backfill.plan
    )
    collect = collector.Collector(
        base.context,
        items,
        collector.WorkloadCollector(base.context, items, unbound, bound, gangs, outcomes),
        _reconcilers(base, reports, explain_queries, provisioning),
        base.guard,
    )
    turns = _build_cycle(base, reports, order, schedulers)
    return Scheduler(
        loop.SchedulingLoop(items, outcomes, collect, turns, provisioning),
        unbound.prepare,
        explain_queries,
        base.context.memory,
        base.gangs,
        reports.backfill,
        provisioning,
    )


def _build_base(
    caches: stores.Stores,
    items: loop.Items,
    outputs: Outputs,
    settings: state.SchedulerSettings,
    time: clock.Clock,
) -> _Base:
    view = cluster_state.ClusterState(
        settings.driver, _node_markers(settings.on_demand), settings.other_drivers
    )
    gangs = gang_index.GangIndex()
    updater = snapshot_updater.SnapshotUpdater(caches, view, gangs)
    context = state.SchedulerContext(
        caches,
        updater,
        view,
        state.SchedulerState(),
        ownership.OwnershipResolver(),
        settings,
        time,
    )
    pool = write_pool.WritePool(outputs.threads, outputs.side_threads, items)
    claims = allocations.AllocationWriter(outputs.writer, caches.observe_claim, caches.observe_pod)
    workloads = workload_writer.WorkloadWriter(pool, claims, outputs.reporter, outputs.metrics)
    fair = engine.QueueEngine(settings.driver)
    usage = queue_usage.QueueUsage(caches, view, fair)
    arrived = arrived_capacity.ArrivedCapacity(context)
    objects = object_writer.ObjectWriter(pool, outputs.writer, outputs.reporter)
    held = reservations.ReservationController(
        context,
        objects,
        usage,
        arrived,
        evictions.EvictionRequester(context, workloads),
    )
    return _Base(
        context=context,
        items=items,
        outputs=outputs,
        guard=loop.Guard(items, outputs.metrics),
        pool=pool,
        claims=claims,
        workloads=workloads,
        objects=objects,
        gangs=gangs,
        engine=fair,
        usage=usage,
        victims=victims.VictimIndex(),
        arrived=arrived,
        reservations=held,
    )


def _build_reports(base: _Base) -> _Reports:
    context = base.context
    first = backfill.BackfillReservation(context, base.victims)
    claims = in_flight.InFlightClaims(context)
    holders = holder_names.HolderNames(context, claims, lambda: first.plan)
    fits = explainer.FitExplainer(context.settings.allocator, claims.claim, context.stores.pods.get)
    explained = explanations.Explanations(
        context, fits, holders, queue_notes.QueueNotes(base.engine, first, holders)
    )
    refreshes = refresh.MessageRefresh(context.clock)
    reporting = pending_reporter.PendingReporter(
        context,
        base.workloads,
        base.outputs.reporter,
        base.outputs.metrics,
        explained,
        refreshes,
    )
    return _Reports(first, claims, explained, refreshes, reporting)


def _register(base: _Base) -> None:
    """Route the changes of stores to the components that keep state of their own."""
    caches, feed, book = base.context.stores, base.context.updater, base.victims
    on_demand = base.context.settings.on_demand

    def set_victim(key: ids.Key, pod: pods.Pod | None) -> None:
        """Apply a pod's change; placeholder pods are never victims."""
        asks = (
            pod is not None
            and on_demand is not None
            and node_usage.is_placeholder(pod, on_demand.namespace)
        )
        book.set_pod(key, None if asks else pod)

    feed.register("unit", (caches.pods, set_victim))
    feed.register("stake", (caches.claims, book.set_claim))
    feed.register("group", (caches.native_pod_groups, book.set_pod_group))
    feed.register("release", (caches.claims, base.context.record_release))
    feed.register("queue", (caches.queues, base.usage.put_queue))
    feed.register("reservation", (caches.reservations, base.reservations.set_reservation))


def _build_cycle(
    base: _Base,
    reports: _Reports,
    order: pending_order.PendingOrder,
    schedulers: dict[pending.WorkloadKind, workload_scheduler.Scheduler],
) -> cycle.SchedulingCycle:
    preempts = preemption.Preemption(
        base.context, base.engine, base.victims, base.reservations, reports.reporter
    )
    workloads = workload_scheduler.WorkloadScheduler(
        schedulers, base.usage, base.reservations, reports.backfill, preempts
    )
    return cycle.SchedulingCycle(
        base.context, order, workloads, reports.backfill, reports.refresh, base.guard
    )


def _reconcilers(
    base: _Base,
    reports: _Reports,
    explain_queries: queries.ExplainQueries,
    provisioning: node_provisioning.NodeProvisioning | None,
) -> dict[str, collector.Reconcile]:
    """Return what is done for each kind of items that are not placed."""
    context, items, caches = base.context, base.items, base.context.stores
    statuses = queue_status.QueueStatusWriter(
        context, base.engine, base.usage, base.objects, base.outputs.metrics
    )
    faults = fault_remediation.FaultRemediation(
        context, base.victims, base.reservations, reports.reporter
    )

    def wake(_: write_pool.WorkItem) -> None:
        collector.enqueue(items, "reservation", base.reservations.pending_keys())

    def all_nodes(_: write_pool.WorkItem) -> None:
        collector.enqueue(items, "node", caches.nodes.snapshot())

    def provision(_: write_pool.WorkItem) -> None:
        """Do nothing: nodes are provisioned once all are served."""

    return {
        write_pool.WAKE.kind: wake,
        write_pool.NODES.kind: all_nodes,
        write_pool.PROVISIONING.kind: provision,
        write_pool.QUEUES.kind: lambda _: statuses.reconcile(),
        queries.KIND: lambda item: explain_queries.resolve(item.key),
        "reservation": base.reservations.reconcile,
        "marks": provisioning.protect if provisioning is not None else provision,
        "faults": faults.reconcile,
        "claim": _build_claims(base).reconcile,
        "node": condition_writer.NodeConditions(
            caches.nodes,
            stores.NodeSlices(caches, context.settings.driver).get,
            base.workloads,
            context.clock,
        ).reconcile,
    }


def _build_claims(base: _Base) -> claim_reconciler.ClaimReconciler:
    context, settings = base.context, base.context.settings
    remediation = claim_remediation.ClaimRemediation(
        context.stores,
        base.workloads,
        base.outputs.reporter,
        remediation_rules.RemediationRules(settings.driver, settings.evict_over_share),
        context.clock,
    )
    idle = idle_reclaim.IdleReclaim(
        context, base.engine, base.victims, base.workloads, base.outputs.reporter
    )
    return claim_reconciler.ClaimReconciler(context, base.items, base.workloads, remediation, idle)


def _build_provisioning(
    base: _Base, order: pending_order.PendingOrder
) -> node_provisioning.NodeProvisioning | None:
    """Build what requests nodes, and what protects them from scale-down; None if neither."""
    context, items, outputs = base.context, base.items, base.outputs
    how = context.settings.on_demand
    if how is None:
        return None
    demand = pending_demand.PendingDemand(
        context, base.engine, order, base.reservations, base.gangs
    )
    shapes = shape_catalog.ShapeCatalog(context, outputs.writer, base.pool, how)
    requests = node_requests.NodeRequests(
        context,
        placeholder_writer.PlaceholderWriter(outputs.writer, base.pool, items, how),
        how,
        shapes,
        outputs.metrics.nodes,
    )
    nodes = provisioner.Provisioner(
        context,
        shapes,
        requests,
        demand,
        base.arrived,
        provisioning_reporter.ProvisioningReporter(context, outputs.reporter, demand),
    )
    context.updater.register("placeholder", (context.stores.pods, requests.set_pod))
    context.updater.register("brought", (context.stores.nodes, nodes.put_node))
    protection = node_protection.NodeProtection(
        context, outputs.writer, base.pool, items, how, nodes.provisioned_for
    )
    return node_provisioning.NodeProvisioning(context, items, nodes, protection, base.guard)


def _node_markers(
    how: provisioning_settings.ProvisionerSettings | None,
) -> cluster_state.NodeMarkers:
    if how is None:
        return cluster_state.NO_MARKERS
    return cluster_state.NodeMarkers(how.namespace, how.interruption_taints)
