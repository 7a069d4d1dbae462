"""Preemption eligibility rules. Pure.

Within one queue, and without queues: a victim has strictly lower priority. Across queues: the
victim's queue has more than its fair share, as long as the pending queue stays within its own; the
victim's queue allows it for any priority, for higher priority only, or never. A victim is recreated
elsewhere, has run long enough, and its PodDisruptionBudgets allow the eviction.
"""

import datetime as dt
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from driver import reasons
from driver.api import queues as api
from driver.resources import disruption_budgets, queues
from driver.resources.core import pods
from driver.scheduling.explain import holders
from driver.scheduling.preemption import victims


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The pending workload: `queue` is its queue, "" for none.

    `preempts`: its preemptionPolicy is not Never. `is_within_fair_share`: its queue has no more
    than its fair share even once it is placed. `own_victims` are the victims that it is part of,
    which are never evicted for it.
    """

    priority: int
    queue: str = ""
    preempts: bool = True
    is_within_fair_share: bool = False
    own_victims: frozenset[victims.VictimKey] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue as far as its pods may be evicted. `surplus` is its usage beyond its fair share.

    That is in thousandths of a GPU, below 0 if it has less. With `is_idle` the pod is idle and its
    queue lets idle pods go first: nothing is lost with it.
    """

    name: str = ""
    preemptible: bool = True
    reclaim: api.Reclaim = "LowerPriority"
    min_run_s: float = 0.0
    surplus: int = 0
    is_idle: bool = False


class Queues(Protocol):
    """State of the queues, by the queue engine."""

    def queue_state(self, pod: pods.Pod) -> QueueState:
        """Return the queue of a pod with devices; name "" if it is in none."""
        ...


