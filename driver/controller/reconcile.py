"""The decider: one thread, one key at a time: view -> decide -> commit (D4).

Level-triggered: a key says only *look*, never what happened. Writes fan out on a pool; a decision
in flight is laid over the view until the server has answered.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import structlog

from driver import clock, ids, reasons
from driver.controller import (
    advising,
    attending,
    feed,
    memory,
    node_condition,
    picture,
    refused,
    stores,
    turn,
    writers,
)
from driver.controller import view as cluster
from driver.controller.allocation import (
    allocate,
    assemble,
    explanation,
    outcome,
    ownership,
    settings,
    words,
)
from driver.controller.allocation.whatif import nearest
from driver.controller.allocation.whatif import words as whatif_words
from driver.kube import workqueue
from driver.resources import claims, pods

_log = structlog.get_logger(__name__)
_BATCH = 256
_IDLE_S = 1.0
_STALE_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How the decider decides.

    While it `is_stale` who allocates what (D2), nothing is placed: a node may have changed hands.
    """

    driver: str
    deciding: settings.Settings
    is_stale: Callable[[], bool]
    patience: turn.Patience = field(default_factory=turn.Patience)
    evict_over_share: bool = False


class Reconciler:
    """Owns the memory; everything it does happens on the thread of `run`, writes excepted."""

    def __init__(
        self,
        found: stores.Stores,
        items: workqueue.WorkQueue[writers.Item],
        tools: writers.Tools,
        settings: Settings,
        time: clock.Clock,
    ) -> None:
        self._stores = found
        self._items = items
        self._tools = tools
        self._writers = writers.Writers(tools, items)
        self._settings = settings
        self._clock = time
        self._memory = memory.Memory()
        self._view = picture.Picture(settings.driver)
        self._feed = feed.Feed(found, self._view)
        self._allocator = allocate.Allocator(settings.deciding)
        self._adviser = advising.Adviser(settings.deciding, found.claims.get, found.pods.get)
        self._owners = ownership.Owners()
        rules = refused.Rules(settings.driver, settings.evict_over_share)
        self._attendant = attending.Attendant(found.pods, self._writers, rules, time)

    def run(self, stop: threading.Event) -> None:
        """Decide until told to stop."""
        while not stop.is_set():
            first = self._items.get(_IDLE_S)
            if first is not None:
                self.take([first, *self._more()])

    def explained(self, pod: ids.Key) -> explanation.Explanation | None:
        """The last answer to a pod, in full; from any thread. None: not decided for here."""
        uid = self._memory.uids.get(pod)
        return None if uid is None else self._memory.explained.get(uid)

    def _more(self) -> list[writers.Item]:
        found: list[writers.Item] = []
        while len(found) < _BATCH and len(self._items):
            item = self._items.get(0.0)
            if item is not None:
                found.append(item)
        return found

    def take(self, batch: list[writers.Item]) -> None:
        """Handle a batch, most urgent first."""
        self._settle()
        for item in sorted(batch, key=self._urgency):
            try:
                self._handle(item)
            except Exception:  # noqa: BLE001 - the work loop: one bad key stops no others
                _log.exception("turn failed", kind=item.kind, key=item.key)
                self._tools.metrics.failed_turns.inc()
                self._items.retry(item)
            finally:
                self._items.done(item)

    def _urgency(self, item: writers.Item) -> tuple[int, int, str, str]:
        """Claims first (they free devices), then pods by priority, age and name."""
        pod = self._stores.pods.get(item.key) if item.kind == "pod" else None
        if pod is None:
            return 0, 0, "", item.key
        return 1, -pod.priority, pod.created, item.key

    def _handle(self, item: writers.Item) -> None:
        match item.kind:
            case "pod":
                self._pod(item)
            case "claim":
                self._claim(item)
            case "node":
                self._node(ids.NodeName(item.key))
            case "nodes":
                for key in self._stores.nodes.snapshot():
                    self._items.add(writers.Item("node", key))
            case _:
                for key in self._memory.waiting:
                    self._items.add(writers.Item("pod", key))

    def _settle(self) -> None:
        """Take in what the writers finished, and what the caches were told."""
        now = self._clock.monotonic()
        for done in self._writers.finished():
            if done.in_doubt:
                # Its devices stay taken: a write without an answer may have happened, or yet will.
                self._memory.in_doubt[done.item.key] = replace(done.decision, doubtful=True)
                self._items.retry(done.item)
                continue
            self._land(done.pod.uid)
            if done.error is None:
                node, said = done.decision.placement.node, done.pod.verdict.message
                self._memory.placed[done.pod.uid] = turn.Placed(node, now, said)
                self._items.forget(done.item)
                self._items.add(done.item)
            else:
                self._items.retry(done.item)

    def _land(self, uid: ids.PodUid) -> None:
        """A write ended: from now on its claims are what the caches say, its own words included."""
        decision = self._memory.land(uid)
        if decision is not None:
            for key in decision.made:
                self._feed.changed("claim", key)
            self._feed.bring()
            self._view.land(decision)

    # Pods.

    def _pod(self, item: writers.Item) -> None:
        doubtful = self._memory.in_doubt.pop(item.key, None)
        if doubtful is not None:
            self._again(item, doubtful)
            return
        pod = self._stores.pods.get(item.key)
        if pod is None:
            self._memory.forget(item.key)
            self._items.forget(item)
            return
        self._memory.meet(item.key, pod.uid)
        found = cluster.claims_of(pod, self._stores.claims.get)
        if found is None or pod.uid in self._memory.in_flight:
            return
        now = self._clock.monotonic()
        placed = self._placed(pod, found, now)
        patience = self._settings.patience
        due = turn.of_pod(pod, found, placed, now, patience)
        if isinstance(due, turn.Decide):
            if self._decide(item, pod, due):
                return
            due = turn.of_pod(pod, due.settled, placed, now, patience)
        self._memory.waiting.discard(item.key)
        match due:
            case turn.Look(after_s=after_s):
                self._items.add_after(item, after_s)
            case turn.TakeBack() as back:
                self._take_back(pod, back, now)
            case turn.Ungate():
                self._writers.ungate(pod)
            case _:
                pass

    def _again(self, item: writers.Item, decision: writers.Decision) -> None:
        """Repeat a write that nobody answered, unless its devices are another allocator's now."""
        if self._settings.is_stale():
            self._memory.in_doubt[item.key] = decision
            self._items.add_after(item, _STALE_WAIT_S)
            return
        self._feed.bring()
        if cluster.all_ours(self._view, (pick.device for pick in decision.placement.picks)):
            self._writers.allocate(item, decision)
        else:
            self._writers.withdraw(item, decision)

    def _placed(
        self, pod: pods.Pod, found: tuple[claims.Claim, ...], now: float
    ) -> turn.Placed | None:
        node = turn.held_node(pod, found)
        if node is None:
            return None
        placed = turn.observe(self._memory.placed.get(pod.uid), pod, node, now)
        self._memory.placed[pod.uid] = placed
        return placed

    def _decide(self, item: writers.Item, pod: pods.Pod, due: turn.Decide) -> bool:
        """Decide for the open claims that are ours; False when none of them is."""
        if any(claim.key in self._memory.writing for claim in due.open):
            return True  # another pod's decision; the claim's change brings this pod back
        if self._settings.is_stale():
            self._items.add_after(item, _STALE_WAIT_S)
            return True
        self._feed.bring()
        mine = self._owners.mine(self._view, pod, due.open)
        if not mine:
            return False
        self._memory.waiting.add(item.key)
        if isinstance(mine, outcome.NoFit):
            self._no_fit(pod, due, mine)
        else:
            self._allocate(item, outcome.Workload(pod, mine, due.settled), due)
        return True

    def _allocate(
        self,
        item: writers.Item,
        workload: outcome.Workload,
        due: turn.Decide,
    ) -> None:
        pod = workload.pod
        now = self._clock.monotonic()
        workload = replace(workload, avoid=self._memory.avoided(pod.uid, now))
        with self._tools.metrics.decision_seconds.time():
            answer = self._allocator.decide(self._view, workload)
        if isinstance(answer, outcome.Placement):
            self._place(item, workload, answer)
            return
        self._no_fit(pod, due, answer, workload)
        ends = self._memory.next_end(pod.uid, now)
        if ends is not None:
            self._items.add_after(item, ends - now)

    def _place(
        self,
        item: writers.Item,
        workload: outcome.Workload,
        placement: outcome.Placement,
    ) -> None:
        pod = workload.pod
        stamped = clock.rfc3339(self._clock.now())
        made = assemble.allocations(self._view, workload, placement, stamped)
        decision = cluster.InFlight(pod, placement.node, made)
        self._memory.fly(decision)
        self._view.fly(decision)
        self._memory.waiting.discard(item.key)
        self._memory.hush(pod.uid)
        self._explain(pod, placement)
        self._writers.allocate(item, writers.Decision(workload, placement, made))

    def _no_fit(
        self,
        pod: pods.Pod,
        due: turn.Decide,
        answer: outcome.NoFit,
        workload: outcome.Workload | None = None,
    ) -> None:
        """Say why, once for each new answer; free what half a decision left behind."""
        self._tools.metrics.decided("no_fit")
        message = words.no_fit(answer)
        new = self._memory.told.get(pod.uid) != message
        if new:
            self._memory.hush(pod.uid)
            self._memory.told[pod.uid] = message
        near = self._nearest(workload, answer) if new or self._is_owed(pod, workload) else None
        if new or near:
            self._explain(pod, answer, near)
            told = whatif_words.joined(message, whatif_words.of(near) if near else "")
            self._tools.tell.warning(pod, due.open, reasons.Reason.NO_FIT, told)
            _log.info("no fit", pod=pod.key, answer=told)
        half = tuple(claim for claim in due.settled if turn.held_node(pod, (claim,)) is not None)
        self._writers.clear(half)

    def _is_owed(self, pod: pods.Pod, workload: outcome.Workload | None) -> bool:
        return workload is not None and pod.uid in self._memory.unadvised

    def _explain(
        self, pod: pods.Pod, answer: explanation.Answer, near: nearest.Nearest | None = None
    ) -> None:
        at = clock.rfc3339(self._clock.now())
        self._memory.explained[pod.uid] = explanation.Explanation(pod.key, at, answer, near)

    def _nearest(
        self, workload: outcome.Workload | None, answer: outcome.NoFit
    ) -> nearest.Nearest | None:
        """The nearest fit; where looking for it would take too long now, another time."""
        if workload is None or answer.blocker is not None:
            return None
        uid = workload.pod.uid
        if not self._adviser.affords(self._view, workload):
            self._memory.unadvised.add(uid)
            return None
        self._memory.unadvised.discard(uid)
        return self._adviser.advise(self._view, workload, answer)

    def _take_back(self, pod: pods.Pod, back: turn.TakeBack, now: float) -> None:
        lasts = self._memory.back_off(pod.uid, back.node, back.words, now)
        self._memory.placed.pop(pod.uid, None)
        message = (
            f"Freed the devices on {back.node}, left out for {lasts:.0f} s: "
            f'the scheduler refused the pod there: "{back.words}"'
        )
        reason = reasons.Reason.ALLOCATION_CLEARED
        self._tools.tell.warning(pod, back.claims, reason, message)
        self._tools.metrics.decided("taken_back")
        _log.info("allocation cleared", pod=pod.key, node=back.node, scheduler=back.words)
        self._writers.clear(back.claims)

    # Claims.

    def _claim(self, item: writers.Item) -> None:
        claim = self._stores.claims.get(item.key)
        if claim is None:
            self._memory.unreserved.pop(item.key, None)
            self._attendant.forget(item.key)
            self._items.forget(item)
            return
        again_s = self._attendant.attend(claim)
        if again_s is not None:
            self._items.add_after(item, again_s)
        now = self._clock.monotonic()
        since = self._unreserved_since(claim, now)
        match turn.of_claim(claim, self._stores.pods.get, since, now, self._settings.patience):
            case turn.DropHolds(holds=holds):
                self._writers.drop_holds(claim, holds)
            case turn.ClearUnused():
                self._memory.unreserved.pop(item.key, None)
                self._writers.clear((claim,))
            case turn.Look(after_s=after_s):
                self._items.add_after(item, after_s)
            case turn.Nothing():
                pass

    # Nodes.

    def _node(self, name: ids.NodeName) -> None:
        """Keep the condition that sums up a node's GPUs as its slices are."""
        node = self._stores.nodes.get(ids.Key(name))
        wanted = node_condition.of_slices(
            stores.slices_of(self._stores, name, self._settings.driver)
        )
        if node is not None and wanted is not None and wanted != node.gpu_condition:
            self._writers.condition(node, wanted, clock.rfc3339(self._clock.now()))

    def _unreserved_since(self, claim: claims.Claim, now: float) -> float | None:
        self._feed.bring()
        if not turn.unused(claim, self._view):
            self._memory.unreserved.pop(claim.key, None)
            return None
        return self._memory.unreserved.setdefault(claim.key, now)
