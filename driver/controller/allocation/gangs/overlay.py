"""A view with decisions on top that can be taken back: what is below is never touched. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from driver import ids
from driver.controller import changes, held, load
from driver.controller import view as cluster
from driver.resources import claims, classes, nodes, pool, selectors

_NOTHING = cluster.NodeUse()


class Overlay:
    """A ClusterView. What is below must stand still as long as this is used."""

    def __init__(self, below: cluster.ClusterView) -> None:
        self._below = below
        self._made: list[cluster.InFlight] = []
        self._held = held.Held()
        self._load = load.Load()
        self._use = dict(below.use)
        self._left: dict[cluster.PoolKey, cluster.Left] = {}
        self._changes = changes.Changes()

    def take(self, decision: cluster.InFlight) -> None:
        """Let a decision count: the last one, for `undo`."""
        self._made.append(decision)
        self._load.put_pod(decision.pod.key, decision.pod)
        self._load.fly(decision.pod, decision.node)
        concerned = [
            device for key, one in decision.made.items() for device in self._held.fly(key, one)
        ]
        self._changed(decision.node, concerned)

    def undo(self, count: int) -> None:
        """Take the last decisions back."""
        for _ in range(count):
            decision = self._made.pop()
            self._load.land(decision.pod)
            self._load.put_pod(decision.pod.key, None)
            concerned = [device for key in decision.made for device in self._held.land(key)]
            self._changed(decision.node, concerned)

    @property
    def driver(self) -> str:
        """Our driver's name."""
        return self._below.driver

    @property
    def nodes(self) -> Mapping[ids.NodeName, nodes.Node]:
        """Every node."""
        return self._below.nodes

    @property
    def classes(self) -> Mapping[str, classes.DeviceClass]:
        """Every DeviceClass."""
        return self._below.classes

    @property
    def use(self) -> Mapping[ids.NodeName, cluster.NodeUse]:
        """What pods take of the nodes that have any."""
        return MappingProxyType(self._use)

    @property
    def volumes(self) -> Mapping[ids.Key, selectors.NodeSelector]:
        """The nodes that reach a bound PersistentVolumeClaim's volume, where not all do."""
        return self._below.volumes

    @property
    def world(self) -> int:
        """Another number whenever a pool, a rule or a class changed."""
        return self._below.world

    @property
    def pools(self) -> Mapping[cluster.PoolKey, pool.Pool]:
        """Every pool, its newest generation."""
        return self._below.pools

    def holders(self, device: claims.DeviceId) -> Sequence[cluster.Holder]:
        """Who has a device; administrative access does not count."""
        found = self._held.of(device)
        below = self._below.holders(device)
        return tuple(sorted((*below, *found), key=lambda one: one.claim)) if found else below

    def used(self, of: pool.Pool) -> AbstractSet[str]:
        """The devices of a pool that somebody has, by name."""
        found = self._held.in_pool((of.driver, of.name))
        return self._below.used(of) | found if found else self._below.used(of)

    def shares(self, node: ids.NodeName) -> Sequence[pool.Share]:
        """What a node reaches of each pool, in the order in which devices are preferred."""
        return self._below.shares(node)

    def left(self, of: pool.Pool) -> cluster.Left:
        """What is left of a pool's counters (KEP-4815): a device in use is charged once."""
        key = (of.driver, of.name)
        ours = self._held.in_pool(key)
        if not ours:
            return self._below.left(of)
        if key not in self._left:
            drawn = [one for name in ours - self._below.used(of) for one in _drawn(of, name)]
            left = dict(self._below.left(of))
            for counter, amount in drawn:
                left[counter] -= amount
            self._left[key] = left
        return self._left[key]

    @property
    def mark(self) -> int:
        """Of now; `since` tells what changed after it."""
        return self._changes.mark

    def since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        """The mark of now, and the nodes for which something changed since an earlier mark."""
        return self._changes.since(mark)

    def _changed(self, node: ids.NodeName, devices: Iterable[claims.DeviceId]) -> None:
        self._weigh(node)
        self._changes.add([node])
        for key in {(device.driver, device.pool) for device in devices}:
            self._left.pop(key, None)
            if any(one.node != node for one in self._below.pools[key].slices):
                self._changes.forget()

    def _weigh(self, node: ids.NodeName) -> None:
        ours, below = self._load.use.get(node), self._below.use.get(node, _NOTHING)
        if ours is None:
            self._use.pop(node, None)
            if node in self._below.use:
                self._use[node] = below
            return
        total = dict(below.requests)
        for resource, amount in ours.requests.items():
            total[resource] = total.get(resource, 0) + amount
        count = below.count + ours.count
        self._use[node] = cluster.NodeUse(total, below.ports | ours.ports, count)


def _drawn(of: pool.Pool, name: str) -> list[tuple[pool.Counter, int]]:
    """What a device draws on the counters that its pool has."""
    return [one for one in pool.drawn(of.devices[name]) if one[0] in of.counters]
