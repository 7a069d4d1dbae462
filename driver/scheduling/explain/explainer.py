"""Rate-limited explanation of unschedulable pods by the nearest fit, cached by signature. Pure.

It is computed when there is something new to report, not in every cycle. The steps of one
explanation are bounded (`nearest_fit.MAX_STEPS`), and so are those of many: every refusal earns
some, so that a small part of the scheduler's time is spent on explanations, however many pods are
pending.
"""

from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.equivalence import workload_signature
from driver.scheduling.allocator.node_filter import domain_filters
from driver.scheduling.explain import holders, nearest_fit, step_budget
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
