"""Collector: turns work items into pending workloads, and does what else they call for."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from driver import ids
from driver.controller.commit import write_pool
from driver.controller.scheduler import gang_scheduler, pending, pod_scheduler, results, state
from driver.controller.scheduler.eviction import bound_pods
from driver.kube import workqueue
from driver.resources.core import pods
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.snapshot import snapshot

Reconcile = Callable[[write_pool.WorkItem], float | None]
"""Reconciles an item of a kind that is not placed; the seconds until the next reconcile."""


class WorkloadCollector:
    """Collects from pods and gangs. On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        unbound: pod_scheduler.PodScheduler,
        bound: bound_pods.BoundPods,
        gangs: gang_scheduler.GangScheduler,
        outcomes: results.ResultHandler,
    ) -> None:
        self._context = context
        self._items = items
        self._pods = unbound
        self._bound = bound
        self._gangs = gangs
        self._results = outcomes

    def collect(self, item: write_pool.WorkItem) -> Iterator[pending.PendingWorkload]:
        """Yield the workloads of a pod or gang whose claims are to be allocated now."""
        if item.kind == "gang":
            yield from self._collect_gang(item)
        elif not self._results.repeat_write(item):
            yield from self._collect_pod(item)

    def _collect_pod(self, item: write_pool.WorkItem) -> Iterator[pending.PendingWorkload]:
        pod = self._context.stores.pods.get(item.key)
        if pod is None:
            self._context.memory.forget(item.key)
            self._items.forget(item)
            return
        self._context.memory.observe_uid(item.key, pod.uid)
        gang = gang_index.gang_key(pod)
        if gang is not None:
            self._items.add(write_pool.WorkItem("gang", gang))
        if gang is not None and pod.node is None:
            self._context.memory.unbound.add(pod.uid)
        else:
            yield from self._collect_alone(item, pod)

    def _collect_alone(
        self, item: write_pool.WorkItem, pod: pods.Pod
    ) -> Iterator[pending.PendingWorkload]:
        pod_claims = snapshot.pod_claims(pod, self._context.stores.claims.get)
        if pod_claims is None or pod.uid in self._context.memory.in_flight:
            return
        scheduler = self._pods if pod.node is None else self._bound
        yield from self._workload(item, scheduler.reconcile(item, pod, pod_claims))

    def _collect_gang(self, item: write_pool.WorkItem) -> Iterator[pending.PendingWorkload]:
        try:
            due = self._gangs.reconcile(item)
        except gang_scheduler.NotAGang as error:
            for pod in error.pods:
                yield from self._collect_alone(write_pool.WorkItem("pod", pod.key), pod)
            return
        yield from self._workload(item, due)

    def _workload(
        self, item: write_pool.WorkItem, due: pending.PendingWorkload | float | None
    ) -> Iterator[pending.PendingWorkload]:
        if isinstance(due, pending.PendingWorkload):
            yield due
        elif due is not None:
            self._items.add_after(item, due)


class Collector:
    """On the decider's thread. `reconcilers` are by the kinds of items that are not placed."""

    def __init__(
        self,
        context: state.SchedulerContext,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        workloads: WorkloadCollector,
        reconcilers: Mapping[str, Reconcile],
        guard: pending.Guard,
    ) -> None:
        self._context = context
        self._items = items
        self._workloads = workloads
        self._reconcilers = reconcilers
        self._guard = guard

    def collect(self, items: Iterable[write_pool.WorkItem]) -> list[pending.PendingWorkload]:
        """Reconcile the items, most urgent first; return the workloads to place."""
        due: dict[write_pool.WorkItem, pending.PendingWorkload] = {}
        for item in sorted(items, key=_urgency):
            with self._guard(item):
                due |= {workload.item: workload for workload in self._collect(item)}
        return [*due.values()]

    def _collect(self, item: write_pool.WorkItem) -> Iterator[pending.PendingWorkload]:
        if item.kind in {"pod", "gang"}:
            yield from self._workloads.collect(item)
            return
        if item == write_pool.WAKE:
            for pending_item in [*self._context.memory.waiting]:
                with self._guard(pending_item):
                    yield from self._workloads.collect(pending_item)
        again_s = self._reconcilers[item.kind](item)
        if again_s is not None:
            self._items.add_after(item, again_s)


def _urgency(item: write_pool.WorkItem) -> int:
    """Return the rank: claims first, as they free devices."""
    return 1 if item.kind in {"pod", "gang"} else 0


def enqueue(
    items: workqueue.WorkQueue[write_pool.WorkItem], kind: str, keys: Iterable[ids.Key]
) -> None:
    """Enqueue an item of a kind for each key."""
    for key in keys:
        items.add(write_pool.WorkItem(kind, key))
