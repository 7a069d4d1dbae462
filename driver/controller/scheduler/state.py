"""What the decider knows: the caches, the picture made of them, and what it remembers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driver import clock, ids
from driver.controller.informers import snapshot_updater, stores
from driver.controller.scheduler import memory, pending
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import cluster_state


@dataclass(frozen=True, slots=True)
class State:
    """Owned by the decider's thread; only the stores are filled by others."""

    stores: stores.Stores
    feed: snapshot_updater.Feed
    view: cluster_state.ClusterState
    memory: memory.Memory
    clock: clock.Clock

    def bring(self) -> cluster_state.ClusterState:
        """The picture, up to date."""
        self.feed.bring()
        return self.view

    def put_release(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """Note when a claim loses its allocation."""
        self.memory.released.set_claim(key, claim, self.clock.now().timestamp())

    def settles_s(self, pod: pods.Pod, open_claims: Iterable[claims.Claim]) -> float:
        """Seconds until a pod's claims may be allocated again; 0 or less: now."""
        created = pending.moment(pod.created)
        return self.memory.released.allocate_delay_s(
            open_claims, created, self.clock.now().timestamp()
        )

    def parts_s(self, held: Iterable[claims.Claim]) -> float:
        """Seconds until allocations that lost their pod's entry may be cleared; 0 or less: now."""
        return self.memory.released.clear_delay_s(held, self.clock.now().timestamp())

    def avoided(self, pod: pods.Pod) -> Mapping[ids.NodeName, str]:
        """The nodes to leave out for a pod, with kube-scheduler's words."""
        now = self.clock.monotonic()
        return self.memory.refused.avoided_nodes(pod, self.view.node_state, now)

    def refused(self, pod: pods.Pod, node: ids.NodeName, message: str) -> float:
        """Remember that kube-scheduler refused a node; the seconds it is left out at least."""
        now = self.clock.monotonic()
        return self.memory.refused.record(pod, node, message, self.view.node_state, now)
