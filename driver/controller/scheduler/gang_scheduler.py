"""Gang scheduler: reconciles a gang, and places all its members at once."""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from driver import clock, errors, ids, reasons
from driver.controller.commit import workload_writer, write_pool
from driver.controller.scheduler import pending, results, state
from driver.controller.scheduler.explain import pending_reporter
from driver.resources.core import pods
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.gangs import lifecycle as gang_turn
from driver.scheduling.gangs import messages as seating_words
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import tentative
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.lifecycle import actions
from driver.scheduling.snapshot import snapshot

_log = structlog.get_logger(__name__)
_STEADY_S = 2.0
"""What a gang waits for is told when it was so for so long."""
_FORGET_S = 600.0
_REST_FACTOR = 10.0
"""A gang that was refused is looked at again after so many times what that took."""
_PLACED = pending.ScheduleResult.PLACED


class NotAGang(Exception):
    """Raised when the PodGroup lets each of the pods run by itself."""

    def __init__(self, pods_alone: Sequence[pods.Pod]) -> None:
        super().__init__("the pods are no gang")
        self.pods = pods_alone


class GangScheduler:
    """On the decider's thread."""

    def __init__(
        self,
        context: state.SchedulerContext,
        writers: workload_writer.WorkloadWriter,
        outcomes: results.ResultHandler,
        reporter: pending_reporter.PendingReporter,
        members: gang_index.GangIndex,
    ) -> None:
        self._context = context
        self._writers = writers
        self._results = outcomes
        self._reporter = reporter
        self._index = members
        self._pending_since: dict[ids.Key | None, tuple[str, float]] = {}
        self._fill_cache = tentative.FillCache()
        self._elapsed = clock.ElapsedTime(context.clock)

    def reconcile(self, item: write_pool.WorkItem) -> pending.PendingWorkload | float | None:
        """Return the workload if members are to be placed; else do what is due.

        A number is the seconds until the next reconcile. Raises NotAGang.
        """
        self._context.refresh_view()
        live = self._index.members(item.key)
        if not live:
            self._context.memory.waiting.pop(item, None)
        # The end of what is in flight brings the gang back.
        in_flight = any(pod.uid in self._context.memory.in_flight for pod in live)
        members = self._members(live) if live and not in_flight else None
        if members is None:
            return None
        try:
            gang = gang_index.read_gang(
                item.key, live, self._context.stores.find_pod_group(item.key)
            )
        except errors.BadInput as error:
            self._report_invalid(members, error)
            return None
        if gang is None:
            raise NotAGang(live)
        due = gang_turn.next_action(gang, members, self._elapsed.seconds_since)
        if isinstance(due, gang_turn.Place):
            if self._context.is_stale():
                return actions.STALE_RETRY_S
            return self._candidate(item, gang, due)
        self._context.memory.waiting.pop(item, None)
        if not isinstance(due, gang_turn.Wait):
            for member in members:
                self._reporter.allocated(member.pod, member.pod_claims)
        return self._act(members, due)

    def schedule(self, candidate: pending.PendingWorkload) -> pending.ScheduleResult:
        """Place all members, and commit or report the result; a refused gang rests a while."""
        begun, resting = self._context.clock.monotonic(), self._context.memory.resting
        if resting.get(candidate.item, 0.0) > begun:
            return pending.ScheduleResult.RESTING
        served = self._schedule(candidate, _gang(candidate))
        for item in [item for item, until in resting.items() if until <= begun]:
            del resting[item]
        if served is not _PLACED:
            ended = self._context.clock.monotonic()
            resting[candidate.item] = ended + _REST_FACTOR * (ended - begun)
        return served

    def _schedule(
        self, candidate: pending.PendingWorkload, gang: gang_index.Gang
    ) -> pending.ScheduleResult:
        answer = self._find_placement(gang, self._workloads(candidate), self._context.view)
        if isinstance(answer, gang_types.GangPlacement):
            placed = self._commit(candidate, gang, answer)
            return _PLACED if placed else pending.ScheduleResult.LIMITED
        words = (
            f"gang {gang.key}: {seating_words.gang_unschedulable(answer, gang.topology_request)}"
        )
        self._release(gang.key, words)
        self._reporter.pending_gang(candidate, words)
        return pending.ScheduleResult.UNSCHEDULABLE

    def try_on_view(self, candidate: pending.PendingWorkload, view: snapshot.Snapshot) -> bool:
        """Place all members on another view; without a fit nothing is reported."""
        gang = _gang(candidate)
        answer = self._find_placement(gang, self._workloads(candidate), view)
        if isinstance(answer, gang_types.GangPlacement):
            return self._commit(candidate, gang, answer)
        return False

    def _workloads(
        self, candidate: pending.PendingWorkload
    ) -> tuple[allocator_types.Workload, ...]:
        avoided = self._context.avoided_nodes
        return tuple(replace(work, avoided_nodes=avoided(work.pod)) for work in candidate.workloads)

    def _commit(
        self,
        candidate: pending.PendingWorkload,
        gang: gang_index.Gang,
        answer: gang_types.GangPlacement,
    ) -> bool:
        assignments = (pick for seat in answer.members for pick in seat.placement.assignments)
        why = self._results.over_limit(candidate, assignments)
        if why:
            self._release(gang.key, why)
            for seat in answer.members:
                pod, open_claims = seat.workload.pod, seat.workload.open_claims
                self._reporter.pending(pod, open_claims, reasons.Reason.QUEUE_LIMIT_EXCEEDED, why)
            return False
        self._context.memory.waiting.pop(candidate.item, None)
        for seat in answer.members:
            if seat.workload.open_claims:
                pod_item = write_pool.WorkItem("pod", seat.workload.pod.key)
                self._results.commit(pod_item, seat.workload, seat.placement, gang=True)
        return True

    def _find_placement(
        self,
        gang: gang_index.Gang,
        workloads: Sequence[allocator_types.Workload],
        view: snapshot.Snapshot,
    ) -> gang_types.GangPlacement | gang_types.GangUnschedulable:
        """Place all members; else, if the gang has spare members, just enough."""
        cache = self._fill_cache if view is self._context.view else None
        answer = gang_placement.place_gang(
            workloads, view, gang.topology_request, self._context.settings.allocator, cache
        )
        spare = len(gang.members) - gang.min_members
        if (
            isinstance(answer, gang_types.GangPlacement)
            or gang.is_exact
            or not 0 < spare < len(workloads)
        ):
            return answer
        fewer = gang_placement.place_gang(
            workloads[:-spare], view, gang.topology_request, self._context.settings.allocator, cache
        )
        return fewer if isinstance(fewer, gang_types.GangPlacement) else answer

    def _members(self, live: Sequence[pods.Pod]) -> tuple[gang_turn.Member, ...] | None:
        """Return the members with their claims; None while a claim is missing."""
        members = []
        in_use = frozenset(key for pod in live if pod.node is not None for key in pod.claim_keys)
        for pod in live:
            has = snapshot.pod_claims(pod, self._context.stores.claims.get)
            if has is None:
                return None
            members.append(gang_turn.Member(pod, has, in_use))
        return tuple(members)

    def _candidate(
        self, item: write_pool.WorkItem, gang: gang_index.Gang, due: gang_turn.Place
    ) -> pending.PendingWorkload | float | None:
        workloads = []
        settles_s = max(
            self._context.settle_delay_s(member.pod, member.open_claims) for member in due.members
        )
        if settles_s > 0:
            return settles_s
        for member in due.members:
            if self._context.is_writing(member.open_claims):
                return None
            split = self._context.split_claims(member.pod, member.open_claims)
            if isinstance(split, allocator_types.Unschedulable):
                self._context.memory.waiting[item] = None
                self._reporter.unschedulable(
                    member.pod, actions.Decide(member.open_claims, member.allocated_claims), split
                )
                return None
            if split:
                workloads.append(split.workload(member.pod, member.allocated_claims))
        return pending.PendingWorkload(item, tuple(workloads), gang) if workloads else None

    def _report_invalid(self, members: Sequence[gang_turn.Member], error: errors.BadInput) -> None:
        """Report on every pod that the gang's declaration is invalid."""
        written = tuple(
            member for member in members if member.held_claims and member.pod.node is None
        )
        if written:
            self._fail(gang_turn.Fail(written, str(error)))
        for member in members:
            if member.pod.node is None:
                self._reporter.pending(
                    member.pod, member.open_claims, reasons.Reason.GANG_INVALID, str(error)
                )

    def _act(self, members: Sequence[gang_turn.Member], due: gang_turn.Action) -> float | None:
        match due:
            case gang_turn.Wait(reason=why):
                return self._report_pending(members, why)
            case gang_turn.Ungate(members=gated):
                for member in gated:
                    self._writers.ungate(member.pod)
            case gang_turn.Ready(members=ready):
                self._set_conditions(ready, failed="")
                return gang_turn.OBSERVED_AFTER_S
            case gang_turn.Fail():
                self._fail(due)
                return gang_turn.OBSERVED_AFTER_S
            case gang_turn.Clear() | gang_turn.RemoveReservation():
                return self._release_members(due)
            case gang_turn.Recheck(after_s=after_s):
                return after_s
            case _:
                pass
        return None

    def _release_members(self, due: gang_turn.Clear | gang_turn.RemoveReservation) -> float:
        for member in due.members:
            if isinstance(due, gang_turn.RemoveReservation):
                self._writers.unreserve_pod(member.pod, member.removable_claims)
            else:
                self._writers.release(member.pod, member.held_claims)
        return gang_turn.OBSERVED_AFTER_S

    def _report_pending(self, members: Sequence[gang_turn.Member], why: str) -> float | None:
        """Report the cause once it is stable: a gang's pods are created one after the other."""
        gang, now = gang_index.gang_key(members[0].pod), self._context.clock.monotonic()
        last, since = self._pending_since.get(gang, ("", now))
        if last != why:
            self._pending_since = {
                key: entry
                for key, entry in self._pending_since.items()
                if now - entry[1] < _FORGET_S
            }
            self._pending_since[gang] = why, now
            return _STEADY_S
        if now - since < _STEADY_S:
            return _STEADY_S - (now - since)
        for entry in members:
            self._reporter.pending(entry.pod, entry.open_claims, reasons.Reason.GANG_PENDING, why)
        return None

    def _release(self, key: ids.Key, why: str) -> None:
        """Release the members that were written in vain."""
        members = self._members(self._index.members(key)) or ()
        written = tuple(
            member for member in members if member.held_claims and member.pod.node is None
        )
        if written:
            self._fail(gang_turn.Fail(written, why))

    def _fail(self, due: gang_turn.Fail) -> None:
        _log.info("gang given up", pods=[member.pod.key for member in due.members], why=due.reason)
        self._set_conditions(due.members, failed=due.reason)
        for member in due.members:
            self._reporter.report(
                member.pod, member.held_claims, reasons.Reason.GANG_RELEASED, due.reason
            )
            node, verdict = actions.hold_node(member.pod, member.held_claims), member.pod.verdict
            if node is not None and verdict.refused and member.pod.nominated != node:
                self._context.record_refusal(member.pod, node, verdict.message)
        for member in due.started:
            if member.pod.owner is not None and member.pod_claims:
                self._writers.evict_user(
                    member.pod_claims[0], member.pod, f"its gang was given up: {due.reason}"
                )

    def _set_conditions(self, members: Sequence[gang_turn.Member], *, failed: str) -> None:
        """Set the condition on claims whose binding waits, once per claim version."""
        written, now = (
            self._context.memory.gang_condition_versions,
            clock.rfc3339(self._context.clock.now()),
        )
        for member in members:
            for claim in member.held_claims:
                if (
                    gang_turn.has_binding_condition(claim)
                    and written.get(claim.key) != claim.version
                ):
                    written[claim.key] = claim.version
                    self._writers.set_gang_condition(claim, failed, now)


def _gang(candidate: pending.PendingWorkload) -> gang_index.Gang:
    if candidate.gang is None:
        raise ValueError(f"{candidate.demand_key} is no gang")
    return candidate.gang
