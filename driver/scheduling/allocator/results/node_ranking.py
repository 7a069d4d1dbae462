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
    """Ranking for one signature.

    Rejections are explained and grouped when they are asked for.
    """

    def __init__(self) -> None:
        self._revision = -1
        self._fits: dict[ids.NodeName, node_result.Fit] = {}
        self._rejected: dict[ids.NodeName, allocator_types.NodeRejection] = {}
        self._explained: dict[ids.NodeName, allocator_types.NodeRejection] = {}
        self._by_rejection: dict[allocator_types.NodeRejection, dict[ids.NodeName, None]] = {}
        self._sorted: dict[allocator_types.NodeRejection, tuple[ids.NodeName, ...]] = {}
        self._unexplained: dict[ids.NodeName, None] = {}
        self._heap: list[Rank] = []

    @property
    def heap_size(self) -> int:
        """Number of heap entries, including outdated ones."""
        return len(self._heap)

    def refresh(self, view: snapshot.Snapshot, evaluate: EvaluateNode) -> None:
        """Evaluate the nodes that changed since the last call."""
        changes = view.changed_since(self._revision)
        current = view.nodes
        if changes is None:
            changed = {*current, *self._fits, *self._rejected}
            self._revision = view.revision
        else:
            self._revision, names = changes
            changed = {*names}
        for name in sorted(changed):
            self.set_result(name, evaluate(name) if name in current else None)

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

    def rejections(
        self, explain: EvaluateNode
    ) -> dict[allocator_types.NodeRejection, tuple[ids.NodeName, ...]]:
        """Return nodes by rejection, sorted by name; `explain` evaluates those that are PENDING."""
        groups: dict[int, dict[ids.NodeName, None]] = {}
        for name in self._unexplained:
            rejection = self._rejected[name]
            if rejection is node_result.PENDING:
                rejection = _explained(explain(name))
            self._explained[name] = rejection
            names = groups.get(id(rejection))  # most nodes share the object: no hash of it
            if names is None:
                names = groups[id(rejection)] = self._by_rejection.setdefault(rejection, {})
                self._sorted.pop(rejection, None)
            names[name] = None
        self._unexplained.clear()
        for rejection, names in self._by_rejection.items():
            if rejection not in self._sorted:
                self._sorted[rejection] = tuple(sorted(names))
        return dict(sorted(self._sorted.items(), key=lambda item: item[1]))

    def set_result(self, name: ids.NodeName, result: node_result.NodeResult) -> None:
        """Set the result of a node."""
        if isinstance(result, node_result.Fit):
            previous = self._fits.get(name)
            self._fits[name] = result
            if previous is None:
                self._drop_rejection(name)
            elif previous is result or previous.rank_key == result.rank_key:
                return  # its entry in the heap is still valid
            heapq.heappush(self._heap, (result.rank_key, name))
            if len(self._heap) > 2 * len(self._fits) + _SPARE:
                self._heap = [(fit.rank_key, name) for name, fit in self._fits.items()]
                heapq.heapify(self._heap)
            return
        if self._fits.pop(name, None) is None:
            self._drop_rejection(name)
        if result is not None:
            self._rejected[name] = result
            self._unexplained[name] = None

    def _drop_rejection(self, name: ids.NodeName) -> None:
        if self._rejected.pop(name, None) is None:
            return
        explained = self._explained.pop(name, None)
        if explained is None:
            del self._unexplained[name]
            return
        names = self._by_rejection[explained]
        del names[name]
        self._sorted.pop(explained, None)
        if not names:
            del self._by_rejection[explained]


def _explained(result: node_result.NodeResult) -> allocator_types.NodeRejection:
    """Return the rejection of a node that was PENDING."""
    if not isinstance(result, allocator_types.NodeRejection):
        raise TypeError(f"a node that was rejected is evaluated as {result}")
    return result
