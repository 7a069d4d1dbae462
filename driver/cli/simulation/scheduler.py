"""One pod after another is decided for, as the controller does, and what is decided stays. Pure.

A pod is bound at once; its claims are written as kube-scheduler leaves them then, without a hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims, taint_rules
from driver.scheduling.allocator import allocation_result, dra_allocator, ownership, settings
from driver.scheduling.allocator import messages as allocator_messages
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.lifecycle import actions
from driver.scheduling.snapshot import allocation_hold, cluster_state, snapshot

STAMP = "2026-01-01T00:00:00Z"
"""When everything was allocated, where nobody asks."""
_NO_PATIENCE = actions.BindTimeouts()
_NOWHERE: Mapping[ids.NodeName, str] = {}


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod has a node; `allocations` are the claims that were allocated for it.

    Without any, its claims had been allocated before, or it has none. `others` are claims that
    kube-scheduler has yet to allocate.
    """

    pod: pods.Pod
    placement: allocator_types.Placement
    allocations: tuple[claims.Claim, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Not the controller's to decide, in words; what asks no device does not matter."""

    why: str
    matters: bool = True


Answer = BoundPod | allocator_types.Unschedulable | Skipped


class SimulatedScheduler:
    """Owns a picture. Pods without a claim are placed too with `every_pod`, by the same policies.

    kube-scheduler chooses for those; `every_pod` stands for it where their CPU matters.
    """

    def __init__(
        self,
        view: cluster_state.ClusterState,
        deciding: settings.Settings,
        *,
        every_pod: bool = False,
    ) -> None:
        self.view = view
        self._allocator = dra_allocator.Allocator(deciding)
        self._owners = ownership.OwnershipResolver()
        self._claims: dict[ids.Key, claims.Claim] = {}
        self._every_pod = every_pod

    @classmethod
    def from_caches(
        cls,
        driver: str,
        caches: cluster_state.CachedObjects,
        deciding: settings.Settings,
        *,
        every_pod: bool = False,
    ) -> Self:
        """Return a scheduler for the cluster as it is."""
        managed = taint_rules.managed_drivers(caches.rules.values())
        view = cluster_state.build(driver, caches, other_drivers=managed)
        simulated_scheduler = cls(view, deciding, every_pod=every_pod)
        simulated_scheduler._claims.update(caches.claims)
        return simulated_scheduler

    def add(self, pod_claims: Iterable[claims.Claim]) -> None:
        """Claims are made."""
        for claim in pod_claims:
            self._put(claim)

    def drop(self, pod_claims: Iterable[claims.Claim]) -> None:
        """Claims are deleted."""
        for claim in pod_claims:
            self._claims.pop(claim.key, None)
            self.view.set_claim(claim.key, None)

    def pod_claims(self, pod: pods.Pod) -> tuple[claims.Claim, ...]:
        """The claims of a pod that are there, as they are now."""
        return tuple(self._claims[key] for key in pod.claim_keys if key in self._claims)

    def decide(self, pod: pods.Pod, avoid: Mapping[ids.NodeName, str] = _NOWHERE) -> Answer:
        """Decide for a pod whose claims are made, and write it down; `avoid` with words, why."""
        pod_claims = snapshot.pod_claims(pod, self._claims.get)
        if pod_claims is None:
            return Skipped(f"waits for {_missing(pod, self._claims)}")
        workload = self._workload(pod, pod_claims)
        if not isinstance(workload, allocator_types.Workload):
            return workload
        answer = self._allocator.decide(self.view, replace(workload, avoided_nodes=avoid))
        if isinstance(answer, allocator_types.Unschedulable):
            return answer
        current = {claim.key for claim in (*workload.open_claims, *workload.allocated_claims)}
        others = tuple(claim.name for claim in pod_claims if claim.key not in current)
        return replace(self._bind(workload, answer), others=others)

    def remove_pod(self, bound: BoundPod) -> None:
        """A pod ends: claims that nobody else uses are free again."""
        pod = bound.pod
        for claim in self.pod_claims(pod):
            rest = tuple(consumer for consumer in claim.consumers if consumer.uid != pod.uid)
            allocation = claim.allocation if rest else None
            self._put(replace(claim, consumers=rest, allocation=allocation))
        self.view.set_pod(pod.key, None)

    def _workload(
        self, pod: pods.Pod, pod_claims: tuple[claims.Claim, ...]
    ) -> allocator_types.Workload | allocator_types.Unschedulable | Skipped:
        if not pod_claims:
            return self._without_claims(pod)
        match actions.pod_action(pod, pod_claims, None, 0.0, _NO_PATIENCE):
            case actions.Decide(open_claims=open_claims, allocated_claims=settled):
                return self._asked(pod, open_claims, settled)
            case _ if why := _not_now(pod, pod_claims):
                return Skipped(why)
            case _:
                return allocator_types.Workload(pod, (), pod_claims)

    def _without_claims(self, pod: pods.Pod) -> allocator_types.Workload | Skipped:
        """One that has its node takes of it."""
        if pod.node is not None:
            self.view.set_pod(pod.key, pod)
            return Skipped(f"has no claim, and takes of {pod.node}", matters=False)
        if not self._every_pod:
            return Skipped("has no claim: kube-scheduler chooses its node", matters=False)
        return allocator_types.Workload(pod, ())

    def _asked(
        self,
        pod: pods.Pod,
        open_claims: tuple[claims.Claim, ...],
        settled: tuple[claims.Claim, ...],
    ) -> allocator_types.Workload | allocator_types.Unschedulable | Skipped:
        split = self._owners.split_claims(self.view, pod, open_claims)
        if isinstance(split, allocator_types.Unschedulable):
            return split
        if not split:
            named = ", ".join(claim.name for claim in open_claims)
            wants = allocator_requests.parse_requests(self.view, open_claims)
            no = wants if isinstance(wants, allocator_types.Unschedulable) else None
            why = allocator_messages.unschedulable(no) if no else "not the controller's devices"
            return Skipped(f"kube-scheduler allocates {named}: {why}")
        return split.workload(pod, settled)

    def _bind(
        self, workload: allocator_types.Workload, placement: allocator_types.Placement
    ) -> BoundPod:
        pod = replace(workload.pod, node=placement.node)
        allocations = allocation_result.build_allocations(self.view, workload, placement, STAMP)
        entry = allocation_hold.pod_entry(pod)
        written: list[claims.Claim] = []
        for claim in (*workload.open_claims, *workload.allocated_claims):
            allocation = allocations.get(claim.key, claim.allocation)
            if entry not in claim.consumers:
                claim = replace(claim, consumers=(*claim.consumers, entry))  # noqa: PLW2901
            written.append(replace(claim, allocation=allocation))
        for claim in written:
            self._put(claim)
        self.view.set_pod(pod.key, pod)
        return BoundPod(pod, placement, tuple(written[: len(workload.open_claims)]))

    def _put(self, claim: claims.Claim) -> None:
        self._claims[claim.key] = claim
        self.view.set_claim(claim.key, claim)


def _not_now(pod: pods.Pod, pod_claims: tuple[claims.Claim, ...]) -> str:
    """Return why a pod is not scheduled now; empty if it can be placed."""
    gates = [gate for gate in pod.gates if gate != names.ALLOCATION_GATE]
    if gates:
        return f"waits for its scheduling gate {', '.join(gates)}"
    if pod.node is not None or pod.deleting or pod.finished:
        return "is bound, or ends"
    gone = [claim.name for claim in pod_claims if claim.allocation is None]
    return f"waits for {', '.join(gone)}, which is being deleted" if gone else ""


def _missing(pod: pods.Pod, pod_claims: dict[ids.Key, claims.Claim]) -> str:
    lacking: Sequence[str] = [
        f"claim {pod_claim.claim}"
        if pod_claim.claim
        else f"the claim of its entry {pod_claim.name}"
        for pod_claim in pod.claims
        if pod_claim.claim != ""
        and (not pod_claim.claim or f"{pod.namespace}/{pod_claim.claim}" not in pod_claims)
    ]
    return ", ".join(lacking)
