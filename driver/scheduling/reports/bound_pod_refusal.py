"""Refusal of a pod that is bound away from its claims: by its own node alone (ADR 18). Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from driver import ids, reasons
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator, ownership, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer, holders, nearest_fit
from driver.scheduling.lifecycle import bound_pods
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot

_MANAGED = frozenset({ownership.Ownership.OURS, ownership.Ownership.SHARED})
"""kube-scheduler allocates nothing for a bound pod, whatever other devices match."""
_FREE_DEVICES = "its devices are free there, and the controller allocates them"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The result of the pod's own node in a `text`, with the nearest fit there.

    `has_free_devices`: its devices are free there, and nothing known keeps them from the pod.
    """

    result: allocator_types.Unschedulable
    text: str
    nearest: nearest_fit.NearestFit | None = None
    has_free_devices: bool = False


@dataclass(frozen=True, slots=True)
class RefusalReader:
    """Computes refusals of pods by the current cluster state."""

    view: snapshot.Snapshot
    allocator_settings: settings.Settings
    find_claim: holders.FindClaim
    find_pod: holders.FindPod
    ownership_resolver: ownership.OwnershipResolver

    def refusal(self, pod: pods.Pod) -> Refusal | None:
        """Return the refusal; None if the pod is not bound, has its devices, or is not ours."""
        pod_claims = snapshot.pod_claims(pod, self.find_claim)
        if pod_claims is None or pod.node is None:
            return None
        node = self.view.nodes.get(pod.node)
        match bound_pods.binding_state(
            pod, managed_claims(self.view, self.ownership_resolver, pod_claims), node
        ):
            case bound_pods.Consistent():
                return None
            case _ if node is None:
                return _blocked(reasons.Reason.NODE_NOT_FOUND, bound_pods.unknown_node_message(pod))
            case bound_pods.Unallocated() as due:
                return self._node_refusal(
                    pod.node,
                    allocator_types.Workload(
                        pod, due.open_claims, due.allocated_claims, is_bound=True
                    ),
                )
            case (bound_pods.Misplaced() | bound_pods.Blocked()) as due:
                return _bound_away(pod, bound_pods.misplaced_message(due))

    def _node_refusal(self, node: ids.NodeName, workload: allocator_types.Workload) -> Refusal:
        pod, view = workload.pod, reservation_overlay.WithoutReservations(self.view, (), [node])
        result = dra_allocator.allocate(view, workload, self.allocator_settings)
        if isinstance(result, allocator_types.Placement):
            return replace(_bound_away(pod, _FREE_DEVICES), has_free_devices=True)
        nearest = None
        if result.blocker is None:
            # A separate explainer: the shared one caches results for all nodes.
            fit_explainer = explainer.FitExplainer(
                self.allocator_settings, self.find_claim, self.find_pod
            )
            nearest = fit_explainer.explain(view, workload, result)
        nearest = replace(nearest, is_only_node=True) if nearest is not None else None
        return Refusal(
            result,
            bound_pods.bound_pod_message(pod, allocator_messages.unschedulable_on_node(result)),
            nearest,
        )


def managed_claims(
    view: snapshot.Snapshot, owners: ownership.OwnershipResolver, held: Iterable[claims.Claim]
) -> Iterator[claims.Claim]:
    """Yield claims that are the controller's: to allocate, or allocated with its devices alone."""
    for claim in held:
        if claim.allocation is None:
            if owners.ownership(view, claim) in _MANAGED:
                yield claim
        elif snapshot.all_managed(view, (result.device for result in claim.allocation.results)):
            yield claim


def _bound_away(pod: pods.Pod, detail: str) -> Refusal:
    return _blocked(
        reasons.Reason.POD_BOUND_TO_OTHER_NODE, bound_pods.bound_pod_message(pod, detail)
    )


def _blocked(reason: reasons.Reason, detail: str) -> Refusal:
    return Refusal(allocator_types.Unschedulable(reason, detail), detail)
