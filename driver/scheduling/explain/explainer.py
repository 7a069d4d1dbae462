"""What the controller adds to a refusal: the nearest fit, found once for pods that are alike. Pure.

It is looked for when there is something new to tell, not at every turn, and never for long: the
steps of one are bounded (`whatif.nearest.STEPS`), and so are those of many. Every refusal earns
some, so that of the decider's time a small part goes into advice, however many pods wait.
"""

from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.allocator.node_filter import domain_filters
from driver.scheduling.explain import holders, nearest_fit, step_budget
from driver.scheduling.snapshot import snapshot

STEPS_PER_REFUSAL = 50
"""Steps that a refusal earns: about a millisecond."""
MAX_SAVED_STEPS = 10_000
"""The most that is saved up: about a fifth of a second."""
_MAX_CACHED = 256


class FitExplainer:
    """Remembers its answers for as long as the view stands still."""

    def __init__(
        self,
        deciding: settings.Settings,
        find_claim: holders.FindClaim,
        find_pod: holders.FindPod,
    ) -> None:
        self._deciding = deciding
        self._find_claim = find_claim
        self._find_pod = find_pod
        self._revision = -1
        self._cache: dict[object, nearest_fit.NearestFit | None] = {}
        self._saved_steps = MAX_SAVED_STEPS

    def can_explain(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> bool:
        """Whether it is known already, or there are steps left to look for it."""
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
        """Where a workload that was refused comes nearest; None where there is nothing to add."""
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
        people = holders.HolderIndex(view, self._find_claim, self._find_pod)
        meter = step_budget.StepBudget(nearest_fit.MAX_STEPS)
        found = nearest_fit.find_nearest_fit(view, workload, refused, people, self._deciding, meter)
        self._saved_steps -= meter.steps
        return found


def _cache_key(view: snapshot.Snapshot, workload: allocator_types.Workload) -> object | None:
    """The same for workloads that no node can tell apart; None for one that stands alone."""
    if workload.allocated_claims or workload.avoided_nodes:
        return None
    return workload_signature.workload_signature(workload), domain_filters.pod_signature(
        view, workload.pod
    )
