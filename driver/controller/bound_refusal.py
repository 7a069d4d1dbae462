"""Refusal of a pod that is bound away from its claims: by its own node alone (ADR 18). Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from driver import ids, reasons
from driver.controller import advising, bound
from driver.controller import view as cluster
from driver.controller.allocation import allocate, outcome, ownership, settings, words
from driver.controller.allocation.whatif import nearest, tenants
from driver.controller.reservations import without
from driver.resources import claims, pods

_OURS = frozenset({ownership.Ownership.OURS, ownership.Ownership.SHARED})
"""kube-scheduler allocates nothing for a pod that is bound, whatever devices would do as well."""
_FITS = "its devices are free there, and the controller allocates them"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The `answer` of the pod's own node in a `text`, with the nearest fit there.

    `fits`: its devices are free there, and nothing is known that keeps them from the pod.
    """

    answer: outcome.NoFit
    text: str
    near: nearest.Nearest | None = None
    fits: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes refusals of pods by what is known of the cluster now."""

    view: cluster.ClusterView
    deciding: settings.Settings
    find_claim: tenants.FindClaim
    find_pod: tenants.FindPod
    owners: ownership.Owners

    def refusal(self, pod: pods.Pod) -> Refusal | None:
        """None where the pod is not bound, has what it asks for, or its claims are not ours."""
        held = cluster.claims_of(pod, self.find_claim)
        if held is None or pod.node is None:
            return None
        node = self.view.nodes.get(pod.node)
        match bound.state(pod, ours(self.view, self.owners, held), node):
            case bound.Whole():
                return None
            case _ if node is None:
                return _blocked(reasons.Reason.NODE_NOT_FOUND, bound.unknown_node(pod))
            case bound.Open() as due:
                return self._on(pod.node, outcome.Workload(pod, due.open, due.settled, bound=True))
            case (bound.Astray() | bound.Blocked()) as due:
                return _away(pod, bound.elsewhere(due))

    def _on(self, node: ids.NodeName, workload: outcome.Workload) -> Refusal:
        pod, view = workload.pod, without.Without(self.view, (), [node])
        answer = allocate.allocate(view, workload, self.deciding)
        if isinstance(answer, outcome.Placement):
            return replace(_away(pod, _FITS), fits=True)
        near = None
        if answer.blocker is None:
            # An adviser of its own: those of many pods remember what they found on all nodes.
            adviser = advising.Adviser(self.deciding, self.find_claim, self.find_pod)
            near = adviser.advise(view, workload, answer)
        near = replace(near, alone=True) if near is not None else None
        return Refusal(answer, bound.sentence(pod, words.on_one_node(answer)), near)


def ours(
    view: cluster.ClusterView, owners: ownership.Owners, held: Iterable[claims.Claim]
) -> Iterator[claims.Claim]:
    """Claims that are the controller's: to allocate, or allocated with its devices alone."""
    for claim in held:
        if claim.allocation is None:
            if owners.of(view, claim) in _OURS:
                yield claim
        elif cluster.all_ours(view, (result.device for result in claim.allocation.results)):
            yield claim


def _away(pod: pods.Pod, detail: str) -> Refusal:
    return _blocked(reasons.Reason.BOUND_AWAY, bound.sentence(pod, detail))


def _blocked(reason: reasons.Reason, detail: str) -> Refusal:
    return Refusal(outcome.NoFit(reason, detail), detail)
