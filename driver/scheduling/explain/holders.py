"""Who has what of a node: its pods, and the pods that hold devices that it reaches. Pure.

A claim is free once every pod that has reserved it is gone. A claim that something else has
reserved, or nobody, no pod's going frees.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import claims, pools
from driver.scheduling.snapshot import allocation_hold, snapshot

_NODE_BOUND_OWNERS = frozenset({"DaemonSet", "Node"})
"""Owners that make the next pod for the same node: of a static pod that is the node itself."""
FindClaim = Callable[[ids.Key], claims.Claim | None]
FindPod = Callable[[ids.Key], pods.Pod | None]


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """An allocated claim with its devices, and the UIDs of all who have to go before it is free."""

    claim: ids.Key
    results: tuple[claims.Result, ...]
    users: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """A pod that takes something of a node; by its leases, devices."""

    pod: pods.Pod
    node: ids.NodeName
    claims: tuple[HeldClaim, ...] = ()

    @property
    def key(self) -> ids.Key:
        """`namespace/name` of the pod."""
        return self.pod.key


HolderGroup = Sequence[DeviceHolder]
"""Tenants who go together, or stay."""


def returns_to_node(pod: pods.Pod) -> bool:
    """Whether its owner would have it on the same node again, so that nothing is won."""
    return pod.owner is not None and pod.owner.kind in _NODE_BOUND_OWNERS


def freed_claims(leaving: Iterable[DeviceHolder]) -> frozenset[ids.Key]:
    """The claims that are free once these are gone."""
    found = [*leaving]
    gone = {one.pod.uid for one in found}
    return frozenset(lease.claim for one in found for lease in one.claims if lease.users <= gone)


def pool_holdings(view: snapshot.Snapshot, of: pools.Pool) -> Iterator[tuple[str, ids.Key]]:
    """Who has which device of a pool: its name, and a claim."""
    for name in view.used_devices(of):
        for holder in view.holders(claims.DeviceId(of.driver, of.name, name)):
            yield name, holder.claim


class HolderIndex:
    """Of a view, read of a node when they are asked for; `find_*` look an object up by key."""

    def __init__(self, view: snapshot.Snapshot, find_claim: FindClaim, find_pod: FindPod) -> None:
        self._view = view
        self._find_claim = find_claim
        self._find_pod = find_pod
        self._held_claims: dict[ids.Key, tuple[HeldClaim, tuple[pods.Pod, ...]] | None] = {}

    def node_holders(self, node: ids.NodeName) -> tuple[DeviceHolder, ...]:
        """The tenants of a node, by key."""
        found: dict[ids.Key, tuple[pods.Pod, ids.NodeName]] = {
            key: (pod, node) for key, pod in self._view.pods_on(node).items() if not pod.finished
        }
        for key in self._node_claims(node):
            lease, claim = self._held_claim(key), self._find_claim(key)
            for pod in lease[1] if lease else ():
                at = pod.node or (snapshot.pinned_node(claim) if claim else None)
                if at is not None:
                    found.setdefault(pod.key, (pod, at))
        return tuple(
            DeviceHolder(pod, at, tuple(self._pod_claims(pod)))
            for _, (pod, at) in sorted(found.items())
        )

    def holder(self, pod: pods.Pod) -> DeviceHolder | None:
        """A pod as a tenant of the node that it is bound to, or pinned to by a claim that it has.

        None of one that is on none, or has ended.
        """
        leases = tuple(self._pod_claims(pod))
        pins = (self._find_claim(one.claim) for one in leases)
        node = pod.node or next(
            (at for one in pins if one and (at := snapshot.pinned_node(one)) is not None), None
        )
        return None if node is None or pod.finished else DeviceHolder(pod, node, leases)

    def _node_claims(self, node: ids.NodeName) -> set[ids.Key]:
        """The claims that hold a device that a node reaches."""
        shares = self._view.reachable_pools(node)
        return {claim for share in shares for _, claim in pool_holdings(self._view, share.pool)}

    def _pod_claims(self, pod: pods.Pod) -> Iterator[HeldClaim]:
        for key in pod.claim_keys:
            lease = self._held_claim(key)
            if lease is not None and pod.uid in lease[0].users:
                yield lease[0]

    def _held_claim(self, key: ids.Key) -> tuple[HeldClaim, tuple[pods.Pod, ...]] | None:
        """A claim's lease, with the pods among its users."""
        if key not in self._held_claims:
            self._held_claims[key] = self._read(key)
        return self._held_claims[key]

    def _read(self, key: ids.Key) -> tuple[HeldClaim, tuple[pods.Pod, ...]] | None:
        claim = self._find_claim(key)
        if claim is None or claim.allocation is None:
            return None
        users: set[str] = set()
        there: list[pods.Pod] = []
        for entry in claim.consumers:
            pod = allocation_hold.consumer_pod(claim, entry, self._find_pod)
            if pod is not None and not pod.finished:
                if pod.uid not in users:
                    there.append(pod)
                users.add(pod.uid)
            elif not (entry.is_pod or entry.is_hold):
                users.add(entry.uid)
        lease = HeldClaim(key, claim.allocation.results, frozenset(users))
        return (lease, tuple(there)) if there else None
