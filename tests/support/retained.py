"""Counts what a graph of objects holds: to show that what has gone leaves nothing."""

import gc
import types
from collections import Counter, deque
from collections.abc import Iterable

_CONTAINERS = (dict, set, list, deque)
_SKIPPED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def entries(roots: Iterable[object], skipped: Iterable[object] = ()) -> Counter[str]:
    """Return the number of entries in the containers of each class's instances.

    The graph is what is reachable from `roots` without `skipped`, classes, modules and functions.
    A container in a container counts for the instance that holds the outermost.
    """
    seen = {id(item) for item in skipped}
    pending: list[tuple[object, str]] = [(root, type(root).__name__) for root in roots]
    counts = Counter[str]()
    while pending:
        item, owner = pending.pop()
        if id(item) in seen or isinstance(item, _SKIPPED):
            continue
        seen.add(id(item))
        if isinstance(item, _CONTAINERS):
            counts[owner] += len(item)
        elif type(item).__module__.startswith("driver."):
            owner = type(item).__qualname__
        pending += [(referent, owner) for referent in gc.get_referents(item)]
    return counts
