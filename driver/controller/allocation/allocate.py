"""allocate: values in, a Placement or a NoFit out. Pure; `commit` is the only mutation (D4)."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from driver import ids, reasons
from driver.controller import view as cluster
from driver.controller.allocation import (
    answers,
    asked,
    board,
    judges,
    outcome,
    peers,
    ranking,
    recall,
    rooms,
    settings,
    shapes,
)
from driver.controller.allocation.node_filter import domains, preferences
from driver.resources import pods, quantity

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
        self._boards: OrderedDict[Hashable, board.Board] = OrderedDict()
        self._recall: recall.Recall | None = None
        self._rooms = rooms.Rooms()
        self._judges = judges.Judges(deciding.ranking)

    @property
    def remembered(self) -> int:
        """Of how many shapes of workloads it remembers the answers."""
        return len(self._boards)

    def decide(
        self, view: cluster.ClusterView, workload: outcome.Workload
    ) -> outcome.Placement | outcome.NoFit:
        """A node with devices for a pod's open claims."""
        wants = asked.wants(view, workload.open)
        if isinstance(wants, outcome.NoFit):
            return wants
        judge = self._judges.of(view, wants)
        if isinstance(judge, outcome.NoFit):
            return judge
        found = self._board(view, workload, judge)
        if self._rooms.renew(view) or self._recall is None:
            self._recall = recall.Recall(view)
        deciding = replace(self._settings, ranking=judge)
        verdicts = deciding.rules.of(view, workload)
        question = answers.Question(view, self._rooms, workload, wants, deciding, verdicts)
        alike = not peers.tells_uuids(view, workload.open, wants)
        told = self._recall.of(shapes.of_devices(workload), judge) if alike else None
        found.renew(view, lambda name: answers.ask(question, view.nodes[name], told))
        beyond = None if workload.bound else domains.of(view, workload)
        refused = None if beyond is None else lambda name: beyond.refusal(view.nodes[name])
        best = found.best(_MOST_CONSIDERED, workload.avoid, refused)
        if not best:
            return outcome.NoFit(nodes={**found.refusals(), **_left_out(workload, found, refused)})
        wishes = preferences.of(view, workload)
        if wishes is not None:
            equals = found.equals(best, workload.avoid, refused)
            best = _preferred(found, best, wishes.choice(equals))
        name, fit = best[0]
        picks = answers.picks(question, view.nodes[name], fit)
        why = _why(judge, *(one for _, one in best[:2]))
        considered = tuple(_considered(judge, *one) for one in best)
        return outcome.Placement(name, picks, why, fit.steps, considered)

    def _board(
        self, view: cluster.ClusterView, workload: outcome.Workload, judge: ranking.Ranking
    ) -> board.Board:
        """Workloads that no node can tell apart share a board."""
        if workload.settled:
            return board.Board()
        most = max(_MOST_ANSWERS // max(len(view.nodes), 1), _LEAST_BOARDS)
        most = min(most, _MOST_BOARDS)
        key = shapes.of_node(workload), judge, _apart(view, workload.pod)
        return _remembered(self._boards, key, board.Board, most)


def _preferred(
    answered: board.Board, best: Sequence[tuple[ids.NodeName, answers.Fit]], name: ids.NodeName
) -> list[tuple[ids.NodeName, answers.Fit]]:
    """The best nodes with one before the others."""
    rest = [ranked for ranked in best if ranked[0] != name]
    return [(name, answered.fit(name)), *rest][:_MOST_CONSIDERED]


def _apart(view: cluster.ClusterView, pod: pods.Pod) -> Hashable:
    """The state beyond nodes and shapes that a node's answer depends on."""
    volumes = view.stored.mark if pod.volume_claims else None
    return volumes, domains.standing(view.population, pod)


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
    view: cluster.ClusterView, workload: outcome.Workload, deciding: settings.Settings
) -> outcome.Placement | outcome.NoFit:
    """Choose a node and devices for a pod's open claims, without remembering anything."""
    return Allocator(deciding).decide(view, workload)


def _considered(judge: ranking.Ranking, name: ids.NodeName, fit: answers.Fit) -> outcome.Considered:
    preferred, memory, *_ = fit.standing
    return outcome.Considered(name, judge.named(fit.scores), preferred, memory)


def _why(judge: ranking.Ranking, fit: answers.Fit, rival: answers.Fit | None = None) -> str:
    """Why a node was preferred to the next best one."""
    if rival is not None and fit.memory < rival.memory:
        return f"{quantity.of_bytes(fit.memory).text} of GPU memory, the least that does"
    return judge.why(fit.candidate, fit.scores, rival.scores if rival else None)


def _left_out(
    workload: outcome.Workload, answered: board.Board, refused: board.Refused | None
) -> dict[outcome.Refusal, Sequence[ids.NodeName]]:
    """Nodes that would do by themselves, but are avoided, or refused for what others have."""
    out: dict[outcome.Refusal, list[ids.NodeName]] = {}
    for name in answered.names:
        words = workload.avoid.get(name)
        refusal = refused(name) if refused is not None else None
        if words is not None:
            refusal = outcome.Refusal(reasons.Reason.NODE_BACKED_OFF, words)
        if refusal is not None:
            out.setdefault(refusal, []).append(name)
    return dict(out)
