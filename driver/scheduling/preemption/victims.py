"""Victims: a pod, or a whole gang. Pure.

A `VictimIndex` maintains the victims of a cluster incrementally, so that a plan reads those of the
nodes that it visits and no others.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from driver import ids
from driver.resources import pod_groups
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, pools
from driver.scheduling.explain import holders
from driver.scheduling.queues import gpu_usage
from driver.scheduling.snapshot import snapshot

VictimKey = tuple[str, str]
"""`("pod", "namespace/name")` or `("gang", "namespace/gang")`."""
_POD, _GANG = "pod", "gang"
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class GpuUse:
    """GPUs of a claim, in thousandths of one, and since when: Unix seconds, None: not known."""

    thousandths: int
    since: float | None


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod, or all pods of a gang that hold something: all are evicted or none.

    `pods` are over all their nodes; `priority` is the highest of theirs. If several of them have a
    claim, its use counts once, from the first of them on.
    """

    key: VictimKey
    pods: tuple[holders.DeviceHolder, ...]
    priority: int
    gpu_uses: tuple[GpuUse, ...] = ()

    @property
    def name(self) -> str:
        """`namespace/name` of the pod or the gang."""
        return self.key[1]

    @property
    def is_gang(self) -> bool:
        """Return whether its pods are evicted together."""
        return self.key[0] == _GANG

    @property
    def description(self) -> str:
        """`pod team/a`, `gang team/g (4 pods)`."""
        kind, name = self.key
        return f"pod {name}" if kind == _POD else f"gang {name} ({len(self.pods)} pods)"

    @property
    def thousandths(self) -> int:
        """The GPUs that it has, in thousandths of one."""
        return sum(gpu_use.thousandths for gpu_use in self.gpu_uses)

    def lost_at(self, now: float) -> int:
        """Return its loss: thousandths of a GPU times seconds. `now` is Unix time."""
        lost = 0
        for gpu_use in self.gpu_uses:
            if gpu_use.since is not None and gpu_use.since < now:
                lost += gpu_use.thousandths * int(now - gpu_use.since)
        return lost


def parse_time(text: str) -> float | None:
    """Return RFC 3339 as Unix seconds; None if it cannot be read."""
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.timestamp() if time.tzinfo else None


def start_time(pod: pods.Pod) -> float | None:
    """Return when a pod started, else when it was created."""
    started = parse_time(pod.started)
    return parse_time(pod.created) if started is None else started


