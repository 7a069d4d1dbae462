"""Gangs: what is due for one, and the placement of all its members at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from driver import clock, errors, ids, reasons
from driver.controller.commit import write_pool
from driver.controller.scheduler import pending, results, state
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import settings
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
Mine = Callable[
    [pods.Pod, tuple[claims.Claim, ...]], tuple[claims.Claim, ...] | allocator_types.Unschedulable
]
"""Those of a pod's open claims that are the controller's to allocate."""


class NotAGang(Exception):
    """Its PodGroup lets each pod run by itself."""


class Gangs:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.State,
        hands: write_pool.Writers,
        placer: results.Placing,
        members: gang_index.Roster,
        mine: Mine,
        deciding: settings.Settings,
    ) -> None:
        self._known = known
        self._writers = hands
        self._placing = placer
        self._roster = members
        self._mine = mine
        self._deciding = deciding
        self._waits: dict[ids.Key | None, tuple[str, float]] = {}
        self._told = tentative.Known()

    def look(self, item: write_pool.Item, *, stale: bool) -> pending.Candidate | float | None:
        """A candidate where members are to be placed; else what is due is done.

        A number is the seconds until it is to be looked at again. Raises NotAGang.
        """
        self._known.bring()
        there = self._roster.members(item.key)
        if any(pod.uid in self._known.memory.in_flight for pod in there):
            return None  # its end brings the gang back
        members = self._members(there)
        if not there or members is None:
            return None
        try:
            gang = gang_index.read(item.key, there, self._known.stores.group(item.key))
        except errors.BadInput as error:
            self._refused(members, error)
            return None
        if gang is None:
            raise NotAGang
        due = gang_turn.of_gang(gang, members, self._known.clock.now())
        if isinstance(due, gang_turn.Seat):
            return actions.STALE_WAIT_S if stale else self._candidate(item, gang, due)
        self._known.memory.waiting.pop(item, None)
        if not isinstance(due, gang_turn.Wait):
            for one in members:
                self._placing.settled(one.pod, one.has)
        return self._act(members, due)

    def serve(
        self, candidate: pending.Candidate, gang: gang_index.Gang, vet: pending.Vet
    ) -> pending.Served:
        """Seat all members, and have them written or told."""
        asked = self._workloads(candidate)
        answer = self._seated(gang, asked, self._known.view)
        if isinstance(answer, gang_types.Seated):
            placed = self._place(candidate, gang, answer, vet)
            return pending.Served.PLACED if placed else pending.Served.LIMITED
        words = f"gang {gang.key}: {seating_words.unseated(answer, gang.near)}"
        self._release(gang.key, words)
        note = candidate.note()
        for one in asked:
            self._placing.wait(one.pod, one.open_claims, reasons.Reason.NO_FIT, words, note)
        return pending.Served.REFUSED

    def attempt(
        self,
        candidate: pending.Candidate,
        gang: gang_index.Gang,
        view: snapshot.Snapshot,
        vet: pending.Vet,
    ) -> bool:
        """Seat all on another view than everybody's; without places nothing is told."""
        answer = self._seated(gang, self._workloads(candidate), view)
        if isinstance(answer, gang_types.Seated):
            return self._place(candidate, gang, answer, vet)
        return False

    def _workloads(self, candidate: pending.Candidate) -> tuple[allocator_types.Workload, ...]:
        avoided = self._known.avoided
        return tuple(replace(work, avoided_nodes=avoided(work.pod)) for work in candidate.workloads)

    def _place(
        self,
        candidate: pending.Candidate,
        gang: gang_index.Gang,
        answer: gang_types.Seated,
        vet: pending.Vet,
    ) -> bool:
        why = vet(pick.result for one in answer.seats for pick in one.placement.assignments)
        if why:
            self._release(gang.key, why)
            for seat in answer.seats:
                pod, found = seat.workload.pod, seat.workload.open_claims
                self._placing.wait(pod, found, reasons.Reason.QUEUE_LIMIT, why)
            return False
        self._known.memory.waiting.pop(candidate.item, None)
        for seat in answer.seats:
            if seat.workload.open_claims:
                pod_item = write_pool.Item("pod", seat.workload.pod.key)
                self._placing.place(pod_item, seat.workload, seat.placement, gang=True)
        return True

    def _seated(
        self,
        gang: gang_index.Gang,
        asked: Sequence[allocator_types.Workload],
        view: snapshot.Snapshot,
    ) -> gang_types.Seated | gang_types.Unseated:
        """All of them; of a gang that may have more than it needs, else just enough."""
        known = self._told if view is self._known.view else None
        answer = gang_placement.place(asked, view, gang.near, self._deciding, known)
        spare = len(gang.members) - gang.wanted
        if isinstance(answer, gang_types.Seated) or gang.exact or not 0 < spare < len(asked):
            return answer
        fewer = gang_placement.place(asked[:-spare], view, gang.near, self._deciding, known)
        return fewer if isinstance(fewer, gang_types.Seated) else answer

    def _members(self, there: Sequence[pods.Pod]) -> tuple[gang_turn.Member, ...] | None:
        """With their claims; None while one is not there yet."""
        found = []
        for pod in there:
            has = snapshot.pod_claims(pod, self._known.stores.claims.get)
            if has is None:
                return None
            found.append(gang_turn.Member(pod, has))
        return tuple(found)

    def _candidate(
        self, item: write_pool.Item, gang: gang_index.Gang, due: gang_turn.Seat
    ) -> pending.Candidate | float | None:
        workloads = []
        settles_s = max(self._known.settles_s(one.pod, one.open) for one in due.members)
        if settles_s > 0:
            return settles_s
        for one in due.members:
            if any(claim.key in self._known.memory.writing for claim in one.open):
                return None
            mine = self._mine(one.pod, one.open)
            if isinstance(mine, allocator_types.Unschedulable):
                self._known.memory.waiting[item] = None
                self._placing.refuse(one.pod, actions.Decide(one.open, one.settled), mine)
                return None
            if mine:
                workloads.append(allocator_types.Workload(one.pod, mine, one.settled))
        return pending.Candidate(item, tuple(workloads), gang) if workloads else None

    def _refused(self, members: Sequence[gang_turn.Member], error: errors.BadInput) -> None:
        """What the pods say makes no gang: each of them is told."""
        written = tuple(one for one in members if one.written and one.pod.node is None)
        if written:
            self._fail(gang_turn.Fail(written, str(error)))
        for one in members:
            if one.pod.node is None:
                self._placing.wait(one.pod, one.open, reasons.Reason.GANG_INVALID, str(error))

    def _act(self, members: Sequence[gang_turn.Member], due: gang_turn.Turn) -> float | None:
        match due:
            case gang_turn.Wait(why=why):
                return self._wait(members, why)
            case gang_turn.Ungate(members=gated):
                for one in gated:
                    self._writers.ungate(one.pod)
            case gang_turn.Ready(members=ready):
                self._say(ready, failed="")
                return gang_turn.HEARD_S
            case gang_turn.Fail():
                self._fail(due)
                return gang_turn.HEARD_S
            case gang_turn.Clear() | gang_turn.Part():
                return self._let_go(due)
            case gang_turn.Look(after_s=after_s):
                return after_s
            case _:
                pass
        return None

    def _let_go(self, due: gang_turn.Clear | gang_turn.Part) -> float:
        for member in due.members:
            if isinstance(due, gang_turn.Part):
                self._writers.part(member.pod, member.reserved)
            else:
                self._writers.release(member.pod, member.written)
        return gang_turn.HEARD_S

    def _wait(self, members: Sequence[gang_turn.Member], why: str) -> float | None:
        """Told once it stays so for a moment: the pods of a gang are made one after the other."""
        gang, now = gang_index.key_of(members[0].pod), self._known.clock.monotonic()
        said, since = self._waits.get(gang, ("", now))
        if said != why:
            self._waits = {key: one for key, one in self._waits.items() if now - one[1] < _FORGET_S}
            self._waits[gang] = why, now
            return _STEADY_S
        if now - since < _STEADY_S:
            return _STEADY_S - (now - since)
        for one in members:
            self._placing.wait(one.pod, one.open, reasons.Reason.GANG_WAITS, why)
        return None

    def _release(self, key: ids.Key, why: str) -> None:
        """Give up those of a gang that were written for nothing."""
        members = self._members(self._roster.members(key)) or ()
        written = tuple(one for one in members if one.written and one.pod.node is None)
        if written:
            self._fail(gang_turn.Fail(written, why))

    def _fail(self, due: gang_turn.Fail) -> None:
        _log.info("gang given up", pods=[one.pod.key for one in due.members], why=due.why)
        self._say(due.members, failed=due.why)
        for one in due.members:
            self._placing.tell(one.pod, one.written, reasons.Reason.GANG_RELEASED, due.why)
            node, verdict = actions.held_node(one.pod, one.written), one.pod.verdict
            if node is not None and verdict.refused and one.pod.nominated != node:
                self._known.refused(one.pod, node, verdict.message)
        for one in due.started:
            if one.pod.owner is not None and one.has:
                self._writers.evict(one.has[0], one.pod, f"its gang was given up: {due.why}")

    def _say(self, members: Sequence[gang_turn.Member], *, failed: str) -> None:
        """On every claim whose binding waits, once for each version of it."""
        said, now = self._known.memory.said, clock.rfc3339(self._known.clock.now())
        for one in members:
            for claim in one.written:
                if gang_turn.waits(claim) and said.get(claim.key) != claim.version:
                    said[claim.key] = claim.version
                    self._writers.say(claim, failed, now)
