"""What the decider remembers between turns. All of it may be lost: state lives in the API.

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
    """By pod UID, except `waiting` (pods and gangs without a fit), `in_doubt` and `unreserved`.

    Of what waits for something else than a place, such as a readable claim, the candidate is None.

    `writing` are the claims of decisions `in_flight`. `said` is the version of each claim whose
    gang's condition is being written.
    `told` is why a pod found no place, `why` the reason of it, `gist` what of it is told at once,
    `unadvised` are those to whom the nearest fit is still to be told. `explained` is the last
    answer to each pod in full, for as long as the pod is there.
    `in_doubt` are decisions in flight whose writes nobody answered: to be written again.
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
        """A pod by that name has this UID; whatever an older one left is forgotten."""
        if self.uids.get(key, uid) != uid:
            self.forget(key)
        self.uids[key] = uid

    def forget(self, key: ids.Key) -> None:
        """The pod is gone."""
        self.waiting.pop(write_pool.WorkItem("pod", key), None)
        uid = self.uids.pop(key, None)
        if uid is not None:
            self.placed.pop(uid, None)
            self.unbound.discard(uid)
            self.astray.pop(uid, None)
            self.clear_messages(uid)

    def clear_messages(self, uid: ids.PodUid) -> None:
        """What a pod was told does not hold any more."""
        self.messages.pop(uid, None)
        self.pending_reasons.pop(uid, None)
        self.message_keys.pop(uid, None)
        self.explanations.pop(uid, None)
        self.unadvised.discard(uid)

    def begin_write(self, decision: snapshot.InFlight) -> None:
        """A decision is being written; no other in flight writes one of its claims."""
        self.in_flight[decision.pod.uid] = decision
        self.writing.update(decision.allocations)

    def end_write(self, uid: ids.PodUid) -> snapshot.InFlight | None:
        """The decision for a pod is written, or was not; None where there was none."""
        decision = self.in_flight.pop(uid, None)
        if decision is not None:
            self.writing.difference_update(decision.allocations)
        return decision
