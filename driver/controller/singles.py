"""Pods that are placed each by itself: what is due for one, and its placement."""

from dataclasses import replace

import structlog

from driver import reasons
from driver.controller import candidates, placing, state, turn, writers
from driver.controller.allocation import allocate, outcome, ownership
from driver.resources import claims, pods

_log = structlog.get_logger(__name__)


class Singles:
    """On the decider's thread."""

    def __init__(
        self,
        known: state.State,
        hands: writers.Writers,
        tools: writers.Tools,
        placer: placing.Placing,
        allocator: allocate.Allocator,
        patience: turn.Patience,
    ) -> None:
        self._known = known
        self._writers = hands
        self._tools = tools
        self._placing = placer
        self._allocator = allocator
        self._patience = patience
        self._owners = ownership.Owners()

    def look(
        self, item: writers.Item, pod: pods.Pod, found: tuple[claims.Claim, ...], *, stale: bool
    ) -> candidates.Candidate | float | None:
        """A candidate where claims are to be allocated; else what is due is done.

        A number is the seconds until it is to be looked at again.
        """
        now = self._known.clock.monotonic()
        placed = self._placed(pod, found, now)
        due = turn.of_pod(pod, found, placed, now, self._patience)
        if isinstance(due, turn.Decide):
            if any(claim.key in self._known.memory.writing for claim in due.open):
                return None  # another pod's decision; the claim's change brings this pod back
            if stale:
                return turn.STALE_WAIT_S
            mine = self.mine(pod, due.open)
            if isinstance(mine, outcome.NoFit):
                self._known.memory.waiting.add(item)
                self._placing.refuse(pod, due, mine)
                return None
            if mine:
                return candidates.Candidate(item, (outcome.Workload(pod, mine, due.settled),))
            due = turn.of_pod(pod, due.settled, placed, now, self._patience)
        self._known.memory.waiting.discard(item)
        return self._act(pod, due, now)

    def serve(self, candidate: candidates.Candidate) -> bool:
        """Decide for a candidate, and have it written or told; whether it was placed."""
        (asked,) = candidate.workloads
        pod, now = asked.pod, self._known.clock.monotonic()
        workload = replace(asked, avoid=self._known.memory.avoided(pod.uid, now))
        with self._tools.metrics.decision_seconds.time():
            answer = self._allocator.decide(self._known.bring(), workload)
        if isinstance(answer, outcome.Placement):
            self._known.memory.waiting.discard(candidate.item)
            self._placing.place(candidate.item, workload, answer)
            return True
        due = turn.Decide(workload.open, workload.settled)
        self._placing.refuse(pod, due, answer, workload)
        return False

    def again_s(self, pod: pods.Pod) -> float | None:
        """Seconds until the first node that is left out for a pod is not any more."""
        now = self._known.clock.monotonic()
        ends = self._known.memory.next_end(pod.uid, now)
        return None if ends is None else ends - now

    def mine(
        self, pod: pods.Pod, open_claims: tuple[claims.Claim, ...]
    ) -> tuple[claims.Claim, ...] | outcome.NoFit:
        """Those of a pod's open claims that are the controller's to allocate."""
        return self._owners.mine(self._known.bring(), pod, open_claims)

    def _placed(
        self, pod: pods.Pod, found: tuple[claims.Claim, ...], now: float
    ) -> turn.Placed | None:
        node = turn.held_node(pod, found)
        if node is None:
            return None
        placed = turn.observe(self._known.memory.placed.get(pod.uid), pod, node, now)
        self._known.memory.placed[pod.uid] = placed
        return placed

    def _act(self, pod: pods.Pod, due: turn.Turn, now: float) -> float | None:
        match due:
            case turn.Look(after_s=after_s):
                return after_s
            case turn.TakeBack() as back:
                self._take_back(pod, back, now)
            case turn.Ungate():
                self._writers.ungate(pod)
            case _:
                pass
        return None

    def _take_back(self, pod: pods.Pod, back: turn.TakeBack, now: float) -> None:
        lasts = self._known.memory.back_off(pod.uid, back.node, back.words, now)
        self._known.memory.placed.pop(pod.uid, None)
        message = (
            f"Freed the devices on {back.node}, left out for {lasts:.0f} s: "
            f'the scheduler refused the pod there: "{back.words}"'
        )
        reason = reasons.Reason.ALLOCATION_CLEARED
        self._tools.tell.warning(pod, back.claims, reason, message)
        self._tools.metrics.decided("taken_back")
        _log.info("allocation cleared", pod=pod.key, node=back.node, scheduler=back.words)
        self._writers.clear(back.claims)
