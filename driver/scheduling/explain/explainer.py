"""Rate-limited explanation of unschedulable pods by the nearest fit, cached by signature. Pure.

It is computed when there is something new to report, not in every cycle. The steps of one
explanation are bounded (`nearest_fit.MAX_STEPS`), and so are those of many: every refusal earns
some, so that a small part of the scheduler's time is spent on explanations, however many pods are
pending.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from driver import ids
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.allocator.node_filter import domain_filters
from driver.scheduling.explain import holders, messages, nearest_fit, step_budget
from driver.scheduling.snapshot import snapshot

STEPS_PER_REFUSAL = 50
"""Steps earned per refusal: about 1 ms."""
MAX_SAVED_STEPS = 10_000
"""Maximum of saved steps: about 200 ms."""
_MAX_CACHED = 256


class FitExplainer:
    """Caches its results while the snapshot does not change."""

    def __init__(
        self,
        allocator_settings: settings.Settings,
        find_claim: holders.FindClaim,
        find_pod: holders.FindPod,
    ) -> None:
        self._deciding = allocator_settings
        self._find_claim = find_claim
        self._find_pod = find_pod
        self._revision = -1
        self._cache: dict[object, nearest_fit.NearestFit | None] = {}
        self._saved_steps = MAX_SAVED_STEPS

    def can_explain(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> bool:
        """Return whether the result is cached, or there are steps left to compute it."""
        self._saved_steps = min(self._saved_steps + STEPS_PER_REFUSAL, MAX_SAVED_STEPS)
        self._refresh(view)
        return (
            self._saved_steps >= nearest_fit.MAX_STEPS or _cache_key(view, workload) in self._cache
        )

    def explain(
        self,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
        refused: allocator_types.Unschedulable,
    ) -> nearest_fit.NearestFit | None:
        """Return the nearest fit of an unschedulable workload; None if there is nothing to add."""
        self._refresh(view)
        key = _cache_key(view, workload)
        if key is None:
            return self._find(view, workload, refused)
        if key not in self._cache:
            self._cache[key] = self._find(view, workload, refused)
        return self._cache[key]

    def _refresh(self, view: snapshot.Snapshot) -> None:
        if self._revision != view.revision or len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
            self._revision = view.revision

    def _find(
        self,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
        refused: allocator_types.Unschedulable,
    ) -> nearest_fit.NearestFit | None:
        holder_index = holders.HolderIndex(view, self._find_claim, self._find_pod)
        budget = step_budget.StepBudget(nearest_fit.MAX_STEPS)
        nearest = nearest_fit.find_nearest_fit(
            view, workload, refused, holder_index, self._deciding, budget
        )
        self._saved_steps -= budget.steps
        return nearest


def _cache_key(view: snapshot.Snapshot, workload: allocator_types.Workload) -> object | None:
    """Return a key equal for workloads that no node distinguishes; None: not cacheable."""
    if workload.allocated_claims or workload.avoided_nodes:
        return None
    return workload_signature.workload_signature(workload), domain_filters.pod_signature(
        view, workload.pod
    )


Result = allocator_types.Placement | allocator_types.Unschedulable


@dataclass(frozen=True, slots=True)
class Explanation:
    """The last result of a pod, at a `time` (RFC 3339), with the nearest fit if it is known."""

    pod: ids.Key
    time: str
    result: Result
    nearest: nearest_fit.NearestFit | None = None
    text: str = ""
    """Message of a refusal, with its additions."""

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        document: dict[str, Any] = {"pod": self.pod, "at": self.time}
        if isinstance(self.result, allocator_types.Placement):
            devices = [pick.device._asdict() for pick in self.result.assignments]
            document |= {"node": self.result.node, "devices": devices}
            return document | placement_document(self.result)
        near = {"nearest": nearest_document(self.nearest)} if self.nearest else {}
        return document | unschedulable_document(self.result) | near


def placement_document(placement: allocator_types.Placement) -> dict[str, Any]:
    """Return the explanation, and the best nodes, the chosen one first."""
    return {
        "why": placement.explanation,
        "considered": [
            {
                "node": scored_node.node,
                "scores": dict(scored_node.scores),
                **({"alternative": scored_node.alternative} if scored_node.alternative else {}),
                **({"memory": scored_node.memory} if scored_node.memory else {}),
            }
            for scored_node in placement.scored_nodes
        ],
    }


def unschedulable_document(unschedulable: allocator_types.Unschedulable) -> dict[str, Any]:
    """Return the blocker of every node, or nodes by rejection."""
    if unschedulable.blocker is not None:
        return {"reason": unschedulable.blocker.value, "detail": unschedulable.detail}
    return {"refusals": [*_rejection_documents(unschedulable)]}


def nearest_document(near: nearest_fit.NearestFit) -> dict[str, Any]:
    """Return the nearest fit. `ever` false: no node would fit even if it were empty."""
    return {
        "node": near.node,
        "summary": messages.nearest_fit_message(near),
        "ever": near.can_ever_fit,
        "leaving": [*near.leaving],
        "allSeen": near.is_exhaustive,
    }


def _rejection_documents(unschedulable: allocator_types.Unschedulable) -> Iterator[dict[str, Any]]:
    for rejection, names in unschedulable.rejections.items():
        yield {"nodes": [*names], **_rejection_document(rejection)}


def _rejection_document(rejection: allocator_types.NodeRejection) -> dict[str, Any]:
    if rejection.node_reason is not None:
        return {"reason": rejection.node_reason.value, "detail": rejection.detail}
    counted = {reason.value: count for reason, count in rejection.device_reasons}
    given_up = {"gaveUp": True} if rejection.budget_exceeded else {}
    return {"fits": rejection.fits, "wanted": rejection.requested, "devices": counted, **given_up}
