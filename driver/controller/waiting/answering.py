"""Answers to readers (`explain`, the page, the JSON API), made for the picture of now.

Any thread asks; the decider's answers between two turns, once for all who ask for one pod.
"""

import threading
from concurrent import futures
from dataclasses import replace

from driver import ids, reasons
from driver.controller import bound, bound_refusal, state, underway, writers
from driver.controller import view as cluster
from driver.controller.allocation import (
    allocate,
    explanation,
    outcome,
    ownership,
    settings,
    words,
)
from driver.controller.allocation.gangs import result, seating
from driver.controller.allocation.gangs import words as seating_words
from driver.controller.allocation.whatif import words as whatif_words
from driver.controller.reservations import without
from driver.controller.waiting import candidates, placing, planned, serving
from driver.kube import workqueue

KIND = "explain"
"""Items of pods that somebody asks about."""
PATIENCE_S = 2.0
"""Readers wait so long for the decider; then they get the last answer, with its time."""
Answer = futures.Future[explanation.Explanation | None]


class Answering:
    """`ask` from any thread, `answer` on the decider's. One answer costs one decision."""

    def __init__(
        self,
        shared: state.State,
        items: workqueue.WorkQueue[writers.Item],
        placer: placing.Placing,
        deciding: settings.Settings,
        turns: serving.Serving,
    ) -> None:
        self._known = shared
        self._items = items
        self._placer = placer
        self._deciding = deciding
        self._serving = turns
        self._claims = underway.Underway(shared)
        self._owners = ownership.Owners()
        self._lock = threading.Lock()
        self._asked: dict[ids.Key, Answer] = {}

    def ask(self, pod: ids.Key) -> Answer:
        """The answer to come; None in it: the pod is not decided for here."""
        with self._lock:
            answer = self._asked.setdefault(pod, futures.Future())
        self._items.add(writers.Item(KIND, pod))
        return answer

    def answer(self, pod: ids.Key) -> None:
        """Resolve what was asked of a pod."""
        with self._lock:
            answer = self._asked.pop(pod, None)
        if answer is None:
            return
        full = self.last(pod)
        try:
            full = self._explain(pod)
        finally:
            answer.set_result(full)

    def now(self, pod: ids.Key) -> explanation.Explanation | None:
        """The answer to a pod; from any thread but the decider's. Waits `PATIENCE_S` at most."""
        try:
            return self.ask(pod).result(PATIENCE_S)
        except futures.TimeoutError:
            return self.last(pod)

    def last(self, pod: ids.Key) -> explanation.Explanation | None:
        """The last answer to a pod; from any thread."""
        uid = self._known.memory.uids.get(pod)
        return None if uid is None else self._known.memory.explained.get(uid)

    def _explain(self, pod: ids.Key) -> explanation.Explanation | None:
        self._known.bring()
        refused = self._of_bound(pod)
        if refused is not None:
            return refused
        candidate = self._candidate(pod)
        if candidate is None:
            return self.last(pod)
        view = self._view_for(candidate)
        if candidate.gang is not None:
            return self._of_gang(pod, candidate, view)
        work = self._fresh(candidate.workloads[0])
        refusal = allocate.allocate(view, work, self._deciding)
        if isinstance(refusal, outcome.Placement):
            return self._not_placed(work)
        near = None
        if refusal.blocker is None:
            near = self._placer.adviser.advise(view, work, refusal)
        rest = self._placer.rest_of(refusal, near, self._serving.note_of(candidate), view)
        text = whatif_words.joined(words.no_fit(refusal), rest)
        return self._placer.explain(work.pod, refusal, near, text)

    def _of_bound(self, key: ids.Key) -> explanation.Explanation | None:
        """The answer to a pod that is bound where its claims are not allocated: of its own node."""
        memory, pod = self._known.memory, self._known.stores.pods.get(key)
        since = memory.astray.get(pod.uid) if pod is not None else None
        if pod is None or since is None or pod.uid in memory.in_flight:
            return None
        if self._known.clock.monotonic() < since + bound.GRACE_S:
            return None
        refused = self._bound_refusals().refusal(pod)
        if refused is None:
            return None
        if refused.fits and memory.why.get(pod.uid) is reasons.Reason.QUEUE_LIMIT:
            limited = memory.told.get(pod.uid, "")
            limit = outcome.NoFit(reasons.Reason.QUEUE_LIMIT, limited)
            return self._placer.explain(pod, limit, text=limited)
        rest = self._placer.rest_of(refused.answer, refused.near)
        text = whatif_words.joined(refused.text, rest)
        return self._placer.explain(pod, refused.answer, refused.near, text)

    def _bound_refusals(self) -> bound_refusal.Reader:
        return bound_refusal.Reader(
            self._known.view,
            self._deciding,
            self._claims.claim,
            self._known.stores.pods.get,
            self._owners,
        )

    def _candidate(self, pod: ids.Key) -> candidates.Candidate | None:
        """The pod that waits for a place, or its gang."""
        waiting = self._known.memory.waiting
        single = waiting.get(writers.Item("pod", pod))
        if single is not None:
            return single
        uid = self._known.memory.uids.get(pod)
        if uid is None or uid not in self._known.memory.told:
            return None
        return next((gang for gang in waiting.values() if gang and _is_in(uid, gang)), None)

    def _view_for(self, candidate: candidates.Candidate) -> cluster.ClusterView:
        """The picture as the candidate's own turn finds it."""
        plan = self._serving.plan
        if plan is None or candidate.item != writers.Item(plan.kind, plan.key):
            return self._known.view
        return without.Without(self._known.view, [planned.KEY])

    def _fresh(self, work: outcome.Workload) -> outcome.Workload:
        return replace(work, avoid=self._known.avoided(work.pod))

    def _of_gang(
        self, pod: ids.Key, candidate: candidates.Candidate, view: cluster.ClusterView
    ) -> explanation.Explanation | None:
        works = [self._fresh(work) for work in candidate.workloads]
        answer = seating.place(works, view, candidate.near, self._deciding)
        mine = next((work for work in works if work.pod.key == pod), works[0])
        if isinstance(answer, result.Seated) or candidate.gang is None:
            return self._not_placed(mine)
        text = f"gang {candidate.gang.key}: {seating_words.unseated(answer, candidate.near)}"
        text = whatif_words.joined(text, self._serving.note_of(candidate))
        return self._placer.explain(mine.pod, outcome.NoFit(reasons.Reason.NO_FIT, text), text=text)

    def _not_placed(self, work: outcome.Workload) -> explanation.Explanation | None:
        """The answer to one that would fit: what else keeps it, such as its queue's limit."""
        memory = self._known.memory
        why, text = memory.why.get(work.pod.uid), memory.told.get(work.pod.uid, "")
        if why is None or why is reasons.Reason.NO_FIT:
            self._items.add(writers.WAKE)
            return self.last(work.pod.key)
        return self._placer.explain(work.pod, outcome.NoFit(why, text))


def _is_in(uid: ids.PodUid, candidate: candidates.Candidate) -> bool:
    return any(work.pod.uid == uid for work in candidate.workloads)
