"""Local explanation of a pending pod, as the controller computes it, without its own result.

Pure. Queues, gangs and reservations are not considered: only the controller can.
"""

import functools

from driver import ids
from driver.resources.core import pods
from driver.resources.dra import taint_rules
from driver.scheduling.allocator import dra_allocator, ownership, policies, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.explain import explainer
from driver.scheduling.reports import bound_pod_refusal, model
from driver.scheduling.reports.documents import explanation
from driver.scheduling.snapshot import cluster_state, snapshot


class LocalExplainer:
    """Lookup of explanations, from objects as they were at a time (RFC 3339)."""

    def __init__(self, driver: str, caches: cluster_state.CachedObjects, timestamp: str) -> None:
        self._driver = driver
        self._caches = caches
        self._at = timestamp

    def __call__(self, pod: ids.Key) -> model.Explanation | None:
        """Return the explanation; None if the pod is missing, has devices, or is not ours."""
        subject = self._caches.pods.get(pod)
        pod_claims = snapshot.pod_claims(subject, self._caches.claims.get) if subject else None
        if subject is None or pod_claims is None:
            return None
        if subject.node is not None:
            return self._explain_bound(subject) if self._caches.nodes else None
        unmet = tuple(claim for claim in pod_claims if claim.allocation is None)
        split = ownership.OwnershipResolver().split_claims(self._view, subject, unmet)
        if isinstance(split, allocator_types.Unschedulable):
            return explanation.explanation_document(split, self._at)
        if not split:
            return None
        settled = tuple(claim for claim in pod_claims if claim.allocation is not None)
        return self._explain(split.workload(subject, settled))

    def _explain_bound(self, pod: pods.Pod) -> model.Explanation | None:
        find_claim, find_pod = self._caches.claims.get, self._caches.pods.get
        owners = ownership.OwnershipResolver()
        reader = bound_pod_refusal.RefusalReader(
            self._view, self._allocator_settings, find_claim, find_pod, owners
        )
        refused = reader.refusal(pod)
        if refused is None:
            return None
        document = explanation.explanation_document(refused.result, self._at, refused.nearest)
        return document.model_copy(update={"message": refused.text})

    def _explain(self, workload: allocator_types.Workload) -> model.Explanation:
        allocator_settings = self._allocator_settings
        result = dra_allocator.Allocator(allocator_settings).decide(self._view, workload)
        nearest = None
        if isinstance(result, allocator_types.Unschedulable) and result.blocker is None:
            fit_explainer = explainer.FitExplainer(
                allocator_settings, self._caches.claims.get, self._caches.pods.get
            )
            nearest = fit_explainer.explain(self._view, workload, result)
        return explanation.explanation_document(result, self._at, nearest)

    @functools.cached_property
    def _view(self) -> cluster_state.ClusterState:
        managed = taint_rules.managed_drivers(self._caches.rules.values())
        return cluster_state.build(self._driver, self._caches, other_drivers=managed)

    @functools.cached_property
    def _allocator_settings(self) -> settings.Settings:
        policy_chain = ranking.parse_policies(",".join(policies.DEFAULT))
        return settings.Settings(policy_chain, device_filter.ControllerRules(self._driver))
