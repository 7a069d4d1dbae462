"""State of the scheduler between cycles, and its context: caches, view and state.

Owned by the decider's thread alone. All state may be lost: durable state is in the API.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from driver import clock, ids, reasons
from driver.controller.commit import decisions, write_pool
from driver.controller.informers import snapshot_updater, stores
from driver.controller.scheduler import pending
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import ownership
from driver.scheduling.allocator import settings as allocator_settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer
from driver.scheduling.lifecycle import actions, backfill_plan, node_refusals, released_claims
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.snapshot import cluster_state


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Settings of the scheduler.

    While it `is_stale` who allocates what (D2), nothing is placed: a node may have changed hands.
    `other_drivers` are drivers beside ours whose devices the controller may allocate.
    """

    driver: str
    allocator: allocator_settings.Settings
    is_stale: Callable[[], bool]
    patience: actions.BindTimeouts = field(default_factory=actions.BindTimeouts)
    evict_over_share: bool = False
    on_demand: provisioning_settings.ProvisionerSettings | None = None
    backfill: backfill_plan.BackfillRules = field(default_factory=backfill_plan.BackfillRules)
    other_drivers: frozenset[str] = frozenset()


@dataclass(slots=True)
class SchedulerState:
    """State by pod UID, except `waiting`, `in_doubt` and `unreserved`.

    `waiting` are pods and gangs without a fit; None for a workload that waits for something else,
    such as a readable claim. `writing` are the claims of decisions `in_flight`.
    `gang_condition_versions`: version of each claim whose gang condition is being written.
    `messages` is why a pod found no place, `pending_reasons` its reason, `message_keys` the part
    that is reported at once, `unadvised` pods whose nearest fit is still to be reported.
    `explanations` is the last answer to each existing pod in full.
    `in_doubt` are decisions whose writes got no answer: to be written again.
    `unbound` are pods that were seen without a node, `astray` since when bound pods were seen away
    from their claims. `refused` are nodes that kube-scheduler refused, `released` when claims lost
    their allocation. `resting` is until when refused gangs are not tried again, `retry_at` when to
    try preemption for a workload again; by work item, monotonic seconds.
    """

    in_flight: dict[ids.PodUid, decisions.Decision] = field(default_factory=dict)
    writing: set[ids.Key] = field(default_factory=set)
    in_doubt: dict[ids.Key, decisions.Decision] = field(default_factory=dict)
    placed: dict[ids.PodUid, actions.WrittenPod] = field(default_factory=dict)
    refused: node_refusals.NodeRefusals = field(default_factory=node_refusals.NodeRefusals)
    released: released_claims.ReleasedClaims = field(default_factory=released_claims.ReleasedClaims)
    unbound: set[ids.PodUid] = field(default_factory=set)
    astray: dict[ids.PodUid, float] = field(default_factory=dict)
    messages: dict[ids.PodUid, str] = field(default_factory=dict)
    pending_reasons: dict[ids.PodUid, reasons.Reason] = field(default_factory=dict)
    message_keys: dict[ids.PodUid, object] = field(default_factory=dict)
    explanations: dict[ids.PodUid, explainer.Explanation] = field(default_factory=dict)
    unadvised: set[ids.PodUid] = field(default_factory=set)
    uids: dict[ids.Key, ids.PodUid] = field(default_factory=dict)
    waiting: dict[write_pool.WorkItem, pending.PendingWorkload | None] = field(default_factory=dict)
    gang_condition_versions: dict[ids.Key, str] = field(default_factory=dict)
    unreserved: dict[ids.Key, float] = field(default_factory=dict)
    resting: dict[write_pool.WorkItem, float] = field(default_factory=dict)
    retry_at: dict[write_pool.WorkItem, float] = field(default_factory=dict)

    def observe_uid(self, key: ids.Key, uid: ids.PodUid) -> None:
        """Record a pod's UID; state of an older pod of that name is dropped."""
        if self.uids.get(key, uid) != uid:
            self.forget(key)
        self.uids[key] = uid

    def forget(self, key: ids.Key) -> None:
        """Drop the state of a deleted pod."""
        self.waiting.pop(write_pool.WorkItem("pod", key), None)
        uid = self.uids.pop(key, None)
        if uid is not None:
            self.placed.pop(uid, None)
            self.unbound.discard(uid)
            self.astray.pop(uid, None)
            self.clear_messages(uid)

    def clear_messages(self, uid: ids.PodUid) -> None:
        """Drop what was reported for a pod."""
        self.messages.pop(uid, None)
        self.pending_reasons.pop(uid, None)
        self.message_keys.pop(uid, None)
        self.explanations.pop(uid, None)
        self.unadvised.discard(uid)

    def begin_write(self, decision: decisions.Decision) -> None:
        """Record a decision being written; no other in flight writes one of its claims."""
        self.in_flight[decision.pod.uid] = decision
        self.writing.update(decision.allocations)

    def end_write(self, uid: ids.PodUid) -> decisions.Decision | None:
        """Return and drop the decision in flight for a pod; None without one."""
        decision = self.in_flight.pop(uid, None)
        if decision is not None:
            self.writing.difference_update(decision.allocations)
        return decision


@dataclass(frozen=True, slots=True)
class SchedulerContext:
    """Owned by the decider's thread; only the stores are filled by others."""

    stores: stores.Stores
    updater: snapshot_updater.SnapshotUpdater
    view: cluster_state.ClusterState
    memory: SchedulerState
    owners: ownership.OwnershipResolver
    settings: SchedulerSettings
    clock: clock.Clock

    def refresh_view(self) -> cluster_state.ClusterState:
        """Apply pending changes and return the view."""
        self.updater.apply()
        return self.view

    def split_claims(
        self, pod: pods.Pod, open_claims: Sequence[claims.Claim]
    ) -> ownership.ClaimSplit | allocator_types.Unschedulable:
        """Return the pod's open claims by who allocates them."""
        return self.owners.split_claims(self.refresh_view(), pod, open_claims)

    def is_writing(self, open_claims: Iterable[claims.Claim]) -> bool:
        """Return whether another decision for one of the claims is being written."""
        return any(claim.key in self.memory.writing for claim in open_claims)

    def is_stale(self) -> bool:
        """Return whether nothing may be placed now."""
        return self.settings.is_stale()

    def record_release(self, key: ids.Key, claim: claims.Claim | None) -> None:
        """Record when a claim loses its allocation."""
        self.memory.released.set_claim(key, claim, self.clock.now().timestamp())

    def settle_delay_s(self, pod: pods.Pod, open_claims: Iterable[claims.Claim]) -> float:
        """Return the seconds until a pod's claims may be allocated again; <= 0: now."""
        created = pending.parse_time(pod.created)
        return self.memory.released.allocate_delay_s(
            open_claims, created, self.clock.now().timestamp()
        )

    def unreserve_delay_s(self, held: Iterable[claims.Claim]) -> float:
        """Seconds until allocations without the pod's entry may be cleared; <= 0: now."""
        return self.memory.released.clear_delay_s(held, self.clock.now().timestamp())

    def avoided_nodes(self, pod: pods.Pod) -> Mapping[ids.NodeName, str]:
        """Return the nodes to avoid for a pod, with kube-scheduler's message."""
        now = self.clock.monotonic()
        return self.memory.refused.avoided_nodes(pod, self.view.node_state, now)

    def record_refusal(self, pod: pods.Pod, node: ids.NodeName, message: str) -> float:
        """Record that kube-scheduler refused a node; return how long it is avoided, in seconds."""
        now = self.clock.monotonic()
        return self.memory.refused.record(pod, node, message, self.view.node_state, now)
