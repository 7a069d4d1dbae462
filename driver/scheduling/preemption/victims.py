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

UnitKey = tuple[str, str]
"""`("pod", "namespace/name")` or `("gang", "namespace/gang")`."""
_POD, _GANG = "pod", "gang"
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Stake:
    """GPUs of a claim, in thousandths of one, and since when: Unix seconds, None: not known."""

    thousandths: int
    since: float | None


@dataclass(frozen=True, slots=True)
class Unit:
    """A pod, or all pods of a gang that have something: they go together or not at all.

    `people` are they, over all their nodes; `priority` is the highest of theirs. Of a claim that
    several of them have, the stake counts once, from the first of them on.
    """

    key: UnitKey
    people: tuple[holders.Tenant, ...]
    priority: int
    stakes: tuple[Stake, ...] = ()

    @property
    def name(self) -> str:
        """`namespace/name` of the pod or the gang."""
        return self.key[1]

    @property
    def words(self) -> str:
        """`pod team/a`, `gang team/g (4 pods)`."""
        kind, name = self.key
        return f"pod {name}" if kind == _POD else f"gang {name} ({len(self.people)} pods)"

    @property
    def thousandths(self) -> int:
        """The GPUs that it has, in thousandths of one."""
        return sum(one.thousandths for one in self.stakes)

    def lost(self, now: float) -> int:
        """What its going throws away: thousandths of a GPU times whole seconds. `now` is Unix."""
        lost = 0
        for one in self.stakes:
            if one.since is not None and one.since < now:
                lost += one.thousandths * int(now - one.since)
        return lost


def key_of(pod: pods.Pod) -> UnitKey:
    """The unit that a pod belongs to."""
    return (_GANG, f"{pod.namespace}/{pod.gang}") if pod.gang else (_POD, pod.key)


def moment(text: str) -> float | None:
    """RFC 3339 as Unix seconds; None where it cannot be read."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None


def since(pod: pods.Pod) -> float | None:
    """When a pod started, else when it was made."""
    started = moment(pod.started)
    return moment(pod.created) if started is None else started


class Book:
    """The units there are, fed by `put_*` (None: the object is gone) in any order."""

    def __init__(self) -> None:
        self._pods: dict[ids.Key, pods.Pod] = {}
        self._claims: dict[ids.Key, claims.Claim] = {}
        self._users: dict[ids.Key, set[ids.Key]] = {}
        self._members: dict[UnitKey, set[ids.Key]] = {}
        self._units: dict[UnitKey, Unit] = {}
        self._on: dict[ids.NodeName, set[UnitKey]] = {}
        self._in: dict[snapshot.PoolKey, set[UnitKey]] = {}
        self._stale: set[UnitKey] = set()
        self._there: dict[ids.NodeName, tuple[Unit, ...]] = {}
        self._pools: dict[snapshot.PoolKey, pools.Pool | None] = {}
        self._world = -1

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        before = self._pods.pop(key, None)
        for version in (before, pod):
            self._concern(version.claim_keys if version else ())
        if before is not None:
            self._stale.add(key_of(before))
            _drop(self._members, key_of(before), key)
            for one in before.claim_keys:
                _drop(self._users, one, key)
        if pod is not None:
            self._pods[key] = pod
            self._stale.add(key_of(pod))
            self._members.setdefault(key_of(pod), set()).add(key)
            for one in pod.claim_keys:
                self._users.setdefault(one, set()).add(key)

    def set_claim(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """A claim came, changed or went."""
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim
        self._concern([key])

    def on(self, view: snapshot.Snapshot, node: nodes.Node) -> Sequence[Unit]:
        """Those that have something of a node, or a device that it reaches; by name.

        The same object as long as they are the same.
        """
        self.renew(view)
        found = self._there.get(node.name)
        if found is None:
            keys = set(self._on.get(node.name, ()))
            for share in view.reachable_pools(node.name):
                keys |= self._in.get((share.pool.driver, share.pool.name), set())
            found = self._there[node.name] = tuple(self._units[key] for key in sorted(keys))
        return found

    def all(self, view: snapshot.Snapshot) -> Mapping[UnitKey, Unit]:
        """Every unit."""
        self.renew(view)
        return self._units

    def renew(self, view: snapshot.Snapshot) -> None:
        """Look again at what changed."""
        if not self._stale and view.generation == self._world:
            return
        if view.generation != self._world:
            self._world = view.generation
            self._there.clear()
            for key, before in self._pools.items():
                if view.pools.get(key) is not before:
                    self._stale |= self._in.get(key, set())
        if self._stale:
            read = holders.Tenants(view, self._claims.get, self._pods.get)
            for one in self._stale:
                self._put(view, one, self._made(view, read, one))
            self._stale.clear()

    def _concern(self, keys: Iterable[ids.Key]) -> None:
        """All that have these claims."""
        for key in keys:
            users = (self._pods.get(one) for one in self._users.get(key, ()))
            self._stale.update(key_of(one) for one in users if one is not None)

    def _made(self, view: snapshot.Snapshot, read: holders.Tenants, key: UnitKey) -> Unit | None:
        found = (self._pods[one] for one in sorted(self._members.get(key, ())))
        people = tuple(one for one in map(read.tenant, found) if one is not None)
        if not people:
            return None
        return Unit(
            key,
            people,
            max(one.pod.priority for one in people),
            tuple(self._stakes(view, people)),
        )

    def _stakes(self, view: snapshot.Snapshot, people: Iterable[holders.Tenant]) -> Iterator[Stake]:
        first: dict[ids.Key, list[float]] = {}
        for one in people:
            started = since(one.pod)
            for lease in one.leases:
                first.setdefault(lease.claim, []).extend([] if started is None else [started])
        for key, found in first.items():
            thousandths = gpu_usage.of(view, [self._claims[key]])
            if thousandths:
                yield Stake(thousandths, min(found, default=None))

    def _touched(self, view: snapshot.Snapshot, people: Sequence[holders.Tenant]) -> None:
        """Look again at the nodes of these, and at all where they have what several reach."""
        for one in people:
            self._there.pop(one.node, None)
        if not all(_is_local(view, key) for one in people for key in _pools(one)):
            self._there.clear()

    def _put(self, view: snapshot.Snapshot, key: UnitKey, unit: Unit | None) -> None:
        before = self._units.pop(key, None)
        self._touched(view, [*(before.people if before else ()), *(unit.people if unit else ())])
        for one in before.people if before else ():
            _drop(self._on, one.node, key)
            for pool_key in _pools(one):
                _drop(self._in, pool_key, key)
        if unit is None:
            return
        self._units[key] = unit
        for one in unit.people:
            self._on.setdefault(one.node, set()).add(key)
            for pool_key in _pools(one):
                self._in.setdefault(pool_key, set()).add(key)
                self._pools[pool_key] = view.pools.get(pool_key)


def _is_local(view: snapshot.Snapshot, key: snapshot.PoolKey) -> bool:
    """Whether one node alone reaches a pool."""
    of = view.pools.get(key)
    reached = {one.node for one in of.slices} if of else set()
    return len(reached) == 1 and None not in reached


def _pools(tenant: holders.Tenant) -> Iterator[snapshot.PoolKey]:
    for lease in tenant.leases:
        for result in lease.results:
            yield result.device.driver, result.device.pool


def _drop(found: dict[_Key, set[_Value]], key: _Key, value: _Value) -> None:
    there = found.get(key)
    if there is not None:
        there.discard(value)
        if not there:
            del found[key]
