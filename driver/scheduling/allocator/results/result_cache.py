"""Bounded cache of per-node results, keyed by workload signature. Pure."""

from collections import OrderedDict
from collections.abc import Hashable

from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

_MAX_SHAPES = 256
_MIN_RESULTS, _RESULT_FACTOR = 256, 64
"""Bounds of all cached results, and per node: about 5 KiB each."""


class ResultCache:
    """Results of the signatures used last; valid until a pool changes."""

    def __init__(self, view: snapshot.Snapshot) -> None:
        self._results: OrderedDict[Hashable, node_result.SignatureResults] = OrderedDict()
        self._options = node_result.DeviceOptionsCache.for_cluster(view)
        self._max_results = max(_RESULT_FACTOR * len(view.nodes), _MIN_RESULTS)

    def get(self, shape: Hashable, policies: Hashable = None) -> node_result.SignatureResults:
        """Return the results of a device signature; policies share the device options."""
        key = shape, policies
        results = self._results.get(key)
        if results is None:
            results = self._results[key] = node_result.SignatureResults(shape, self._options)
        self._results.move_to_end(key)
        while len(self._results) > _MAX_SHAPES or self._size > self._max_results:
            self._results.popitem(last=False)
        return results

    @property
    def _size(self) -> int:
        return sum(result.size for result in self._results.values())
