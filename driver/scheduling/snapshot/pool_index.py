"""ResourceSlices by pool, with the taints of rules, and which nodes reach which pools. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import pools, slices, taint_rules
from driver.scheduling.snapshot import snapshot

ALL_NODES = ids.NodeName("")
"""Where a pool is found that is not local to one node."""


class _LazyPools(Mapping[snapshot.PoolKey, pools.Pool]):
    """Pools, each made when it is looked at."""

    def __init__(self, of: "PoolIndex") -> None:
        self._index = of

    def __getitem__(self, key: snapshot.PoolKey) -> pools.Pool:
        return self._index.pool(key)

    def __iter__(self) -> Iterator[snapshot.PoolKey]:
        return self._index.pool_keys()

    def __len__(self) -> int:
        return sum(1 for _ in self._index.pool_keys())


class PoolIndex:
    """Slices by pool, and who reaches which."""

    def __init__(self) -> None:
        self._slices: dict[str, slices.Slice] = {}
        self._members: dict[snapshot.PoolKey, dict[str, slices.Slice]] = {}
        self._rules: dict[str, taint_rules.TaintRule] = {}
        self._pools: dict[snapshot.PoolKey, pools.Pool] = {}
        self._node_pools: dict[ids.NodeName, set[snapshot.PoolKey]] = {}
        self._network_pools: set[snapshot.PoolKey] = set()

    def get_slice(self, name: str) -> slices.Slice | None:
        """A slice by its name, as it was published."""
        return self._slices.get(name)

    def set_slice(self, name: str, new: slices.Slice | None) -> None:
        """A slice came, changed or went."""
        old = self._slices.pop(name, None)
        if old is not None:
            key = old.driver, old.pool
            self._unindex(key)
            del self._members[key][name]
            self._index(key)
        if new is not None:
            self._slices[name] = new
            key = new.driver, new.pool
            self._unindex(key)
            self._members.setdefault(key, {})[name] = new
            self._index(key)

    def set_taint_rule(self, name: str, rule: taint_rules.TaintRule | None) -> None:
        """A rule came, changed or went: any device may be tainted otherwise."""
        if rule is None:
            self._rules.pop(name, None)
        else:
            self._rules[name] = rule
        self._pools.clear()

    def pool_nodes(self, key: snapshot.PoolKey) -> Sequence[ids.NodeName]:
        """The nodes that a pool's slices are local to; `EVERYWHERE` where one is not."""
        return [one.node or ALL_NODES for one in self._members.get(key, {}).values()]

    def pool_keys(self) -> Iterator[snapshot.PoolKey]:
        """Every pool that has a slice."""
        return (key for key, members in self._members.items() if members)

    def all_pools(self) -> Mapping[snapshot.PoolKey, pools.Pool]:
        """Every pool."""
        return _LazyPools(self)

    def reachable_pools(self, node: nodes.Node) -> tuple[pools.Share, ...]:
        """What a node reaches, by driver and pool; those that make binding wait come last."""
        keys = self._node_pools.get(node.name, set()) | self._network_pools
        found = (pools.share(self.pool(key), node) for key in sorted(keys))
        there = [one for one in found if one is not None]
        return tuple(sorted(there, key=lambda one: one.pool.binds))

    def pool(self, key: snapshot.PoolKey) -> pools.Pool:
        """The newest generation of a pool; KeyError where it has no slice."""
        if key not in self._pools:
            members = self._members[key].values()
            if not members:
                raise KeyError(key)
            self._pools[key] = pools.newest([*taint_rules.applied(members, self._rules.values())])
        return self._pools[key]

    def _unindex(self, key: snapshot.PoolKey) -> None:
        self._pools.pop(key, None)
        self._network_pools.discard(key)
        for name in self.pool_nodes(key):
            self._node_pools.get(name, set()).discard(key)

    def _index(self, key: snapshot.PoolKey) -> None:
        for name in self.pool_nodes(key):
            if name == ALL_NODES:
                self._network_pools.add(key)
            else:
                self._node_pools.setdefault(name, set()).add(key)
