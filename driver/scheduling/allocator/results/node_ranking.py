"""The answers of all nodes to one shape of workload, the best one first. Pure.

Only nodes that changed are asked again: of thousands, a placement changes one.
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
"""Ranks that hold no more may stay: only those before the best ones are met, and go."""
EvaluateNode = Callable[[ids.NodeName], node_result.NodeResult]
RejectNode = Callable[[ids.NodeName], allocator_types.NodeRejection | None]


class NodeRanking:
    """Of one shape."""

    def __init__(self) -> None:
        self._revision = -1
        self._fits: dict[ids.NodeName, node_result.Fit] = {}
        self._rejections: dict[ids.NodeName, allocator_types.NodeRejection] = {}
        self._by_rejection: dict[allocator_types.NodeRejection, dict[ids.NodeName, None]] = {}
        self._heap: list[Rank] = []

    @property
    def heap_size(self) -> int:
        """How many it keeps, also such as hold no more."""
        return len(self._heap)

    def refresh(self, view: snapshot.Snapshot, ask: EvaluateNode) -> None:
        """Ask the nodes that changed since the last time."""
        found = view.changed_since(self._revision)
        if found is None:
            names = {*view.nodes, *self._fits, *self._rejections}
            self._revision = view.revision
        else:
            self._revision, changed = found
            names = {*changed}
        for name in sorted(names):
            self.set_result(name, ask(name) if name in view.nodes else None)

    def best(
        self, most: int, avoid: Mapping[ids.NodeName, str], refused: RejectNode | None = None
    ) -> list[tuple[ids.NodeName, node_result.Fit]]:
        """So many nodes at most, those of the lowest ranks that are not to be avoided or refused.

        What `refused` says of a node may depend on other nodes: it is asked anew each time.
        """
        aside: list[Rank] = []
        found: dict[ids.NodeName, node_result.Fit] = {}
        seen: set[ids.NodeName] = set()
        while self._heap and len(found) < most:
            rank = heapq.heappop(self._heap)
            standing, name = rank
            fit = self._fits.get(name)
            if fit is not None and fit.rank_key == standing and name not in seen:
                aside.append(rank)
                seen.add(name)
                if name not in avoid and (refused is None or refused(name) is None):
                    found[name] = fit
        for rank in aside:
            heapq.heappush(self._heap, rank)
        return [*found.items()]

    def tied(
        self,
        most: Sequence[tuple[ids.NodeName, node_result.Fit]],
        avoid: Mapping[ids.NodeName, str],
        refused: RejectNode | None = None,
    ) -> list[ids.NodeName]:
        """Every node that stands like the first of the best ones."""
        standing = most[0][1].rank_key
        return [
            name
            for name, fit in sorted(self._fits.items())
            if fit.rank_key == standing
            and name not in avoid
            and (refused is None or refused(name) is None)
        ]

    @property
    def feasible_nodes(self) -> list[ids.NodeName]:
        """The nodes that do, by name."""
        return sorted(self._fits)

    def fit(self, name: ids.NodeName) -> node_result.Fit:
        """The answer of a node that does."""
        return self._fits[name]

    def is_feasible(self, name: ids.NodeName) -> bool:
        """Whether a node does."""
        return name in self._fits

    def rejections(self) -> dict[allocator_types.NodeRejection, tuple[ids.NodeName, ...]]:
        """Why nodes do not do, those that lack the same together, by name."""
        found = {refusal: tuple(sorted(names)) for refusal, names in self._by_rejection.items()}
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def set_result(self, name: ids.NodeName, answer: node_result.NodeResult) -> None:
        """Take a node's answer."""
        self._fits.pop(name, None)
        before = self._rejections.pop(name, None)
        if before is not None:
            del self._by_rejection[before][name]
            if not self._by_rejection[before]:
                del self._by_rejection[before]
        if isinstance(answer, node_result.Fit):
            self._fits[name] = answer
            heapq.heappush(self._heap, (answer.rank_key, name))
            if len(self._heap) > 2 * len(self._fits) + _SPARE:
                self._heap = [(fit.rank_key, name) for name, fit in self._fits.items()]
                heapq.heapify(self._heap)
        elif answer is not None:
            self._rejections[name] = answer
            self._by_rejection.setdefault(answer, {})[name] = None
