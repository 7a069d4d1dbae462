"""What nodes told to shapes of workloads, as much as a cluster of that size is worth. Pure."""

from collections import OrderedDict
from collections.abc import Hashable

from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

_MOST_SHAPES = 256
_LEAST_ANSWERS, _TIMES = 256, 64
"""In all, for each node: some 5 KiB each."""


class Recall:
    """The answers to the shapes that were asked for last; they hold until a pool changes."""

    def __init__(self, view: snapshot.Snapshot) -> None:
        self._told: OrderedDict[Hashable, node_result.Told] = OrderedDict()
        self._chances = node_result.Chances.for_cluster(view)
        self._most = max(_TIMES * len(view.nodes), _LEAST_ANSWERS)

    def of(self, shape: Hashable, judge: Hashable = None) -> node_result.Told:
        """Of workloads that no device can tell apart; whoever judges, devices allow the same."""
        key = shape, judge
        found = self._told.get(key)
        if found is None:
            found = self._told[key] = node_result.Told(shape, self._chances)
        self._told.move_to_end(key)
        while len(self._told) > _MOST_SHAPES or self._size > self._most:
            self._told.popitem(last=False)
        return found

    @property
    def _size(self) -> int:
        return sum(one.size for one in self._told.values())
