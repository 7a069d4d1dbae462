"""Who may go for whom. Pure.

In one queue, and where there are none: who has strictly lower priority. In another queue: who has
what that queue has beyond its fair share, as long as the waiting queue stays within its own; the
other queue says whether for anyone or for higher priority only, or for nobody. Whoever goes is made
again elsewhere, has run long enough, and is let go by its PodDisruptionBudgets.
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
    """Who waits: `leaf` is its queue, "" none.

    `preempts`: not by its preemptionPolicy Never. `within`: its queue has no more than its fair
    share even once it is placed. `own` are the units that it is part of, which never go for it.
    """

    priority: int
    queue: str = ""
    preempts: bool = True
    is_within_fair_share: bool = False
    own_victims: frozenset[victims.VictimKey] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue as far as its pods may go. `surplus` is what it has beyond its fair share.

    That is in thousandths of a GPU, below 0 where it has less. With `idle` the pod does nothing
    and its queue wants such to go first: nothing is lost with it.
    """

    name: str = ""
    preemptible: bool = True
    reclaim: api.Reclaim = "LowerPriority"
    min_run_s: float = 0.0
    surplus: int = 0
    is_idle: bool = False


class Queues(Protocol):
    """What the queue engine knows."""

    def queue_state(self, pod: pods.Pod) -> QueueState:
        """The queue of a pod that has something; name "" where it is in none."""
        ...


