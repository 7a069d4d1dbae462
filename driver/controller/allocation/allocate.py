"""allocate: values in, a Placement or a NoFit out. Pure; `commit` is the only mutation (D4)."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from driver import ids, reasons
from driver.controller import view as cluster
from driver.controller.allocation import answers, asked, board, outcome, peers, rooms, settings
from driver.resources import pods

_MOST_SHAPES = 64


class Allocator:
    """Chooses a node and devices. It remembers what nodes answered: that changes no answer."""

    def __init__(self, deciding: settings.Settings) -> None:
        self._settings = deciding
        self._boards: OrderedDict[Hashable, board.Board] = OrderedDict()
        self._rooms = rooms.Rooms()

    def decide(
        self, view: cluster.ClusterView, workload: outcome.Workload
    ) -> outcome.Placement | outcome.NoFit:
        """A node with devices for a pod's open claims."""
        wants = asked.wants(view, workload.open)
        if isinstance(wants, outcome.NoFit):
            return wants
        found = self._board(workload)
        verdicts = self._settings.rules.of(view, workload)
        self._rooms.renew(view)
        question = answers.Question(view, self._rooms, workload, wants, self._settings, verdicts)
        told = None if peers.tells_uuids(view, workload.open, wants) else found.told
        found.renew(view, lambda name: answers.ask(question, view.nodes[name], told))
        best = found.best(workload.avoid)
        while best is not None and best.borrowed:
            node = view.nodes[best.candidate.node]
            found.put(node.name, answers.ask(question, node))
            best = found.best(workload.avoid)
        if best is not None:
            why = self._settings.ranking.explain(best.candidate)
            return outcome.Placement(best.candidate.node, best.picks, why, best.steps)
        return outcome.NoFit(nodes={**found.refusals(), **_avoided(workload, found)})

    def _board(self, workload: outcome.Workload) -> board.Board:
        """Workloads that no node can tell apart share a board."""
        if workload.settled:
            return board.Board(_rank)
        shape = _shape(workload)
        known = self._boards.get(shape)
        if known is None:
            known = self._boards[shape] = board.Board(_rank)
        self._boards.move_to_end(shape)
        if len(self._boards) > _MOST_SHAPES:
            self._boards.popitem(last=False)
        return known


def allocate(
    view: cluster.ClusterView, workload: outcome.Workload, deciding: settings.Settings
) -> outcome.Placement | outcome.NoFit:
    """Choose a node and devices for a pod's open claims, without remembering anything."""
    return Allocator(deciding).decide(view, workload)


def _avoided(
    workload: outcome.Workload, found: board.Board
) -> dict[outcome.Refusal, Sequence[ids.NodeName]]:
    """Nodes that would do, were they not to be left out."""
    out: dict[outcome.Refusal, list[ids.NodeName]] = {}
    for name, words in sorted(workload.avoid.items()):
        if found.fits(name):
            refusal = outcome.Refusal(reasons.Reason.NODE_BACKED_OFF, words)
            out.setdefault(refusal, []).append(name)
    return dict(out)


def _shape(workload: outcome.Workload) -> Hashable:
    """All of a workload that a node's answer depends on."""
    pod = workload.pod
    named = {entry.claim: entry.name for entry in pod.claims}
    asked_as = tuple((claim.spec, named.get(claim.name)) for claim in workload.open)
    return pod.namespace, asked_as, _of_pod(pod)


def _of_pod(pod: pods.Pod) -> Hashable:
    return (
        tuple(sorted(pod.node_selector.items())),
        pod.affinity,
        tuple((one.key, one.operator, one.value, one.effect) for one in pod.tolerations),
        tuple(sorted(pod.requests.items())),
        pod.host_ports,
        pod.volume_claims,
        pod.containers,
    )


def _rank(fit: answers.Fit) -> board.Rank:
    """Alternatives that are preferred, scores in order, fewest free, lowest name (D6)."""
    candidate = fit.candidate
    worse = tuple(-score for score in fit.scores)
    return fit.preferred, worse, candidate.before.idle, candidate.node
