"""Reports the usage of each claim to the queue engine as it changes."""

from collections.abc import Iterable

from driver import ids
from driver.controller.informers import stores
from driver.resources import queues
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.queues import engine
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import cluster_state, snapshot


class QueueUsage:
    """On the decider's thread: `refresh` before the engine is used."""

    def __init__(
        self, caches: stores.Stores, view: cluster_state.ClusterState, fair: engine.QueueEngine
    ) -> None:
        self._stores = caches
        self._view = view
        self._engine = fair
        self._leaves: dict[ids.Key, str] = {}
        self._reserved: dict[ids.Key, str] = {}
        self._leaving: dict[ids.Key, frozenset[ids.Key]] = {}
        self._tree_changed = False
        self._dirty: dict[ids.Key, None] = {}

    def pod_queue(self, pod: pods.Pod) -> str:
        """Return the name of a pod's queue."""
        return self._engine.pod_queue(pod)

    def put_queue(self, name: ids.Key, queue: queues.Queue | None) -> None:
        """Apply a Queue's change: pods may belong to another queue now."""
        previous = self._engine.tree
        self._engine.set_queue(name, queue)
        self._tree_changed |= self._engine.tree is not previous

    def assign_queue(self, claims_of: ids.Key, leaf: str) -> None:
        """Record the queue of a claim that is being allocated."""
        self._leaves[claims_of] = leaf

    def limit_message(self, leaf: str, results: Iterable[claims.Result]) -> str:
        """Return why a queue may not have these devices; "" if it may."""
        if self._engine.tree.is_implicit_only:
            return ""
        over = self._engine.exceeded_limit(
            leaf, queue_resources.results_amounts(self._view, results)
        )
        return queue_messages.limit_message(over) if over is not None else ""

    def other_models_view(self, leaf: str) -> snapshot.Snapshot | None:
        """Return the view without nodes of GPU models whose limit the queue reached.

        None if there is no such model.
        """
        full = self._engine.full_models(leaf)
        if not full:
            return None
        only = [
            name
            for name in self._view.nodes
            if not full & queue_resources.products(self._view, name)
        ]
        return reservation_overlay.WithoutReservations(self._view, (), only)

    def charge_reservation(
        self, key: ids.Key, leaf: str, allocation: claims.Allocation | None
    ) -> None:
        """Charge reserved devices to the holder's queue."""
        if allocation is None:
            self._engine.charge(key, self._reserved.pop(key, leaf), None)
            return
        self._reserved[key] = leaf
        taken = queue_resources.results_amounts(self._view, allocation.results)
        self._engine.charge(key, leaf, taken or None)

    def exclude_claims(self, key: ids.Key, keys: Iterable[ids.Key]) -> None:
        """Stop charging the claims of a Reservation's victims."""
        previous, after = self._leaving.pop(key, frozenset()), frozenset(keys)
        if after:
            self._leaving[key] = after
        for claim in previous ^ after:
            self._dirty[claim] = None

    def refresh(self, now: float) -> None:
        """Report all changes to the engine."""
        self._engine.refresh(self._view)
        changed = [*self._view.drain_changed_claims(), *self._dirty]
        self._dirty.clear()
        if self._tree_changed:
            self._tree_changed = False
            changed = [*changed, *self._leaves]
            self._leaves = {key: self._claim_queue(key) for key in self._leaves}
        for key in dict.fromkeys(changed):
            self._charge(key, now)

    def _charge(self, key: ids.Key, now: float) -> None:
        allocation = self._view.allocation(key)
        gone = any(key in excluded for excluded in self._leaving.values())
        if allocation is None or gone:
            leaf = self._leaves.pop(key, "")
            self._engine.charge(key, leaf, None, now)
            return
        leaf = self._leaves[key] = self._claim_queue(key)
        taken = queue_resources.results_amounts(self._view, allocation.results)
        self._engine.charge(key, leaf, taken or None, now)

    def _claim_queue(self, key: ids.Key) -> str:
        """Return the queue of a claim's first pod; the previous one if no pod has it."""
        pod = next(stores.claim_users(self._stores, key), None)
        return self._engine.pod_queue(pod) if pod is not None else self._leaves.get(key, "")