class NoQueues:
    """A cluster without queues."""

    def __init__(self) -> None:
        self._none = QueueState()

    def queue_state(self, _pod: pods.Pod) -> QueueState:
        """None."""
        return self._none


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may be drawn together: up to `most`; with `last`, what is largest is not counted.

    The former is a PodDisruptionBudget's. The latter is a queue's surplus: each may go while some
    of it is left, so that it is never taken further than one unit below.
    """

    most: int
    excludes_largest: bool = False

    def allows(self, draws: Sequence[int]) -> bool:
        """Whether all of these may be drawn; if so then some of them as well."""
        if self.excludes_largest:
            return sum(draws) - max(draws, default=0) < self.most
        return sum(draws) <= self.most

    def max_worth(self, found: Sequence[tuple[int, int]]) -> int:
        """Of what is worth so much and draws so much: what is within the limit is worth at most."""
        left = self.most
        if self.excludes_largest:
            left += max((draw for _, draw in found), default=0) - 1
        total = 0
        for worth, draw in sorted(found, key=lambda one: -one[0] / one[1]):
            if draw > left:
                return total + worth * max(left, 0) // draw
            left -= draw
            total += worth
        return total


@dataclass(frozen=True, slots=True)
class VictimEligibility:
    """A unit for one who waits: what is lost with it, what it draws on which limit.

    `lost` is in thousandths of a GPU times seconds. `barred`: it may not go, as `why` says.
    """

    victim: victims.Victim
    lost: int = 0
    usage: Mapping[Hashable, int] = field(default_factory=dict)
    ineligible: reasons.Reason | None = None
    message: str = ""

    @property
    def lost_s(self) -> float:
        """GPU-seconds."""
        return self.lost / queues.THOUSAND

    @property
    def rank(self) -> tuple[int, int, str]:
        """Less goes first: what is lost, pods, name."""
        return self.lost, len(self.victim.pods), self.victim.name


_Ineligibility = tuple[reasons.Reason, str]


class PreemptionPolicy:
    """For one who waits, at one moment. `guards` are the cluster's PodDisruptionBudgets.

    `idles`: whether any `Leaf` may be `idle`. Where none is, plans are quicker if that is said.
    """

    def __init__(
        self,
        preemptor: Preemptor,
        turns: Queues,
        guards: disruption_budgets.Guards,
        now: dt.datetime,
        *,
        idles: bool = True,
    ) -> None:
        self._has_idle = idles
        self._preemptor = preemptor
        self._queues = turns
        self._budgets = guards
        self._now = now.timestamp()
        self._limits: dict[Hashable, Limit] = {
            ("budget", key): Limit(allowed) for key, allowed in guards.allowed.items()
        }
        self._evaluated: dict[victims.VictimKey, VictimEligibility] = {}

    @property
    def preemptor(self) -> Preemptor:
        """Who waits."""
        return self._preemptor

    def eligibility(self, unit: victims.Victim) -> VictimEligibility:
        """Whether a unit may go, and what that would take."""
        known = self._evaluated.get(unit.key)
        if known is None or known.victim is not unit:
            known = self._evaluated[unit.key] = self._evaluate(unit)
        return known

    def loss_floors(self, found: Iterable[victims.Victim]) -> list[int]:
        """What is lost with each unit at least, found quickly: it may not be allowed to go."""
        now, idle = self._now, self._queues.queue_state
        if not self._has_idle:
            return [unit.lost_at(now) for unit in found]
        return [0 if idle(unit.pods[0].pod).is_idle else unit.lost_at(now) for unit in found]

    def may_evict(self, leaving: Iterable[VictimEligibility]) -> bool:
        """Whether all of these may go together; if so then some of them as well."""
        drawn: dict[Hashable, list[int]] = {}
        for one in leaving:
            if one.ineligible is not None:
                return False
            for key, amount in one.usage.items():
                drawn.setdefault(key, []).append(amount)
        return all(self._limits[key].allows(found) for key, found in drawn.items())

    def may_add(self, gone: Iterable[victims.Victim], new: Sequence[victims.Victim]) -> bool:
        """Whether limits let some go beside others; quick where none limits them.

        Whether each of them may go for itself is not asked.
        """
        found = [one for one in map(self.eligibility, new) if one.ineligible is None]
        if not any(one.usage for one in found):
            return True
        there = (one for one in map(self.eligibility, gone) if one.ineligible is None)
        return self.may_evict([*there, *found])

    def max_worth(self, found: Iterable[tuple[VictimEligibility, int]]) -> int:
        """Of units that are worth so much each, what those that go together are worth at most.

        Each counts with the tightest of its limits alone, so that it may be less in truth.
        """
        total = 0
        limited: dict[Hashable, list[tuple[int, int]]] = {}
        for one, worth in found:
            if one.ineligible is not None:
                continue
            drawn = [key for key, amount in one.usage.items() if amount]
            if drawn:
                key = min(drawn, key=lambda key: self._limits[key].most)
                limited.setdefault(key, []).append((worth, one.usage[key]))
            else:
                total += worth
        return total + sum(self._limits[key].max_worth(each) for key, each in limited.items())

    def grounds(self, one: VictimEligibility) -> str:
        """By what right a unit goes.

        `priority 1000 > 0`, `queue batch has 4 GPUs more than its fair share`.
        """
        leaf = self._queues.queue_state(one.victim.pods[0].pod)
        if self._is_own(leaf):
            return f"priority {self._preemptor.priority} > {one.victim.priority}"
        return f"queue {leaf.name} has {format_gpus(leaf.surplus)} more than its fair share"

    def victim_queues(self, unit: victims.Victim) -> frozenset[str]:
        """The queues that a unit's pods are in, by name."""
        return frozenset(self._queues.queue_state(one.pod).name for one in unit.pods)

    def _evaluate(self, unit: victims.Victim) -> VictimEligibility:
        leaves = [self._queues.queue_state(one.pod) for one in unit.pods]
        objection = self._ineligibility(unit, leaves)
        if objection is not None:
            return VictimEligibility(unit, ineligible=objection[0], message=objection[1])
        draws: dict[Hashable, int] = {}
        for leaf in leaves:
            if not self._is_own(leaf):
                draws["queue", leaf.name] = unit.thousandths
                self._limits["queue", leaf.name] = Limit(leaf.surplus, excludes_largest=True)
        for one in unit.pods:
            for budget in self._budgets.of(one.pod):
                key = ("budget", budget.key)
                draws[key] = draws.get(key, 0) + 1
        if not all(self._limits[key].allows([amount]) for key, amount in draws.items()):
            why = ", ".join(sorted(str(key[1]) for key in draws if isinstance(key, tuple)))
            return VictimEligibility(unit, ineligible=reasons.Reason.DISRUPTION_BUDGET, message=why)
        idle = all(leaf.is_idle for leaf in leaves)
        return VictimEligibility(unit, 0 if idle else unit.lost_at(self._now), draws)

    def _ineligibility(
        self, unit: victims.Victim, leaves: Sequence[QueueState]
    ) -> _Ineligibility | None:
        if unit.key in self._preemptor.own_victims:
            return reasons.Reason.PRIORITY_NOT_LOWER, "it is part of what waits"
        found = (
            one
            for tenant, leaf in zip(unit.pods, leaves, strict=True)
            for one in self._ineligibilities(unit, tenant.pod, leaf)
        )
        return next(found, None)

    def _ineligibilities(
        self, unit: victims.Victim, pod: pods.Pod, leaf: QueueState
    ) -> Iterator[_Ineligibility]:
        """In the order in which they are told."""
        if pod.deleting or pod.finished:
            yield reasons.Reason.GOING_ALREADY, f"pod {pod.key}"
        if holders.returns_to_node(pod) or (pod.owner is None and not pod.preemptible):
            yield reasons.Reason.NOT_MADE_AGAIN, f"pod {pod.key}"
        if not leaf.preemptible:
            yield reasons.Reason.QUEUE_NOT_PREEMPTIBLE, f"queue {leaf.name}"
        yield from self._queue_ineligibilities(unit, leaf)
        started = victims.parse_time(pod.started)
        ran = 0.0 if started is None else self._now - started
        if ran < leaf.min_run_s:
            text = f"pod {pod.key} ran {max(int(ran), 0)} s of {leaf.min_run_s:g}"
            yield reasons.Reason.RAN_TOO_SHORTLY, text
        guards = self._budgets.of(pod)
        if len(guards) > 1:
            text = " and ".join(one.key for one in guards)
            yield reasons.Reason.DISRUPTION_BUDGET, f"pod {pod.key} is guarded by {text}"

    def _queue_ineligibilities(
        self, unit: victims.Victim, leaf: QueueState
    ) -> Iterator[_Ineligibility]:
        lower = unit.priority < self._preemptor.priority
        text = f"priority {unit.priority}, not below {self._preemptor.priority}"
        if self._is_own(leaf):
            if not lower:
                yield reasons.Reason.PRIORITY_NOT_LOWER, text
            return
        if not self._preemptor.is_within_fair_share:
            yield reasons.Reason.BEYOND_FAIR_SHARE, f"queue {self._preemptor.queue}"
        if leaf.reclaim == "Never":
            yield reasons.Reason.RECLAIM_NEVER, f"queue {leaf.name}"
        if leaf.surplus <= 0:
            yield reasons.Reason.WITHIN_FAIR_SHARE, f"queue {leaf.name}"
        if leaf.reclaim == "LowerPriority" and not lower:
            yield reasons.Reason.PRIORITY_NOT_LOWER, text

    def _is_own(self, leaf: QueueState) -> bool:
        return leaf.name == self._preemptor.queue


def format_gpus(thousandths: int) -> str:
    """`4 GPUs`, `1 GPU`, `0.25 GPUs`."""
    whole = thousandths / queues.THOUSAND
    return f"{whole:g} GPU{'' if whole == 1 else 's'}"
