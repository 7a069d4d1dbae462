"""ResourceSlices by pool, with the taints of rules, and the pools that each node reaches. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import pools, slices, taint_rules
from driver.scheduling.snapshot import snapshot

ALL_NODES = ids.NodeName("")
"""Location of a pool that is not local to one node."""
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _LazyPools(Mapping[snapshot.PoolKey, pools.Pool]):
    """Pools, each computed on first access."""

    def __init__(self, index: "PoolIndex") -> None:
        self._index = index

    def __getitem__(self, key: snapshot.PoolKey) -> pools.Pool:
        return self._index.pool(key)

    def __iter__(self) -> Iterator[snapshot.PoolKey]:
        return self._index.pool_keys()

    def __len__(self) -> int:
        return sum(1 for _ in self._index.pool_keys())


class PoolIndex:
    """Index of slices by pool, and of pools by node."""

    def __init__(self) -> None:
        self._slices: dict[str, slices.Slice] = {}
        self._members: dict[snapshot.PoolKey, dict[str, slices.Slice]] = {}
        self._rules: dict[str, taint_rules.TaintRule] = {}
        self._rules_by_pool: dict[str | None, dict[str, taint_rules.TaintRule]] = {}
        self._pools: dict[snapshot.PoolKey, pools.Pool] = {}
        self._node_pools: dict[ids.NodeName, set[snapshot.PoolKey]] = {}
        self._network_pools: set[snapshot.PoolKey] = set()

    def get_slice(self, name: str) -> slices.Slice | None:
        """Return a slice by its name, as it was published."""
        return self._slices.get(name)

    def set_slice(self, name: str, new: slices.Slice | None) -> None:
        """Set or delete a slice."""
        old = self._slices.pop(name, None)
        if old is not None:
            key = old.driver, old.pool
            self._unindex(key)
            _remove(self._members, key, name)
            self._index(key)
        if new is not None:
            self._slices[name] = new
            key = new.driver, new.pool
            self._unindex(key)
            self._members.setdefault(key, {})[name] = new
            self._index(key)

    def set_taint_rule(self, name: str, rule: taint_rules.TaintRule | None) -> None:
        """Set or delete a rule."""
        previous = self._rules.pop(name, None)
        if previous is not None:
            _remove(self._rules_by_pool, previous.pool, name)
        if rule is not None:
            self._rules[name] = rule
            self._rules_by_pool.setdefault(rule.pool, {})[name] = rule
        for key in self.tainted_pools(previous) | self.tainted_pools(rule):
            self._pools.pop(key, None)

    def get_taint_rule(self, name: str) -> taint_rules.TaintRule | None:
        """Return a rule by its name."""
        return self._rules.get(name)

    def tainted_pools(self, rule: taint_rules.TaintRule | None) -> set[snapshot.PoolKey]:
        """Return the pools whose devices a rule may taint."""
        if rule is None or not rule.selects:
            return set()
        if rule.driver is not None and rule.pool is not None:
            key = rule.driver, rule.pool
            return {key} if self._members.get(key) else set()
        return {
            (driver, pool)
            for driver, pool in self.pool_keys()
            if rule.driver in (None, driver) and rule.pool in (None, pool)
        }

    def pool_nodes(self, key: snapshot.PoolKey) -> Sequence[ids.NodeName]:
        """Return the nodes that a pool's slices are local to; `ALL_NODES` if one is not."""
        return [member.node or ALL_NODES for member in self._members.get(key, {}).values()]

    def pool_keys(self) -> Iterator[snapshot.PoolKey]:
        """Yield every pool that has a slice."""
        return (key for key, members in self._members.items() if members)

    def all_pools(self) -> Mapping[snapshot.PoolKey, pools.Pool]:
        """Every pool."""
        return _LazyPools(self)

    def reachable_pools(self, node: nodes.Node) -> tuple[pools.NodePool, ...]:
        """Return what a node reaches, by driver and pool; those with binding conditions last."""
        keys = self._node_pools.get(node.name, set()) | self._network_pools
        shares = (pools.node_share(self.pool(key), node) for key in sorted(keys))
        reachable = [share for share in shares if share is not None]
        return tuple(sorted(reachable, key=lambda share: share.pool.has_binding_conditions))

    def pool(self, key: snapshot.PoolKey) -> pools.Pool:
        """Return the newest generation of a pool; raise KeyError if it has no slice."""
        if key not in self._pools:
            members = self._members[key].values()
            if not members:
                raise KeyError(key)
            rules = (
                *self._rules_by_pool.get(None, {}).values(),
                *self._rules_by_pool.get(key[1], {}).values(),
            )
            self._pools[key] = pools.newest_generation([*taint_rules.apply_rules(members, rules)])
        return self._pools[key]

    def _unindex(self, key: snapshot.PoolKey) -> None:
        self._pools.pop(key, None)
        self._network_pools.discard(key)
        for name in self.pool_nodes(key):
            reached = self._node_pools.get(name)
            if reached is not None:
                reached.discard(key)
                if not reached:
                    del self._node_pools[name]

    def _index(self, key: snapshot.PoolKey) -> None:
        for name in self.pool_nodes(key):
            if name == ALL_NODES:
                self._network_pools.add(key)
            else:
                self._node_pools.setdefault(name, set()).add(key)


def _remove(index: dict[_Key, dict[str, _Value]], key: _Key, name: str) -> None:
    """Remove an entry, and the mapping of its key if it was the last there."""
    del index[key][name]
    if not index[key]:
        del index[key]
