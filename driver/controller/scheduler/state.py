"""Context of the scheduler: caches, view and state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driver import clock, ids
from driver.controller.informers import snapshot_updater, stores
from driver.controller.scheduler import memory, pending
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import cluster_state


@dataclass(frozen=True, slots=True)
class SchedulerContext:
    """Owned by the decider's thread; only the stores are filled by others."""

    stores: stores.Stores
    updater: snapshot_updater.SnapshotUpdater
    view: cluster_state.ClusterState
    memory: memory.SchedulerState
    clock: clock.Clock

    def refresh_view(self) -> cluster_state.ClusterState:
        """Apply pending changes and return the view."""
        self.updater.apply()
        return self.view

    def record_release(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """Record when a claim loses its allocation."""
        self.memory.released.set_claim(key, claim, self.clock.now().timestamp())

    def settle_delay_s(self, pod: pods.Pod, open_claims: Iterable[claims.Claim]) -> float:
        """Return the seconds until a pod's claims may be allocated again; <= 0: now."""
        created = pending.parse_time(pod.created)
        return self.memory.released.allocate_delay_s(
            open_claims, created, self.clock.now().timestamp()
        )

    def unreserve_delay_s(self, held: Iterable[claims.Claim]) -> float:
        """Seconds until allocations without the pod's entry may be cleared; <= 0: now."""
        return self.memory.released.clear_delay_s(held, self.clock.now().timestamp())

    def avoided_nodes(self, pod: pods.Pod) -> Mapping[ids.NodeName, str]:
        """Return the nodes to avoid for a pod, with kube-scheduler's message."""
        now = self.clock.monotonic()
        return self.memory.refused.avoided_nodes(pod, self.view.node_state, now)

    def record_refusal(self, pod: pods.Pod, node: ids.NodeName, message: str) -> float:
        """Record that kube-scheduler refused a node; return how long it is avoided, in seconds."""
        now = self.clock.monotonic()
        return self.memory.refused.record(pod, node, message, self.view.node_state, now)
