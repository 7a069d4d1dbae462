"""What the controller adds to a refusal: the nearest fit, found once for pods that are alike. Pure.

It is asked when there is something new to tell, not at every turn; steps are bounded
(`whatif.nearest.STEPS`), so the decider is never held up for long.
"""

from driver.controller import view as cluster
from driver.controller.allocation import outcome, settings, shapes
from driver.controller.allocation.whatif import nearest, tenants

_MOST = 256


class Adviser:
    """Remembers its answers for as long as the view stands still."""

    def __init__(
        self,
        deciding: settings.Settings,
        find_claim: tenants.FindClaim,
        find_pod: tenants.FindPod,
    ) -> None:
        self._deciding = deciding
        self._find_claim = find_claim
        self._find_pod = find_pod
        self._mark = -1
        self._known: dict[object, nearest.Nearest | None] = {}

    def advise(
        self, view: cluster.ClusterView, workload: outcome.Workload, refused: outcome.NoFit
    ) -> nearest.Nearest | None:
        """Where a workload that was refused comes nearest; None where there is nothing to add."""
        if refused.blocker is not None:
            return None
        if self._mark != view.mark or len(self._known) >= _MOST:
            self._known.clear()
            self._mark = view.mark
        if workload.settled or workload.avoid:
            return self._find(view, workload, refused)
        key = shapes.of(workload)
        if key not in self._known:
            self._known[key] = self._find(view, workload, refused)
        return self._known[key]

    def _find(
        self, view: cluster.ClusterView, workload: outcome.Workload, refused: outcome.NoFit
    ) -> nearest.Nearest | None:
        people = tenants.Tenants(view, self._find_claim, self._find_pod)
        return nearest.of(view, workload, refused, people, self._deciding)
