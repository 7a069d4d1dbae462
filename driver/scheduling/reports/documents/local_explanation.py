"""Working out why a pod is nowhere, as the controller does, where its own answer is not at hand.

Pure. Queues, gangs and reservations are not weighed: that the controller alone can say.
"""

import functools

from driver import ids
from driver.resources.core import pods
from driver.scheduling.allocator import dra_allocator, ownership, policies, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.explain import explainer
from driver.scheduling.reports import bound_pod_refusal, model
from driver.scheduling.reports.documents import explanation
from driver.scheduling.snapshot import cluster_state, snapshot


class Working:
    """Called with a pod's key, it answers from objects as they were at a time (RFC 3339)."""

    def __init__(self, driver: str, caches: cluster_state.CachedObjects, at: str) -> None:
        self._driver = driver
        self._caches = caches
        self._at = at

    def __call__(self, pod: ids.Key) -> model.Explanation | None:
        """None for a pod that is not there, has its devices, or is kube-scheduler's to serve."""
        one = self._caches.pods.get(pod)
        found = snapshot.pod_claims(one, self._caches.claims.get) if one else None
        if one is None or found is None:
            return None
        if one.node is not None:
            return self._of_bound(one) if self._caches.nodes else None
        unmet = tuple(claim for claim in found if claim.allocation is None)
        mine = ownership.OwnershipResolver().managed_claims(self._view, one, unmet)
        if isinstance(mine, allocator_types.Unschedulable):
            return explanation.of(mine, self._at)
        if not mine:
            return None
        settled = tuple(claim for claim in found if claim.allocation is not None)
        return self._answer(allocator_types.Workload(one, mine, settled))

    def _of_bound(self, pod: pods.Pod) -> model.Explanation | None:
        find_claim, find_pod = self._caches.claims.get, self._caches.pods.get
        owners = ownership.OwnershipResolver()
        reader = bound_pod_refusal.Reader(self._view, self._deciding, find_claim, find_pod, owners)
        refused = reader.refusal(pod)
        if refused is None:
            return None
        document = explanation.of(refused.answer, self._at, refused.near)
        return document.model_copy(update={"message": refused.text})

    def _answer(self, workload: allocator_types.Workload) -> model.Explanation:
        deciding = self._deciding
        answer = dra_allocator.Allocator(deciding).decide(self._view, workload)
        near = None
        if isinstance(answer, allocator_types.Unschedulable) and answer.blocker is None:
            adviser = explainer.FitExplainer(
                deciding, self._caches.claims.get, self._caches.pods.get
            )
            near = adviser.explain(self._view, workload, answer)
        return explanation.of(answer, self._at, near)

    @functools.cached_property
    def _view(self) -> cluster_state.ClusterState:
        return cluster_state.build(self._driver, self._caches)

    @functools.cached_property
    def _deciding(self) -> settings.Settings:
        judge = ranking.parse_policies(",".join(policies.DEFAULT))
        return settings.Settings(judge, device_filter.ControllerRules(self._driver))
