"""The most that an expression may cost: the API server takes none above LIMIT. Pure.

As cel-go's checker/cost.go estimates it and Kubernetes' functions do (`calls`). What is within the
limit goes through little enough for the engine, which counts no cost itself.
"""

from typing import Final

from driver import errors
from driver.resources.cel import checked_expr
from driver.resources.cel.cost import calls
from driver.resources.cel.cost.sizes import MOST, Entry, Local, Size, Sizes, max_of, merge_entries

LIMIT: Final = 1_000_000
"""CELSelectorExpressionMaxCost of resource.k8s.io/v1."""
LONGEST_MADE: Final = 1000
"""The engine copies what it made so far at each item: a longer list would take it seconds."""
_LIST, _MAP, _MESSAGE = 10, 30, 40
_ACCUMULATORS: Final = frozenset({"__result__", "@result"})


def estimate_cost(tree: checked_expr.Tree) -> int:
    """The most that a tree may cost; sizes.MOST where there is no bound.

    Raises:
        BadInput: a list is made that is too long for the engine.
    """
    return min(_Costs(tree).node_cost(tree.root), MOST)


def _all(sizes: list[Size]) -> Size:
    result = (MOST, 0) if sizes else (0, 0)
    for size in sizes:
        result = max_of(result, size)
    return result


class _Costs:
    def __init__(self, tree: checked_expr.Tree) -> None:
        self._tree = tree
        self._sizes = Sizes(tree)

    def node_cost(self, node: checked_expr.Node) -> int:  # noqa: PLR0911 - one for each kind of node
        """Return the maximum cost of a node, its children included."""
        match node:
            case checked_expr.Constant():
                return 0
            case checked_expr.Name():
                self._sizes.record_path(node)
                return 1 + ("." in node.name and self._sizes.node_path(node)[:1] == ("device",))
            case checked_expr.Select():
                return self._select(node)
            case checked_expr.Call():
                return self._call(node)
            case checked_expr.Items():
                return self._items(node)
            case checked_expr.Struct():
                return self._struct(node)
            case checked_expr.Loop():
                return self._bind(node) if node.is_bind else self._loop(node)

    def _select(self, node: checked_expr.Select) -> int:
        below = self.node_cost(node.operand)
        if node.test:
            return below
        operand = self._sizes.node_type(node.operand)
        named = bool(operand.map.ByteSize() or operand.message or operand.parameter)
        self._sizes.reach(node, (*self._sizes.node_path(node.operand), node.field))
        return below + (named or operand.HasField("map"))

    def _items(self, node: checked_expr.Items) -> int:
        cost = sum(self.node_cost(element) for element in node.elements)
        value = _all([self._sizes.bound(element) for element in node.elements])
        self._sizes.record_size(node, None, Entry(is_list=True, key=(1, 1), value=value))
        return cost + _LIST

    def _struct(self, node: checked_expr.Struct) -> int:
        keys = [entry.key for entry in node.entries if entry.key is not None]
        values = [entry.value for entry in node.entries]
        cost = sum(self.node_cost(entry) for entry in (*keys, *values))
        if node.message:
            return cost + _MESSAGE
        key, value = (
            _all([self._sizes.bound(entry) for entry in message_type])
            for message_type in (keys, values)
        )
        self._sizes.record_size(node, None, Entry(is_list=False, key=key, value=value))
        return cost + _MAP

    def _call(self, node: checked_expr.Call) -> int:
        sizes = self._sizes
        costs = [self.node_cost(argument) for argument in node.arguments]
        if node.function == "dyn":
            sizes.record_size(
                node, sizes.node_size(node.arguments[0]), sizes.within(node.arguments[0])
            )
            return costs[0] + 1
        overloads = self._tree.overloads.get(node.id, ())
        if not overloads:
            return 0
        cost = 0 if node.target is None else self.node_cost(node.target)
        most, result = 0, None
        for overload in overloads:
            argument, size = self._overload(node, overload, costs)
            most = max(most, argument)
            if size is not None:
                result = size if result is None else max_of(result, size)
            if overload in {"index_list", "index_map"}:
                result = self._index(node, "@items" if overload == "index_list" else "@values")
            if result is None:
                result = sizes.node_size(node)
        sizes.record_size(node, result)
        return cost + most

    def _index(self, node: checked_expr.Call, step: str) -> Size | None:
        entry = self._sizes.within(node.arguments[0])
        self._sizes.reach(node, (*self._sizes.node_path(node.arguments[0]), step))
        return None if entry is None else entry.value

    def _overload(
        self, node: checked_expr.Call, overload: str, costs: list[int]
    ) -> tuple[int, Size | None]:
        sizes = self._sizes
        if overload == "conditional":
            item, other = node.arguments[1:]
            sizes.record_size(node, None, merge_entries(sizes.within(item), sizes.within(other)))
            size = max_of(sizes.bound(item), sizes.bound(other))
            return costs[0] + max(costs[1:]), size
        if overload in {"logical_and", "logical_or"}:
            return sum(costs), None
        if overload == "add_list":
            item, other = node.arguments
            sizes.record_size(node, None, merge_entries(sizes.within(item), sizes.within(other)))
        cost, result = calls.estimate_call(sizes, node, overload)
        return cost + sum(costs), result

    def _bind(self, node: checked_expr.Loop) -> int:
        sizes = self._sizes
        cost = self.node_cost(node.range) + self.node_cost(node.initial)
        self._enter(node)
        cost += self.node_cost(node.result)
        sizes.record_size(node, sizes.node_size(node.result), sizes.within(node.result))
        sizes.leave(node.accumulator)
        return cost

    def _enter(self, node: checked_expr.Loop) -> None:
        sizes, start = self._sizes, node.initial
        local = Local(sizes.node_path(start), sizes.node_size(start), sizes.within(start))
        sizes.enter(node.accumulator, local)

    def _loop(self, node: checked_expr.Loop) -> int:
        sizes = self._sizes
        cost = self.node_cost(node.range) + self.node_cost(node.initial)
        self._enter(node)
        names = self._variables(node)
        step = self.node_cost(node.condition) + self.node_cost(node.step)
        for name in names:
            sizes.leave(name)
        cost += self.node_cost(node.result)
        sizes.leave(node.accumulator)
        through = sizes.bound(node.range)
        if isinstance(node.initial, checked_expr.Items) and LONGEST_MADE < through[1] < MOST:
            raise errors.BadInput(
                "selector", f"makes a list of up to {through[1]}", f"at most {LONGEST_MADE}"
            )
        cost += min(through[1] * step, MOST)
        if isinstance(node.initial, checked_expr.Constant):
            sizes.record_size(node, sizes.node_size(node.initial))
        elif isinstance(node.initial, checked_expr.Items | checked_expr.Struct):
            sizes.record_size(node, through, sizes.within(node.step))
        return cost

    def _variables(self, node: checked_expr.Loop) -> tuple[str, ...]:
        sizes = self._sizes
        within, path = sizes.within(node.range), sizes.node_path(node.range)
        listed = sizes.node_type(node.range).HasField("list") if within is None else within.is_list
        key = Local((*path, "@indices" if listed else "@keys"), within.key if within else None)
        value = Local((*path, "@items" if listed else "@values"), within.value if within else None)
        if node.second:
            sizes.enter(node.variable, key)
            sizes.enter(node.second, value)
            return node.variable, node.second
        sizes.enter(node.variable, value if listed else key)
        return (node.variable,)
