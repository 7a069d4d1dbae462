"""Pods of a node, and pods that hold devices that it reaches. Pure.

A claim is free once every pod that has reserved it is gone. A claim reserved by something else, or
without a reservation, is not freed by any pod.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import claims, pools
from driver.scheduling.snapshot import allocation_hold, snapshot

_NODE_BOUND_OWNERS = frozenset({"DaemonSet", "Node"})
"""Owners that recreate a pod for the same node: for a static pod the node itself."""
FindClaim = Callable[[ids.Key], claims.Claim | None]
FindPod = Callable[[ids.Key], pods.Pod | None]


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """An allocated claim with its devices, and the UIDs of all users that have to go to free it."""

    claim: ids.Key
    results: tuple[claims.Result, ...]
    users: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """A pod that uses resources of a node; by its claims, devices."""

    pod: pods.Pod
    node: ids.NodeName
    claims: tuple[HeldClaim, ...] = ()

    @property
    def key(self) -> ids.Key:
        """`namespace/name` of the pod."""
        return self.pod.key


HolderGroup = Sequence[DeviceHolder]
"""Holders that are evicted together, or stay."""


def returns_to_node(pod: pods.Pod) -> bool:
    """Return whether its owner would recreate it on the same node, so that nothing is freed."""
    return pod.owner is not None and pod.owner.kind in _NODE_BOUND_OWNERS


def freed_claims(leaving: Iterable[DeviceHolder]) -> frozenset[ids.Key]:
    """Return the claims that are free once these holders are gone."""
    holders = [*leaving]
    removed_uids = {holder.pod.uid for holder in holders}
    return frozenset(
        held_claim.claim
        for holder in holders
        for held_claim in holder.claims
        if held_claim.users <= removed_uids
    )


def pool_holdings(view: snapshot.Snapshot, pool: pools.Pool) -> Iterator[tuple[str, ids.Key]]:
    """Yield the allocated devices of a pool, by name, with their claims."""
    for name in view.used_devices(pool):
        for holder in view.holders(claims.DeviceId(pool.driver, pool.name, name)):
            yield name, holder.claim


class HolderIndex:
    """Holders in a snapshot, read per node on demand; `find_*` look up objects by key."""

    def __init__(self, view: snapshot.Snapshot, find_claim: FindClaim, find_pod: FindPod) -> None:
        self._view = view
        self._find_claim = find_claim
        self._find_pod = find_pod
        self._held_claims: dict[ids.Key, tuple[HeldClaim, tuple[pods.Pod, ...]] | None] = {}

    def node_holders(self, node: ids.NodeName) -> tuple[DeviceHolder, ...]:
        """Return the holders on a node, by key."""
        pod_nodes: dict[ids.Key, tuple[pods.Pod, ids.NodeName]] = {
            key: (pod, node) for key, pod in self._view.pods_on(node).items() if not pod.finished
        }
        for key in self._node_claims(node):
            entry, claim = self._held_claim(key), self._find_claim(key)
            for pod in entry[1] if entry else ():
                pod_node = pod.node or (snapshot.pinned_node(claim) if claim else None)
                if pod_node is not None:
                    pod_nodes.setdefault(pod.key, (pod, pod_node))
        return tuple(
            DeviceHolder(pod, pod_node, tuple(self._pod_claims(pod)))
            for _, (pod, pod_node) in sorted(pod_nodes.items())
        )

    def holder(self, pod: pods.Pod) -> DeviceHolder | None:
        """Return a pod as a holder on the node that it is bound to, or pinned to by a claim.

        None for a pod on no node, or finished.
        """
        held_claims = tuple(self._pod_claims(pod))
        pins = (self._find_claim(held_claim.claim) for held_claim in held_claims)
        node = pod.node or next(
            (
                pinned
                for held_claim in pins
                if held_claim and (pinned := snapshot.pinned_node(held_claim)) is not None
            ),
            None,
        )
        return None if node is None or pod.finished else DeviceHolder(pod, node, held_claims)

    def _node_claims(self, node: ids.NodeName) -> set[ids.Key]:
        """Return the claims that hold a device that a node reaches."""
        shares = self._view.reachable_pools(node)
        return {claim for share in shares for _, claim in pool_holdings(self._view, share.pool)}

    def _pod_claims(self, pod: pods.Pod) -> Iterator[HeldClaim]:
        for key in pod.claim_keys:
            entry = self._held_claim(key)
            if entry is not None and pod.uid in entry[0].users:
                yield entry[0]

    def _held_claim(self, key: ids.Key) -> tuple[HeldClaim, tuple[pods.Pod, ...]] | None:
        """Return a claim with the pods among its users."""
        if key not in self._held_claims:
            self._held_claims[key] = self._read(key)
        return self._held_claims[key]

    def _read(self, key: ids.Key) -> tuple[HeldClaim, tuple[pods.Pod, ...]] | None:
        claim = self._find_claim(key)
        if claim is None or claim.allocation is None:
            return None
        users: set[str] = set()
        live_pods: list[pods.Pod] = []
        for entry in claim.consumers:
            pod = allocation_hold.consumer_pod(claim, entry, self._find_pod)
            if pod is not None and not pod.finished:
                if pod.uid not in users:
                    live_pods.append(pod)
                users.add(pod.uid)
            elif not (entry.is_pod or entry.is_hold):
                users.add(entry.uid)
        held_claim = HeldClaim(key, claim.allocation.results, frozenset(users))
        return (held_claim, tuple(live_pods)) if live_pods else None