class NoQueues:
    """A cluster without queues."""

    def __init__(self) -> None:
        self._none = QueueState()

    def queue_state(self, _pod: pods.Pod) -> QueueState:
        """Return the state without a queue."""
        return self._none


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit on a sum of amounts: `most`; with `excludes_largest` the largest is not counted.

    The former is a PodDisruptionBudget's. The latter is a queue's surplus: each may be evicted
    while some of it is left, so that it is never exceeded by more than one victim.
    """

    most: int
    excludes_largest: bool = False

    def allows(self, draws: Sequence[int]) -> bool:
        """Return whether all amounts are allowed together; then every subset is as well."""
        if self.excludes_largest:
            return sum(draws) - max(draws, default=0) < self.most
        return sum(draws) <= self.most

    def max_worth(self, items: Sequence[tuple[int, int]]) -> int:
        """Return the maximum total worth within the limit, given pairs of worth and amount."""
        remaining = self.most
        if self.excludes_largest:
            remaining += max((draw for _, draw in items), default=0) - 1
        total = 0
        for worth, draw in sorted(items, key=lambda item: -item[0] / item[1]):
            if draw > remaining:
                return total + worth * max(remaining, 0) // draw
            remaining -= draw
            total += worth
        return total


@dataclass(frozen=True, slots=True)
class VictimEligibility:
    """Eligibility of a victim for a preemptor: what is lost with it, its usage of which limit.

    `lost` is in thousandths of a GPU times seconds. `ineligible`: it may not be evicted, as
    `message` says.
    """

    victim: victims.Victim
    lost: int = 0
    usage: Mapping[Hashable, int] = field(default_factory=dict)
    ineligible: reasons.Reason | None = None
    message: str = ""

    @property
    def lost_s(self) -> float:
        """GPU-seconds lost."""
        return self.lost / queues.THOUSAND

    @property
    def rank(self) -> tuple[int, int, str]:
        """Sort key, lowest first: what is lost, pods, name."""
        return self.lost, len(self.victim.pods), self.victim.name


_Ineligibility = tuple[reasons.Reason, str]


class PreemptionPolicy:
    """Policy for one preemptor, at one moment. `budgets` are the PodDisruptionBudgets.

    `idles`: False if no `QueueState` is `is_idle`; plans are quicker then.
    """

    def __init__(
        self,
        preemptor: Preemptor,
        queues_by_pod: Queues,
        budgets: disruption_budgets.BudgetIndex,
        now: dt.datetime,
        *,
        idles: bool = True,
    ) -> None:
        self._has_idle = idles
        self._preemptor = preemptor
        self._queues = queues_by_pod
        self._budgets = budgets
        self._now = now.timestamp()
        self._limits: dict[Hashable, Limit] = {
            ("budget", key): Limit(allowed) for key, allowed in budgets.allowed.items()
        }
        self._evaluated: dict[victims.VictimKey, VictimEligibility] = {}

    @property
    def preemptor(self) -> Preemptor:
        """The pending workload."""
        return self._preemptor

    def eligibility(self, victim: victims.Victim) -> VictimEligibility:
        """Return whether a victim may be evicted, and the cost."""
        eligibility = self._evaluated.get(victim.key)
        if eligibility is None or eligibility.victim is not victim:
            eligibility = self._evaluated[victim.key] = self._evaluate(victim)
        return eligibility

    def loss_floors(self, candidates: Iterable[victims.Victim]) -> list[int]:
        """Return a quick lower bound of each victim's loss; it may be ineligible."""
        now, idle = self._now, self._queues.queue_state
        if not self._has_idle:
            return [victim.lost_at(now) for victim in candidates]
        return [
            0 if idle(victim.pods[0].pod).is_idle else victim.lost_at(now) for victim in candidates
        ]

    def may_evict(self, candidates: Iterable[VictimEligibility]) -> bool:
        """Return whether all of these may be evicted together; then every subset may as well."""
        drawn: dict[Hashable, list[int]] = {}
        for candidate in candidates:
            if candidate.ineligible is not None:
                return False
            for key, amount in candidate.usage.items():
                drawn.setdefault(key, []).append(amount)
        return all(self._limits[key].allows(amounts) for key, amounts in drawn.items())

    def may_add(self, removed: Iterable[victims.Victim], new: Sequence[victims.Victim]) -> bool:
        """Return whether limits allow some victims beside others; quick without limits.

        The eligibility of each by itself is not checked.
        """
        eligible = [
            candidate for candidate in map(self.eligibility, new) if candidate.ineligible is None
        ]
        if not any(candidate.usage for candidate in eligible):
            return True
        current = (
            candidate
            for candidate in map(self.eligibility, removed)
            if candidate.ineligible is None
        )
        return self.may_evict([*current, *eligible])

    def max_worth(self, candidates: Iterable[tuple[VictimEligibility, int]]) -> int:
        """Return the maximum total worth of victims that may be evicted together.

        Each counts with the tightest of its limits alone, so that the truth may be less.
        """
        total = 0
        limited: dict[Hashable, list[tuple[int, int]]] = {}
        for candidate, worth in candidates:
            if candidate.ineligible is not None:
                continue
            drawn = [key for key, amount in candidate.usage.items() if amount]
            if drawn:
                key = min(drawn, key=lambda key: self._limits[key].most)
                limited.setdefault(key, []).append((worth, candidate.usage[key]))
            else:
                total += worth
        return total + sum(self._limits[key].max_worth(each) for key, each in limited.items())

    def grounds(self, candidate: VictimEligibility) -> str:
        """Return the grounds for an eviction.

        `priority 1000 > 0`, `queue batch has 4 GPUs more than its fair share`.
        """
        queue = self._queues.queue_state(candidate.victim.pods[0].pod)
        if self._is_own(queue):
            return f"priority {self._preemptor.priority} > {candidate.victim.priority}"
        return f"queue {queue.name} has {format_gpus(queue.surplus)} more than its fair share"

    def victim_queues(self, victim: victims.Victim) -> frozenset[str]:
        """Return the queues of a victim's pods, by name."""
        return frozenset(self._queues.queue_state(holder.pod).name for holder in victim.pods)

    def _evaluate(self, victim: victims.Victim) -> VictimEligibility:
        queue_states = [self._queues.queue_state(holder.pod) for holder in victim.pods]
        ineligible = self._ineligibility(victim, queue_states)
        if ineligible is not None:
            return VictimEligibility(victim, ineligible=ineligible[0], message=ineligible[1])
        draws: dict[Hashable, int] = {}
        for queue_state in queue_states:
            if not self._is_own(queue_state):
                draws["queue", queue_state.name] = victim.thousandths
                self._limits["queue", queue_state.name] = Limit(
                    queue_state.surplus, excludes_largest=True
                )
        for holder in victim.pods:
            for budget in self._budgets.pod_budgets(holder.pod):
                key = ("budget", budget.key)
                draws[key] = draws.get(key, 0) + 1
        if not all(self._limits[key].allows([amount]) for key, amount in draws.items()):
            why = ", ".join(sorted(str(key[1]) for key in draws if isinstance(key, tuple)))
            return VictimEligibility(
                victim, ineligible=reasons.Reason.DISRUPTION_BUDGET, message=why
            )
        idle = all(queue_state.is_idle for queue_state in queue_states)
        return VictimEligibility(victim, 0 if idle else victim.lost_at(self._now), draws)

    def _ineligibility(
        self, victim: victims.Victim, queue_states: Sequence[QueueState]
    ) -> _Ineligibility | None:
        if victim.key in self._preemptor.own_victims:
            return reasons.Reason.PRIORITY_NOT_LOWER, "it belongs to the pending workload"
        ineligibilities = (
            ineligible
            for holder, queue_state in zip(victim.pods, queue_states, strict=True)
            for ineligible in self._ineligibilities(victim, holder.pod, queue_state)
        )
        return next(ineligibilities, None)

    def _ineligibilities(
        self, victim: victims.Victim, pod: pods.Pod, queue: QueueState
    ) -> Iterator[_Ineligibility]:
        """Yield reasons in reporting order."""
        if pod.deleting or pod.finished:
            yield reasons.Reason.TERMINATING, f"pod {pod.key}"
        if holders.returns_to_node(pod) or (pod.owner is None and not pod.preemptible):
            yield reasons.Reason.NO_CONTROLLER, f"pod {pod.key}"
        if not queue.preemptible:
            yield reasons.Reason.QUEUE_NOT_PREEMPTIBLE, f"queue {queue.name}"
        yield from self._queue_ineligibilities(victim, queue)
        started = victims.parse_time(pod.started)
        ran = 0.0 if started is None else self._now - started
        if ran < queue.min_run_s:
            text = f"pod {pod.key} ran {max(int(ran), 0)} s of {queue.min_run_s:g}"
            yield reasons.Reason.MIN_RUNTIME_NOT_REACHED, text
        budgets = self._budgets.pod_budgets(pod)
        if len(budgets) > 1:
            text = " and ".join(budget.key for budget in budgets)
            yield reasons.Reason.DISRUPTION_BUDGET, f"pod {pod.key} is protected by {text}"

    def _queue_ineligibilities(
        self, victim: victims.Victim, queue: QueueState
    ) -> Iterator[_Ineligibility]:
        lower = victim.priority < self._preemptor.priority
        text = f"priority {victim.priority}, not below {self._preemptor.priority}"
        if self._is_own(queue):
            if not lower:
                yield reasons.Reason.PRIORITY_NOT_LOWER, text
            return
        if not self._preemptor.is_within_fair_share:
            yield reasons.Reason.BEYOND_FAIR_SHARE, f"queue {self._preemptor.queue}"
        if queue.reclaim == "Never":
            yield reasons.Reason.RECLAIM_NEVER, f"queue {queue.name}"
        if queue.surplus <= 0:
            yield reasons.Reason.WITHIN_FAIR_SHARE, f"queue {queue.name}"
        if queue.reclaim == "LowerPriority" and not lower:
            yield reasons.Reason.PRIORITY_NOT_LOWER, text

    def _is_own(self, queue: QueueState) -> bool:
        return queue.name == self._preemptor.queue


def format_gpus(thousandths: int) -> str:
    """`4 GPUs`, `1 GPU`, `0.25 GPUs`."""
    whole = thousandths / queues.THOUSAND
    return f"{whole:g} GPU{'' if whole == 1 else 's'}"
