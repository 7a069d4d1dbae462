"""What nodes told to shapes of workloads, as much as a cluster of that size is worth. Pure."""

from collections import OrderedDict
from collections.abc import Hashable

from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

_MAX_SHAPES = 256
_MIN_RESULTS, _RESULT_FACTOR = 256, 64
"""In all, for each node: some 5 KiB each."""


class ResultCache:
    """The answers to the shapes that were asked for last; they hold until a pool changes."""

    def __init__(self, view: snapshot.Snapshot) -> None:
        self._results: OrderedDict[Hashable, node_result.SignatureResults] = OrderedDict()
        self._options = node_result.DeviceOptionsCache.for_cluster(view)
        self._max_results = max(_RESULT_FACTOR * len(view.nodes), _MIN_RESULTS)

    def get(self, shape: Hashable, judge: Hashable = None) -> node_result.SignatureResults:
        """Of workloads that no device can tell apart; whoever judges, devices allow the same."""
        key = shape, judge
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = node_result.SignatureResults(shape, self._options)
        self._results.move_to_end(key)
        while len(self._results) > _MAX_SHAPES or self._size > self._max_results:
            self._results.popitem(last=False)
        return found

    @property
    def _size(self) -> int:
        return sum(one.size for one in self._results.values())
