"""Scheduling loop: one thread, one key at a time: view -> decide -> commit (D4).

Level-triggered: a key only requests a reconcile. Writes run on a pool; a decision in flight is
laid over the view until the server has answered.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import structlog

from driver import clock, ids
from driver.controller.commit import object_writer, write_pool
from driver.controller.informers import snapshot_updater, stores
from driver.controller.nodes import condition
from driver.controller.scheduler import backfill as scheduler_backfill
from driver.controller.scheduler import (
    cycle,
    gang_scheduler,
    memory,
    pod_scheduler,
    queue_status,
    queue_usage,
    results,
    state,
)
from driver.controller.scheduler import pending as scheduler_pending
from driver.controller.scheduler.eviction import (
    claim_remediation,
    fault_remediation,
    idle_reclaim,
    preemption,
    reservations,
)
from driver.controller.scheduler.explain import queries
from driver.controller.scheduler.metrics import pending
from driver.controller.scheduler.provisioner import (
    arrived_capacity,
    node_protection,
    pending_demand,
    provisioner,
)
from driver.controller.scheduler.provisioner import build as provisioner_build
from driver.kube import workqueue
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import settings
from driver.scheduling.explain import explanation
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.lifecycle import actions, backfill_plan
from driver.scheduling.lifecycle import claim_remediation as lifecycle_claim_remediation
from driver.scheduling.preemption import victims
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.provisioning import shape_status
from driver.scheduling.queues import engine
from driver.scheduling.snapshot import cluster_state, snapshot

_log = structlog.get_logger(__name__)
_BATCH = 256
_IDLE_S = 1.0
_PROVISION_DELAY_S = 0.2
"""What comes together is planned for together."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the scheduling loop.

    While it `is_stale` who allocates what (D2), nothing is placed: a node may have changed hands.
    """

    driver: str
    allocator: settings.Settings
    is_stale: Callable[[], bool]
    patience: actions.BindTimeouts = field(default_factory=actions.BindTimeouts)
    evict_over_share: bool = False
    on_demand: provisioning_settings.ProvisionerSettings | None = None
    backfill: backfill_plan.BackfillRules = field(default_factory=backfill_plan.BackfillRules)


class Reconciler:
    """Owns the scheduler's state; everything but writes runs on the thread of `run`."""

    def __init__(
        self,
        caches: stores.Stores,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        tools: write_pool.WriteDeps,
        settings: Settings,
        time: clock.Clock,
    ) -> None:
        self._stores = caches
        self._items = items
        self._tools = tools
        self._writers = write_pool.WritePool(tools, items)
        self._settings = settings
        self._clock = time
        self._memory = memory.SchedulerState()
        self._view = cluster_state.ClusterState(settings.driver, _node_markers(settings.on_demand))
        self._roster = gang_index.GangIndex()
        self._updater = snapshot_updater.SnapshotUpdater(caches, self._view, self._roster)
        context = state.SchedulerContext(caches, self._updater, self._view, self._memory, time)
        deciding = settings.allocator
        placer = results.build_result_handler(
            context, self._writers, tools, deciding, self.current_plan
        )
        self._pods = pod_scheduler.PodScheduler(
            context, self._writers, tools, placer, deciding, settings.patience
        )
        self._gangs = gang_scheduler.GangScheduler(
            context, self._writers, placer, self._roster, self._pods.managed_claims, deciding
        )
        fair = engine.QueueEngine(settings.driver)
        charges = queue_usage.QueueUsage(caches, self._view, fair)
        hands = object_writer.ObjectWriter(tools, items)
        brought = arrived_capacity.ArrivedCapacity(context)
        self._reservations = reservations.ReservationController(
            context, hands, charges, deciding, fair.pod_queue, brought
        )
        room = preemption.Preemption(context, fair, self._reservations, placer, deciding)
        self._idle_reclaim = idle_reclaim.IdleReclaim(context, fair, room.victims, hands)
        self._fault_remediation = fault_remediation.FaultRemediation(
            context, room.victims, self._reservations, placer, deciding
        )
        self._register_stores(context, room.victims, charges)
        self._queue_status = queue_status.QueueStatusWriter(
            context, fair, charges, hands, tools.metrics
        )
        first = self._backfill = scheduler_backfill.BackfillReservation(
            context, room.victims, deciding, settings.backfill
        )
        self._cycle = cycle.SchedulingCycle(context, charges, self._pods, self._gangs, room, first)
        self.explain_queries = queries.ExplainQueries(context, items, placer, deciding, self._cycle)
        self._provisioner: provisioner.Provisioner | None = None
        self._node_protection: node_protection.NodeProtection | None = None
        self._build_provisioner(context, fair, placer, brought)
        rules = lifecycle_claim_remediation.RemediationRules(
            settings.driver, settings.evict_over_share
        )
        self._claim_remediation = claim_remediation.ClaimRemediation(
            caches.pods, self._writers, rules, time
        )

    def _register_stores(
        self,
        context: state.SchedulerContext,
        victim_index: victims.VictimIndex,
        charges: queue_usage.QueueUsage,
    ) -> None:
        """Route the changes of stores to the components that keep state of their own."""
        caches, feed = self._stores, self._updater
        set_pod = provisioner_build.ignoring_placeholders(
            victim_index.set_pod, self._settings.on_demand
        )
        feed.register("unit", (caches.pods, set_pod))
        feed.register("stake", (caches.claims, victim_index.set_claim))
        feed.register("release", (caches.claims, context.record_release))
        feed.register("queue", (caches.queues, charges.put_queue))
        feed.register("reservation", (caches.reservations, self._reservations.set_reservation))

    def _build_provisioner(
        self,
        context: state.SchedulerContext,
        fair: engine.QueueEngine,
        placer: results.ResultHandler,
        brought: arrived_capacity.ArrivedCapacity,
    ) -> None:
        """Build what requests nodes, and what protects them from scale-down."""
        on_demand, tools, items = self._settings.on_demand, self._tools, self._items
        if on_demand is None:
            return
        demand = pending_demand.PendingDemand(
            context, fair, self._cycle, self._reservations, self._roster
        )
        around = provisioner_build.ProvisionerInputs(
            context, tools, items, fair, placer, demand, brought
        )
        self._provisioner = provisioner_build.build_provisioner(
            around, self._updater, self._settings.allocator, on_demand, self._settings.driver
        )
        self._node_protection = node_protection.NodeProtection(
            context, tools, items, on_demand, self._provisioner.provisioned_for
        )

    def run(self, stop: threading.Event) -> None:
        """Process items until `stop` is set."""
        while not stop.is_set():
            first = self._items.get(_IDLE_S)
            if first is not None:
                self.process([first, *self._drain_queue()])

    def last_explanation(self, pod: ids.Key) -> explanation.Explanation | None:
        """Return the last explanation of a pod; from any thread. None: not decided for here."""
        return self.explain_queries.last_explanation(pod)

    def current_plan(self) -> backfill_plan.BackfillPlan | None:
        """Return the backfill plan; from any thread."""
        return self._backfill.plan

    def shape_offer(self) -> shape_status.ShapeStatus | None:
        """Return the status of node shapes; None without provisioning. From any thread."""
        return self._provisioner.offer() if self._provisioner is not None else None

    def pending_state(self) -> pending.PendingState:
        """Return pending workloads and writes in flight for metrics; from any thread."""
        memory = self._memory
        return pending.PendingState(
            tuple(memory.waiting.copy().items()),
            memory.uids.copy(),
            memory.pending_reasons.copy(),
            len(self._roster),
            len(memory.in_flight),
            len(memory.in_doubt),
            self._backfill.plan,
        )

    def _drain_queue(self) -> list[write_pool.WorkItem]:
        items: list[write_pool.WorkItem] = []
        while len(items) < _BATCH and len(self._items):
            item = self._items.get(0.0)
            if item is not None:
                items.append(item)
        return items

    def process(self, batch: list[write_pool.WorkItem]) -> None:
        """Process a batch, most urgent first."""
        self._finish_writes()
        due: dict[write_pool.WorkItem, scheduler_pending.PendingWorkload] = {}
        for item in sorted(batch, key=self._urgency):
            with self._guard(item):
                due |= {workload.item: workload for workload in self._handle(item)}
        for item, again_s in self._cycle.schedule([*due.values()], self._guard):
            self._items.add_after(item, again_s)
        self._provision(batch)
        if self._node_protection is not None:
            self._node_protection.enqueue_changed()
        for item in batch:
            self._items.done(item)

    def _provision(self, batch: list[write_pool.WorkItem]) -> None:
        """Provision nodes for workloads that found no place in this batch."""
        if self._provisioner is None:
            return
        if write_pool.PROVISIONING in batch:
            with self._guard(write_pool.PROVISIONING):
                stale = self._settings.is_stale()
                again_s = actions.STALE_RETRY_S if stale else self._provisioner.reconcile()
                if again_s is not None:
                    self._items.add_after(write_pool.PROVISIONING, again_s)
        else:
            self._items.add_after(write_pool.PROVISIONING, _PROVISION_DELAY_S)

    @contextlib.contextmanager
    def _guard(self, item: write_pool.WorkItem) -> Iterator[None]:
        """Guard the loop: a failing key does not stop the others."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it is, the others go on
            _log.exception("turn failed", kind=item.kind, key=item.key)
            self._tools.metrics.failed_turns.inc()
            self._items.retry(item)

    def _urgency(self, item: write_pool.WorkItem) -> int:
        """Return the rank: claims first, as they free devices."""
        return 1 if item.kind in {"pod", "gang"} else 0

    def _handle(self, item: write_pool.WorkItem) -> Iterator[scheduler_pending.PendingWorkload]:
        """Reconcile a key; yield the workloads to place."""
        match item.kind:
            case "pod":
                workload = self._reconcile_pod(item)
                if workload is not None:
                    yield workload
            case "gang":
                yield from self._reconcile_gang(item)
            case "wake":
                for pending_item in [*self._memory.waiting]:
                    with self._guard(pending_item):
                        yield from self._handle(pending_item)
                for key in self._reservations.pending_keys():
                    self._items.add(write_pool.WorkItem("reservation", key))
            case queries.KIND:
                self.explain_queries.resolve(item.key)
            case write_pool.PROVISIONING.kind:
                return  # once all are served
            case _:
                self._reconcile_item(item)

    def _reconcile_item(self, item: write_pool.WorkItem) -> None:
        """Reconcile a key of a kind that is not placed."""
        again_s: float | None = None
        match item.kind:
            case "reservation":
                again_s = self._reservations.reconcile(item)
            case "queues":
                again_s = self._queue_status.reconcile()
            case "marks":
                again_s = (
                    self._node_protection.reconcile(item)
                    if self._node_protection is not None
                    else None
                )
            case "faults":
                again_s = self._fault_remediation.reconcile(ids.NodeName(item.key))
            case "claim":
                self._reconcile_claim(item)
            case "node":
                self._reconcile_node(ids.NodeName(item.key))
            case _:
                for key in self._stores.nodes.snapshot():
                    self._items.add(write_pool.WorkItem("node", key))
        if again_s is not None:
            self._items.add_after(item, again_s)

    def _finish_writes(self) -> None:
        """Apply the results of finished writes."""
        now = self._clock.monotonic()
        for done in self._writers.drain_results():
            if done.in_doubt:
                # Its devices stay taken: a write without an answer may have happened, or yet will.
                self._memory.in_doubt[done.item.key] = replace(done.decision, doubtful=True)
                self._items.retry(done.item)
                continue
            self._end_write(done.pod.uid)
            if done.error is None:
                self._tools.metrics.pod_seconds.observe(self._waited_s(done.pod))
                node, verdict = done.decision.placement.node, done.pod.verdict.message
                self._memory.placed[done.pod.uid] = actions.WrittenPod(node, now, verdict)
                self._items.forget(done.item)
                self._items.add(done.item)
            else:
                self._items.retry(done.item)

    def _waited_s(self, pod: pods.Pod) -> float:
        return max(0.0, self._clock.now().timestamp() - scheduler_pending.parse_time(pod.created))

    def _end_write(self, uid: ids.PodUid) -> None:
        """End a write: its claims are read from the caches again."""
        decision = self._memory.end_write(uid)
        if decision is not None:
            for key in decision.allocations:
                self._updater.mark_changed("claim", key)
            self._updater.apply()
            self._view.end_write(decision)

    # Pods and gangs.

    def _reconcile_pod(self, item: write_pool.WorkItem) -> scheduler_pending.PendingWorkload | None:
        doubtful = self._memory.in_doubt.pop(item.key, None)
        if doubtful is not None:
            self._repeat_write(item, doubtful)
            return None
        pod = self._stores.pods.get(item.key)
        if pod is None:
            self._memory.forget(item.key)
            self._items.forget(item)
            return None
        self._memory.observe_uid(item.key, pod.uid)
        gang = gang_index.gang_key(pod)
        if gang is not None:
            self._items.add(write_pool.WorkItem("gang", gang))
        if gang is not None and pod.node is None:
            self._memory.unbound.add(pod.uid)
            return None
        return self._schedule_alone(item, pod)

    def _schedule_alone(
        self, item: write_pool.WorkItem, pod: pods.Pod
    ) -> scheduler_pending.PendingWorkload | None:
        pod_claims = snapshot.pod_claims(pod, self._stores.claims.get)
        if pod_claims is None or pod.uid in self._memory.in_flight:
            return None
        due = self._pods.reconcile(item, pod, pod_claims, stale=self._settings.is_stale())
        return self._enqueue_later(item, due)

    def _reconcile_gang(
        self, item: write_pool.WorkItem
    ) -> Iterator[scheduler_pending.PendingWorkload]:
        try:
            due = self._gangs.reconcile(item, stale=self._settings.is_stale())
        except gang_scheduler.NotAGang:
            for pod in self._roster.members(item.key):
                workload = self._schedule_alone(write_pool.WorkItem("pod", pod.key), pod)
                if workload is not None:
                    yield workload
            return
        pending_gang = self._enqueue_later(item, due)
        if pending_gang is not None:
            yield pending_gang

    def _enqueue_later(
        self, item: write_pool.WorkItem, due: scheduler_pending.PendingWorkload | float | None
    ) -> scheduler_pending.PendingWorkload | None:
        if isinstance(due, scheduler_pending.PendingWorkload):
            return due
        if due is not None:
            self._items.add_after(item, due)
        return None

    def _repeat_write(self, item: write_pool.WorkItem, decision: write_pool.Decision) -> None:
        """Repeat a write without an answer, unless another allocator manages its devices now."""
        if self._settings.is_stale():
            self._memory.in_doubt[item.key] = decision
            self._items.add_after(item, actions.STALE_RETRY_S)
            return
        self._updater.apply()
        if snapshot.all_managed(
            self._view, (pick.device for pick in decision.placement.assignments)
        ):
            self._writers.allocate(item, decision)
        else:
            self._writers.withdraw(item, decision)

    # Claims.

    def _reconcile_claim(self, item: write_pool.WorkItem) -> None:
        self._memory.gang_condition_versions.pop(item.key, None)
        claim = self._stores.claims.get(item.key)
        if claim is None:
            self._memory.unreserved.pop(item.key, None)
            self._claim_remediation.forget(item.key)
            self._items.forget(item)
            return
        for again_s in (
            self._claim_remediation.reconcile(claim),
            self._idle_reclaim.reconcile(claim),
        ):
            if again_s is not None:
                self._items.add_after(item, again_s)
        now = self._clock.monotonic()
        since = self._unreserved_since(claim, now)
        match actions.claim_action(
            claim, self._stores.pods.get, since, now, self._settings.patience
        ):
            case actions.DropHolds(holds=holds):
                self._writers.drop_holds(claim, holds)
            case actions.ClearUnused():
                self._memory.unreserved.pop(item.key, None)
                self._writers.clear((claim,))
            case actions.Recheck(after_s=after_s):
                self._items.add_after(item, after_s)
            case actions.Nothing():
                pass

    # Nodes.

    def _reconcile_node(self, name: ids.NodeName) -> None:
        """Write the condition that sums up a node's GPUs."""
        node = self._stores.nodes.get(ids.Key(name))
        desired = condition.gpu_condition(
            stores.node_slices(self._stores, name, self._settings.driver)
        )
        if node is not None and desired is not None and desired != node.gpu_condition:
            self._writers.set_node_condition(node, desired, clock.rfc3339(self._clock.now()))

    def _unreserved_since(self, claim: claims.Claim, now: float) -> float | None:
        self._updater.apply()
        if not actions.is_unused(claim, self._view):
            self._memory.unreserved.pop(claim.key, None)
            return None
        return self._memory.unreserved.setdefault(claim.key, now)


def _node_markers(
    how: provisioning_settings.ProvisionerSettings | None,
) -> cluster_state.NodeMarkers:
    return (
        cluster_state.NodeMarkers(how.namespace, how.interruption_taints)
        if how is not None
        else cluster_state.NO_MARKERS
    )
