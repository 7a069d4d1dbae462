"""allocate: values in, a Placement or a NoFit out. Pure; `commit` is the only mutation (D4)."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from driver import ids, reasons
from driver.resources import quantities
from driver.resources.core import pods
from driver.scheduling.allocator import node_score, requests, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import node_signature, workload_signature
from driver.scheduling.allocator.node_filter import domain_filters
from driver.scheduling.allocator.policies import policy_selector, ranking
from driver.scheduling.allocator.results import node_ranking, node_result, result_cache
from driver.scheduling.snapshot import snapshot

T = TypeVar("T")
_LEAST_BOARDS, _MOST_BOARDS = 64, 256
"""Shapes of workloads of which it is remembered what nodes answered."""
_MOST_CONSIDERED = 3
"""Nodes that a decision tells of, the best ones."""
_MOST_ANSWERS = 1 << 19
"""Of all nodes to all shapes: what is remembered is bounded, whatever the cluster's size."""


class Allocator:
    """Chooses a node and devices. It remembers what nodes answered: that changes no answer."""

    def __init__(self, deciding: settings.Settings) -> None:
        self._settings = deciding
        self._boards: OrderedDict[Hashable, node_ranking.Board] = OrderedDict()
        self._recall: result_cache.Recall | None = None
        self._rooms = node_capacity.Rooms()
        self._judges = policy_selector.Judges(deciding.ranking)

    @property
    def remembered(self) -> int:
        """Of how many shapes of workloads it remembers the answers."""
        return len(self._boards)

    def decide(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> allocator_types.Placement | allocator_types.NoFit:
        """A node with devices for a pod's open claims."""
        wants = requests.wants(view, workload.open)
        if isinstance(wants, allocator_types.NoFit):
            return wants
        judge = self._judges.of(view, wants)
        if isinstance(judge, allocator_types.NoFit):
            return judge
        found = self._board(view, workload, judge)
        if self._rooms.renew(view) or self._recall is None:
            self._recall = result_cache.Recall(view)
        deciding = replace(self._settings, ranking=judge)
        verdicts = deciding.rules.of(view, workload)
        question = node_result.Question(view, self._rooms, workload, wants, deciding, verdicts)
        alike = not node_signature.tells_uuids(view, workload.open, wants)
        told = self._recall.of(workload_signature.of_devices(workload), judge) if alike else None
        found.renew(view, lambda name: node_result.ask(question, view.nodes[name], told))
        beyond = None if workload.bound else domain_filters.of(view, workload)
        refused = None if beyond is None else lambda name: beyond.refusal(view.nodes[name])
        best = found.best(_MOST_CONSIDERED, workload.avoid, refused)
        if not best:
            return allocator_types.NoFit(
                nodes={**found.refusals(), **_left_out(workload, found, refused)}
            )
        wishes = node_score.of(view, workload)
        if wishes is not None:
            equals = found.equals(best, workload.avoid, refused)
            best = _preferred(found, best, wishes.choice(equals))
        name, fit = best[0]
        picks = node_result.picks(question, view.nodes[name], fit)
        why = _why(judge, *(one for _, one in best[:2]))
        considered = tuple(_considered(judge, *one) for one in best)
        return allocator_types.Placement(name, picks, why, fit.steps, considered)

    def _board(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload, judge: ranking.Ranking
    ) -> node_ranking.Board:
        """Workloads that no node can tell apart share a board."""
        if workload.settled:
            return node_ranking.Board()
        most = max(_MOST_ANSWERS // max(len(view.nodes), 1), _LEAST_BOARDS)
        most = min(most, _MOST_BOARDS)
        key = workload_signature.of_node(workload), judge, _apart(view, workload.pod)
        return _remembered(self._boards, key, node_ranking.Board, most)


def _preferred(
    answered: node_ranking.Board,
    best: Sequence[tuple[ids.NodeName, node_result.Fit]],
    name: ids.NodeName,
) -> list[tuple[ids.NodeName, node_result.Fit]]:
    """The best nodes with one before the others."""
    rest = [ranked for ranked in best if ranked[0] != name]
    return [(name, answered.fit(name)), *rest][:_MOST_CONSIDERED]


def _apart(view: snapshot.Snapshot, pod: pods.Pod) -> Hashable:
    """The state beyond nodes and shapes that a node's answer depends on."""
    volumes = view.storage.revision if pod.volume_claims else None
    return volumes, domain_filters.standing(view.population, pod)


def _remembered(
    known: OrderedDict[Hashable, T], key: Hashable, make: Callable[[], T], most: int
) -> T:
    """The value of a key, made where there is none; the keys used last stay."""
    found = known.get(key)
    if found is None:
        found = known[key] = make()
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
    return found


def allocate(
    view: snapshot.Snapshot, workload: allocator_types.Workload, deciding: settings.Settings
) -> allocator_types.Placement | allocator_types.NoFit:
    """Choose a node and devices for a pod's open claims, without remembering anything."""
    return Allocator(deciding).decide(view, workload)


def _considered(
    judge: ranking.Ranking, name: ids.NodeName, fit: node_result.Fit
) -> allocator_types.Considered:
    preferred, memory, *_ = fit.standing
    return allocator_types.Considered(name, judge.named(fit.scores), preferred, memory)


def _why(judge: ranking.Ranking, fit: node_result.Fit, rival: node_result.Fit | None = None) -> str:
    """Why a node was preferred to the next best one."""
    if rival is not None and fit.memory < rival.memory:
        return f"{quantities.of_bytes(fit.memory).text} of GPU memory, the least that does"
    return judge.why(fit.candidate, fit.scores, rival.scores if rival else None)


def _left_out(
    workload: allocator_types.Workload,
    answered: node_ranking.Board,
    refused: node_ranking.Refused | None,
) -> dict[allocator_types.Refusal, Sequence[ids.NodeName]]:
    """Nodes that would do by themselves, but are avoided, or refused for what others have."""
    out: dict[allocator_types.Refusal, list[ids.NodeName]] = {}
    for name in answered.names:
        words = workload.avoid.get(name)
        refusal = refused(name) if refused is not None else None
        if words is not None:
            refusal = allocator_types.Refusal(reasons.Reason.NODE_BACKED_OFF, words)
        if refusal is not None:
            out.setdefault(refusal, []).append(name)
    return dict(out)