class VictimIndex:
    """Index of victims, fed by `set_*` (None: deleted) in any order."""

    def __init__(self) -> None:
        self._pods: dict[ids.Key, pods.Pod] = {}
        self._loose_groups: set[ids.Key] = set()
        self._claims: dict[ids.Key, claims.Claim] = {}
        self._users: dict[ids.Key, set[ids.Key]] = {}
        self._members: dict[VictimKey, set[ids.Key]] = {}
        self._victims: dict[VictimKey, Victim] = {}
        self._by_node: dict[ids.NodeName, set[VictimKey]] = {}
        self._by_pool: dict[snapshot.PoolKey, set[VictimKey]] = {}
        self._stale: set[VictimKey] = set()
        self._node_cache: dict[ids.NodeName, tuple[Victim, ...]] = {}
        self._pools: dict[snapshot.PoolKey, pools.Pool | None] = {}
        self._generation = -1

    def victim_key(self, pod: pods.Pod) -> VictimKey:
        """Return the key of the victim that a pod belongs to.

        A pod of a PodGroup that lets its pods go alone is one by itself.
        """
        if not pod.gang:
            return _POD, pod.key
        gang = ids.Key(f"{pod.namespace}/{pod.gang}")
        is_loose = pod.gang == pod.pod_group and gang in self._loose_groups
        return (_POD, pod.key) if is_loose else (_GANG, gang)

    def set_pod_group(self, key: ids.Key, group: pod_groups.PodGroup | None) -> None:
        """Set or delete a PodGroup of Kubernetes' own."""
        is_loose = group is not None and group.lets_pods_go_alone
        if is_loose == (key in self._loose_groups):
            return
        of_group = [pod for pod in self._pods.values() if f"{pod.namespace}/{pod.pod_group}" == key]
        for pod in of_group:
            self.set_pod(pod.key, None)
        if is_loose:
            self._loose_groups.add(key)
        else:
            self._loose_groups.discard(key)
        for pod in of_group:
            self.set_pod(pod.key, pod)

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """Set or delete a pod."""
        previous = self._pods.pop(key, None)
        for version in (previous, pod):
            self._mark_stale(version.claim_keys if version else ())
        if previous is not None:
            previous_key = self.victim_key(previous)
            _drop(self._members, previous_key, key)
            if previous_key in self._members or previous_key in self._victims:
                self._stale.add(previous_key)
            else:
                self._stale.discard(previous_key)  # most pods go without ever being victims
            for claim_key in previous.claim_keys:
                _drop(self._users, claim_key, key)
        if pod is not None:
            self._pods[key] = pod
            self._stale.add(self.victim_key(pod))
            self._members.setdefault(self.victim_key(pod), set()).add(key)
            for claim_key in pod.claim_keys:
                self._users.setdefault(claim_key, set()).add(key)

    def set_claim(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """Set or delete a claim."""
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim
        self._mark_stale([key])

    def node_victims(self, view: snapshot.Snapshot, node: nodes.Node) -> Sequence[Victim]:
        """Return the victims on a node, or with a device that it reaches; by name.

        The same object while they do not change.
        """
        self.refresh(view)
        victims = self._node_cache.get(node.name)
        if victims is None:
            keys = set(self._by_node.get(node.name, ()))
            for share in view.reachable_pools(node.name):
                keys |= self._by_pool.get((share.pool.driver, share.pool.name), set())
            victims = self._node_cache[node.name] = tuple(
                self._victims[key] for key in sorted(keys)
            )
        return victims

    def all_victims(self, view: snapshot.Snapshot) -> Mapping[VictimKey, Victim]:
        """Return every victim by key."""
        self.refresh(view)
        return self._victims

    def refresh(self, view: snapshot.Snapshot) -> None:
        """Rebuild the victims that changed."""
        if not self._stale and view.generation == self._generation:
            return
        if view.generation != self._generation:
            self._generation = view.generation
            self._node_cache.clear()
            for key, previous in self._pools.items():
                if view.pools.get(key) is not previous:
                    self._stale |= self._by_pool.get(key, set())
        if self._stale:
            read = holders.HolderIndex(view, self._claims.get, self._pods.get)
            for stale_key in self._stale:
                self._set_victim(view, stale_key, self._build_victim(view, read, stale_key))
            self._stale.clear()

    def _mark_stale(self, keys: Iterable[ids.Key]) -> None:
        """Mark the victims with these claims as stale."""
        for key in keys:
            users = (self._pods.get(user_key) for user_key in self._users.get(key, ()))
            self._stale.update(self.victim_key(user) for user in users if user is not None)

    def _build_victim(
        self, view: snapshot.Snapshot, read: holders.HolderIndex, key: VictimKey
    ) -> Victim | None:
        member_pods = (self._pods[holder] for holder in sorted(self._members.get(key, ())))
        pod_holders = tuple(
            holder for holder in map(read.holder, member_pods) if holder is not None
        )
        if not pod_holders:
            return None
        return Victim(
            key,
            pod_holders,
            max(holder.pod.priority for holder in pod_holders),
            tuple(self._gpu_uses(view, pod_holders)),
        )

    def _gpu_uses(
        self, view: snapshot.Snapshot, victim_holders: Iterable[holders.DeviceHolder]
    ) -> Iterator[GpuUse]:
        first: dict[ids.Key, list[float]] = {}
        for holder in victim_holders:
            started = start_time(holder.pod)
            for held_claim in holder.claims:
                first.setdefault(held_claim.claim, []).extend([] if started is None else [started])
        for key, starts in first.items():
            thousandths = gpu_usage.claims_usage(view, [self._claims[key]])
            if thousandths:
                yield GpuUse(thousandths, min(starts, default=None))

    def _invalidate_nodes(
        self, view: snapshot.Snapshot, affected: Sequence[holders.DeviceHolder]
    ) -> None:
        """Drop the cached nodes of these; all nodes if they hold network devices."""
        for holder in affected:
            self._node_cache.pop(holder.node, None)
        if not all(_is_local(view, key) for holder in affected for key in _pools(holder)):
            self._node_cache.clear()

    def _set_victim(self, view: snapshot.Snapshot, key: VictimKey, victim: Victim | None) -> None:
        previous = self._victims.pop(key, None)
        self._invalidate_nodes(
            view, [*(previous.pods if previous else ()), *(victim.pods if victim else ())]
        )
        for holder in previous.pods if previous else ():
            _drop(self._by_node, holder.node, key)
            for pool_key in _pools(holder):
                _drop(self._by_pool, pool_key, key)
        if victim is None:
            return
        self._victims[key] = victim
        for holder in victim.pods:
            self._by_node.setdefault(holder.node, set()).add(key)
            for pool_key in _pools(holder):
                self._by_pool.setdefault(pool_key, set()).add(key)
                self._pools[pool_key] = view.pools.get(pool_key)


def _is_local(view: snapshot.Snapshot, key: snapshot.PoolKey) -> bool:
    """Return whether a single node reaches a pool."""
    pool = view.pools.get(key)
    reached = {resource_slice.node for resource_slice in pool.slices} if pool else set()
    return len(reached) == 1 and None not in reached


def _pools(holder: holders.DeviceHolder) -> Iterator[snapshot.PoolKey]:
    for held_claim in holder.claims:
        for result in held_claim.results:
            yield result.device.driver, result.device.pool


def _drop(index: dict[_Key, set[_Value]], key: _Key, value: _Value) -> None:
    values = index.get(key)
    if values is not None:
        values.discard(value)
        if not values:
            del index[key]
