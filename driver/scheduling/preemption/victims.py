"""What goes together: a pod, or a whole gang. Pure.

A `Book` keeps the units of a cluster by changes, so that a plan reads those of the nodes that it
looks at and no others.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from driver import ids
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
    """A pod, or all pods of a gang that have something: they go together or not at all.

    `people` are they, over all their nodes; `priority` is the highest of theirs. Of a claim that
    several of them have, the stake counts once, from the first of them on.
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
    def description(self) -> str:
        """`pod team/a`, `gang team/g (4 pods)`."""
        kind, name = self.key
        return f"pod {name}" if kind == _POD else f"gang {name} ({len(self.pods)} pods)"

    @property
    def thousandths(self) -> int:
        """The GPUs that it has, in thousandths of one."""
        return sum(one.thousandths for one in self.gpu_uses)

    def lost_at(self, now: float) -> int:
        """What its going throws away: thousandths of a GPU times whole seconds. `now` is Unix."""
        lost = 0
        for one in self.gpu_uses:
            if one.since is not None and one.since < now:
                lost += one.thousandths * int(now - one.since)
        return lost


def victim_key(pod: pods.Pod) -> VictimKey:
    """The unit that a pod belongs to."""
    return (_GANG, f"{pod.namespace}/{pod.gang}") if pod.gang else (_POD, pod.key)


def parse_time(text: str) -> float | None:
    """RFC 3339 as Unix seconds; None where it cannot be read."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None


def start_time(pod: pods.Pod) -> float | None:
    """When a pod started, else when it was made."""
    started = parse_time(pod.started)
    return parse_time(pod.created) if started is None else started


class VictimIndex:
    """The units there are, fed by `put_*` (None: the object is gone) in any order."""

    def __init__(self) -> None:
        self._pods: dict[ids.Key, pods.Pod] = {}
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

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        before = self._pods.pop(key, None)
        for version in (before, pod):
            self._mark_stale(version.claim_keys if version else ())
        if before is not None:
            self._stale.add(victim_key(before))
            _drop(self._members, victim_key(before), key)
            for one in before.claim_keys:
                _drop(self._users, one, key)
        if pod is not None:
            self._pods[key] = pod
            self._stale.add(victim_key(pod))
            self._members.setdefault(victim_key(pod), set()).add(key)
            for one in pod.claim_keys:
                self._users.setdefault(one, set()).add(key)

    def set_claim(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """A claim came, changed or went."""
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim
        self._mark_stale([key])

    def node_victims(self, view: snapshot.Snapshot, node: nodes.Node) -> Sequence[Victim]:
        """Those that have something of a node, or a device that it reaches; by name.

        The same object as long as they are the same.
        """
        self.refresh(view)
        found = self._node_cache.get(node.name)
        if found is None:
            keys = set(self._by_node.get(node.name, ()))
            for share in view.reachable_pools(node.name):
                keys |= self._by_pool.get((share.pool.driver, share.pool.name), set())
            found = self._node_cache[node.name] = tuple(self._victims[key] for key in sorted(keys))
        return found

    def all_victims(self, view: snapshot.Snapshot) -> Mapping[VictimKey, Victim]:
        """Every unit."""
        self.refresh(view)
        return self._victims

    def refresh(self, view: snapshot.Snapshot) -> None:
        """Look again at what changed."""
        if not self._stale and view.generation == self._generation:
            return
        if view.generation != self._generation:
            self._generation = view.generation
            self._node_cache.clear()
            for key, before in self._pools.items():
                if view.pools.get(key) is not before:
                    self._stale |= self._by_pool.get(key, set())
        if self._stale:
            read = holders.HolderIndex(view, self._claims.get, self._pods.get)
            for one in self._stale:
                self._set_victim(view, one, self._build_victim(view, read, one))
            self._stale.clear()

    def _mark_stale(self, keys: Iterable[ids.Key]) -> None:
        """All that have these claims."""
        for key in keys:
            users = (self._pods.get(one) for one in self._users.get(key, ()))
            self._stale.update(victim_key(one) for one in users if one is not None)

    def _build_victim(
        self, view: snapshot.Snapshot, read: holders.HolderIndex, key: VictimKey
    ) -> Victim | None:
        found = (self._pods[one] for one in sorted(self._members.get(key, ())))
        people = tuple(one for one in map(read.holder, found) if one is not None)
        if not people:
            return None
        return Victim(
            key,
            people,
            max(one.pod.priority for one in people),
            tuple(self._gpu_uses(view, people)),
        )

    def _gpu_uses(
        self, view: snapshot.Snapshot, people: Iterable[holders.DeviceHolder]
    ) -> Iterator[GpuUse]:
        first: dict[ids.Key, list[float]] = {}
        for one in people:
            started = start_time(one.pod)
            for lease in one.claims:
                first.setdefault(lease.claim, []).extend([] if started is None else [started])
        for key, found in first.items():
            thousandths = gpu_usage.claims_usage(view, [self._claims[key]])
            if thousandths:
                yield GpuUse(thousandths, min(found, default=None))

    def _invalidate_nodes(
        self, view: snapshot.Snapshot, people: Sequence[holders.DeviceHolder]
    ) -> None:
        """Look again at the nodes of these, and at all where they have what several reach."""
        for one in people:
            self._node_cache.pop(one.node, None)
        if not all(_is_local(view, key) for one in people for key in _pools(one)):
            self._node_cache.clear()

    def _set_victim(self, view: snapshot.Snapshot, key: VictimKey, unit: Victim | None) -> None:
        before = self._victims.pop(key, None)
        self._invalidate_nodes(
            view, [*(before.pods if before else ()), *(unit.pods if unit else ())]
        )
        for one in before.pods if before else ():
            _drop(self._by_node, one.node, key)
            for pool_key in _pools(one):
                _drop(self._by_pool, pool_key, key)
        if unit is None:
            return
        self._victims[key] = unit
        for one in unit.pods:
            self._by_node.setdefault(one.node, set()).add(key)
            for pool_key in _pools(one):
                self._by_pool.setdefault(pool_key, set()).add(key)
                self._pools[pool_key] = view.pools.get(pool_key)


def _is_local(view: snapshot.Snapshot, key: snapshot.PoolKey) -> bool:
    """Whether one node alone reaches a pool."""
    of = view.pools.get(key)
    reached = {one.node for one in of.slices} if of else set()
    return len(reached) == 1 and None not in reached


def _pools(tenant: holders.DeviceHolder) -> Iterator[snapshot.PoolKey]:
    for lease in tenant.claims:
        for result in lease.results:
            yield result.device.driver, result.device.pool


def _drop(found: dict[_Key, set[_Value]], key: _Key, value: _Value) -> None:
    there = found.get(key)
    if there is not None:
        there.discard(value)
        if not there:
            del found[key]
