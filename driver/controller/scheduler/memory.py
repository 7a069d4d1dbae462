"""State of the scheduler between cycles. All of it may be lost: durable state is in the API.

Owned by the decider's thread alone.
"""

from dataclasses import dataclass, field

from driver import ids, reasons
from driver.controller.commit import write_pool
from driver.controller.scheduler import pending
from driver.scheduling.explain import explanation
from driver.scheduling.lifecycle import actions, node_refusals, released_claims
from driver.scheduling.snapshot import snapshot


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
    their allocation.
    """

    in_flight: dict[ids.PodUid, snapshot.InFlight] = field(default_factory=dict)
    writing: set[ids.Key] = field(default_factory=set)
    in_doubt: dict[ids.Key, write_pool.Decision] = field(default_factory=dict)
    placed: dict[ids.PodUid, actions.WrittenPod] = field(default_factory=dict)
    refused: node_refusals.NodeRefusals = field(default_factory=node_refusals.NodeRefusals)
    released: released_claims.ReleasedClaims = field(default_factory=released_claims.ReleasedClaims)
    unbound: set[ids.PodUid] = field(default_factory=set)
    astray: dict[ids.PodUid, float] = field(default_factory=dict)
    messages: dict[ids.PodUid, str] = field(default_factory=dict)
    pending_reasons: dict[ids.PodUid, reasons.Reason] = field(default_factory=dict)
    message_keys: dict[ids.PodUid, object] = field(default_factory=dict)
    explanations: dict[ids.PodUid, explanation.Explanation] = field(default_factory=dict)
    unadvised: set[ids.PodUid] = field(default_factory=set)
    uids: dict[ids.Key, ids.PodUid] = field(default_factory=dict)
    waiting: dict[write_pool.WorkItem, pending.PendingWorkload | None] = field(default_factory=dict)
    gang_condition_versions: dict[ids.Key, str] = field(default_factory=dict)
    unreserved: dict[ids.Key, float] = field(default_factory=dict)

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

    def begin_write(self, decision: snapshot.InFlight) -> None:
        """Record a decision being written; no other in flight writes one of its claims."""
        self.in_flight[decision.pod.uid] = decision
        self.writing.update(decision.allocations)

    def end_write(self, uid: ids.PodUid) -> snapshot.InFlight | None:
        """Return and drop the decision in flight for a pod; None without one."""
        decision = self.in_flight.pop(uid, None)
        if decision is not None:
            self.writing.difference_update(decision.allocations)
        return decision
