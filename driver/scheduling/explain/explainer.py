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

EARNED = 50
"""Steps that a refusal earns: about a millisecond."""
SAVED = 10_000
"""The most that is saved up: about a fifth of a second."""
_MOST = 256


class Adviser:
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
        self._mark = -1
        self._known: dict[object, nearest_fit.Nearest | None] = {}
        self._left = SAVED

    def affords(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> bool:
        """Whether it is known already, or there are steps left to look for it."""
        self._left = min(self._left + EARNED, SAVED)
        self._renew(view)
        return self._left >= nearest_fit.STEPS or _key(view, workload) in self._known

    def advise(
        self,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
        refused: allocator_types.Unschedulable,
    ) -> nearest_fit.Nearest | None:
        """Where a workload that was refused comes nearest; None where there is nothing to add."""
        self._renew(view)
        key = _key(view, workload)
        if key is None:
            return self._find(view, workload, refused)
        if key not in self._known:
            self._known[key] = self._find(view, workload, refused)
        return self._known[key]

    def _renew(self, view: snapshot.Snapshot) -> None:
        if self._mark != view.revision or len(self._known) >= _MOST:
            self._known.clear()
            self._mark = view.revision

    def _find(
        self,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
        refused: allocator_types.Unschedulable,
    ) -> nearest_fit.Nearest | None:
        people = holders.Tenants(view, self._find_claim, self._find_pod)
        meter = step_budget.Meter(nearest_fit.STEPS)
        found = nearest_fit.of(view, workload, refused, people, self._deciding, meter)
        self._left -= meter.steps
        return found


def _key(view: snapshot.Snapshot, workload: allocator_types.Workload) -> object | None:
    """The same for workloads that no node can tell apart; None for one that stands alone."""
    if workload.allocated_claims or workload.avoided_nodes:
        return None
    return workload_signature.workload_signature(workload), domain_filters.pod_signature(
        view, workload.pod
    )
