"""Ranking of all nodes' results for one workload signature, best first. Pure.

Only changed nodes are evaluated again: of thousands, a placement changes one.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence

from driver import ids
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

Rank = tuple[node_result.RankKey, ids.NodeName]
"""Lower is better; of equals the lower name."""
_SPARE = 64
"""Outdated ranks that may stay: those before the best ones are dropped when met."""
EvaluateNode = Callable[[ids.NodeName], node_result.NodeResult]
RejectNode = Callable[[ids.NodeName], allocator_types.NodeRejection | None]


class NodeRanking:
    """Ranking for one signature."""

    def __init__(self) -> None:
        self._revision = -1
        self._fits: dict[ids.NodeName, node_result.Fit] = {}
        self._rejections: dict[ids.NodeName, allocator_types.NodeRejection] = {}
        self._by_rejection: dict[allocator_types.NodeRejection, dict[ids.NodeName, None]] = {}
        self._heap: list[Rank] = []

    @property
    def heap_size(self) -> int:
        """Number of heap entries, including outdated ones."""
        return len(self._heap)

    def refresh(self, view: snapshot.Snapshot, evaluate: EvaluateNode) -> None:
        """Evaluate the nodes that changed since the last call."""
        changes = view.changed_since(self._revision)
        if changes is None:
            names = {*view.nodes, *self._fits, *self._rejections}
            self._revision = view.revision
        else:
            self._revision, changed = changes
            names = {*changed}
        for name in sorted(names):
            self.set_result(name, evaluate(name) if name in view.nodes else None)

    def best(
        self, limit: int, avoid: Mapping[ids.NodeName, str], reject: RejectNode | None = None
    ) -> list[tuple[ids.NodeName, node_result.Fit]]:
        """Return at most `limit` nodes, lowest rank first, without avoided or rejected ones.

        The `reject` check may depend on other nodes: it is evaluated each time.
        """
        aside: list[Rank] = []
        fits: dict[ids.NodeName, node_result.Fit] = {}
        seen: set[ids.NodeName] = set()
        while self._heap and len(fits) < limit:
            rank = heapq.heappop(self._heap)
            standing, name = rank
            fit = self._fits.get(name)
            if fit is not None and fit.rank_key == standing and name not in seen:
                aside.append(rank)
                seen.add(name)
                if name not in avoid and (reject is None or reject(name) is None):
                    fits[name] = fit
        for rank in aside:
            heapq.heappush(self._heap, rank)
        return [*fits.items()]

    def tied(
        self,
        best: Sequence[tuple[ids.NodeName, node_result.Fit]],
        avoid: Mapping[ids.NodeName, str],
        reject: RejectNode | None = None,
    ) -> list[ids.NodeName]:
        """Return every node with the rank of the best one."""
        standing = best[0][1].rank_key
        return [
            name
            for name, fit in sorted(self._fits.items())
            if fit.rank_key == standing
            and name not in avoid
            and (reject is None or reject(name) is None)
        ]

    @property
    def feasible_nodes(self) -> list[ids.NodeName]:
        """Feasible nodes, by name."""
        return sorted(self._fits)

    def fit(self, name: ids.NodeName) -> node_result.Fit:
        """Return the result of a feasible node."""
        return self._fits[name]

    def is_feasible(self, name: ids.NodeName) -> bool:
        """Return whether a node is feasible."""
        return name in self._fits

    def rejections(self) -> dict[allocator_types.NodeRejection, tuple[ids.NodeName, ...]]:
        """Return nodes by rejection, sorted by name."""
        grouped = {
            rejection: tuple(sorted(names)) for rejection, names in self._by_rejection.items()
        }
        return dict(sorted(grouped.items(), key=lambda item: item[1]))

    def set_result(self, name: ids.NodeName, result: node_result.NodeResult) -> None:
        """Set the result of a node."""
        self._fits.pop(name, None)
        previous = self._rejections.pop(name, None)
        if previous is not None:
            del self._by_rejection[previous][name]
            if not self._by_rejection[previous]:
                del self._by_rejection[previous]
        if isinstance(result, node_result.Fit):
            self._fits[name] = result
            heapq.heappush(self._heap, (result.rank_key, name))
            if len(self._heap) > 2 * len(self._fits) + _SPARE:
                self._heap = [(fit.rank_key, name) for name, fit in self._fits.items()]
                heapq.heapify(self._heap)
        elif result is not None:
            self._rejections[name] = result
            self._by_rejection.setdefault(result, {})[name] = None
