"""Queue engine: fed with queues, fleet and charges; returns order and limits. Pure.

Owned by the scheduling thread. Times are seconds since the epoch.
"""

import contextlib
import datetime as dt
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from driver.resources import queues
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.queues import (
    fair_share,
    order,
    quota,
    resources,
    status_types,
    usage_history,
)
from driver.scheduling.queues import tree as trees
from driver.scheduling.queues import usage as queue_usage
from driver.scheduling.snapshot import snapshot

_UNDER_DESERVED, _OVER_DESERVED = 0, 1
_MAX_CACHED = 4096
_MIN_ADVANCE_S = 1.0
"""Shorter usage does not count: many charges arrive almost at once."""


class QueueEngine:
    """Engine for one fleet, fed by `set_queue`, `refresh` and `charge`."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._queues: dict[str, queues.Queue] = {}
        self._tree: trees.QueueTree | None = None
        self._usage = queue_usage.UsageLedger()
        self._history = usage_history.UsageHistory()
        self._capacity = resources.ZERO
        self._generation: int | None = None
        self._deserved: Mapping[str, float] = {}
        self._fair_shares: Mapping[str, Fraction] | None = None
        self._order: order.ScheduleOrder | None = None
        self._starvation_starts: dict[str, float] = {}
        self._requested: dict[object, resources.Amounts] = {}
        self._advanced_at = -math.inf

    # Updates.

    def set_queue(self, name: str, queue: queues.Queue | None) -> None:
        """Set or delete a Queue. A change of its status alone affects its usage history only."""
        previous = self._queues.get(name)
        if queue is None:
            self._queues.pop(name, None)
            self._history.forget(name)
        else:
            if previous is not None and previous.uid != queue.uid:
                self._history.forget(name)
            self._queues[name] = queue
            self._restore_history(queue)
        if _spec_only(previous) != _spec_only(queue):
            self._tree = self._fair_shares = None

    def _restore_history(self, queue: queues.Queue) -> None:
        usage = queue.usage
        self._history.set_half_life(queue.name, queue.half_life_s)
        if usage is None or not self._capacity.gpus:
            return
        # A foreign value leaves the queue without history.
        with contextlib.suppress(ValueError):
            timestamp = dt.datetime.fromisoformat(usage.at).timestamp()
            seconds = max(0.0, usage.gpu_seconds) * resources.FULL / self._capacity.gpus
            self._history.resume(queue.name, timestamp, seconds)

    def refresh(self, view: snapshot.Snapshot) -> None:
        """Update the fleet's capacity if pools changed."""
        if view.generation == self._generation:
            return
        first = not self._capacity.gpus
        self._generation = view.generation
        self._capacity = resources.capacity(view)
        self._requested.clear()
        self._update_deserved(self.tree)
        for queue in self._queues.values() if first else ():
            self._restore_history(queue)

    def charge(
        self,
        claim: Hashable,
        queue: str,
        taken: resources.Amounts | None,
        now: float | None = None,
    ) -> None:
        """Set what a claim of a queue uses; None frees it. Without `now`: since the last update."""
        if now is not None:
            self._advance(now)
        own_queue = self.tree.path(queue)[-1]
        previous = self._usage_by_tree.usage(own_queue).gpus
        changed = self._usage_by_tree.set_charge(self.tree, claim, queue, taken)
        if not changed:
            return
        self._fair_shares = None
        if self._order is not None:
            more = self._usage_by_tree.usage(own_queue).gpus > previous
            self._order.update_charges(queue, changed, more=more)

    # Queries.

    @property
    def tree(self) -> trees.QueueTree:
        """Accepted queues, and the faults of the others."""
        if self._tree is None:
            self._tree = trees.build_tree(self._queues.values())
            self._usage.rebuild(self._tree)
            self._update_deserved(self._tree)
        return self._tree

    @property
    def _usage_by_tree(self) -> queue_usage.UsageLedger:
        """Usage ledger of the current tree."""
        _ = self.tree
        return self._usage

    def _update_deserved(self, tree: trees.QueueTree) -> None:
        shares = fair_share.deserved_shares(tree, self._capacity)
        self._deserved = {name: float(share) for name, share in shares.items()}
        self._fair_shares = None

    @property
    def capacity(self) -> resources.Amounts:
        """Capacity of the fleet, as of the last `refresh`."""
        return self._capacity

    def pod_queue(self, pod: pods.Pod) -> str:
        """Return the queue of a pod, "" for none."""
        return self.tree.pod_queue(pod)

    def queue(self, leaf: str) -> queues.Queue:
        """Return the spec of a queue; the implicit one for an unknown name."""
        return self.tree.accepted.get(leaf, trees.IMPLICIT_QUEUE)

    def usage(self, queue: str) -> resources.Amounts:
        """Return the usage of a queue and its children."""
        return self._usage_by_tree.usage(queue)

    def requested_amounts(
        self, view: snapshot.Snapshot, all_claims: Iterable[claims.Claim]
    ) -> resources.Amounts:
        """Return `resources.requested_amounts`, cached by the claims' specs and the generation."""
        self.refresh(view)
        claim_list = (*all_claims,)
        specs = tuple(claim.spec for claim in claim_list)
        if specs not in self._requested:
            if len(self._requested) >= _MAX_CACHED:
                self._requested.clear()
            self._requested[specs] = resources.requested_amounts(view, claim_list)
        return self._requested[specs]

    def exceeded_limit(
        self, queue_name: str, amounts: resources.Amounts
    ) -> status_types.ExceededLimit | None:
        """Return the limit that would be exceeded, of the queue or else the nearest ancestor."""
        for name in reversed(self.tree.path(queue_name)):
            spec = self.tree.accepted[name]
            used = self._usage_by_tree.usage(name)
            for bound in quota.bounds(quota.effective_limit(spec)):
                more, now = quota.bounded_amount(amounts, bound), quota.bounded_amount(used, bound)
                if more and now + more > bound.limit:
                    own = bound in quota.bounds(spec.limit)
                    return status_types.ExceededLimit(name, bound, now, more, is_limit=own)
        return None

    def full_models(self, queue_name: str) -> frozenset[str]:
        """Return the GPU models of which a queue, or an ancestor, has its limit."""
        names: set[str] = set()
        for name in self.tree.path(queue_name):
            used = self._usage.usage(name)
            for bound in quota.bounds(quota.effective_limit(self.tree.accepted[name])):
                is_full = quota.bounded_amount(used, bound) >= bound.limit
                if bound.field == "models" and is_full:
                    names.add(bound.kind)
        return frozenset(names)

    def schedule_order(
        self, waiting: Iterable[order.PendingEntry], now: float
    ) -> order.ScheduleOrder:
        """Return the order of pending workloads. Only the last one returned follows charges."""
        self._advance(now)
        self._order = order.ScheduleOrder(self, waiting, now)
        self._fair_shares = None
        return self._order

    def hypothetical_order(
        self, waiting: Iterable[order.PendingEntry], now: float
    ) -> list[order.PendingEntry]:
        """Return the order if each got its request; nothing is recorded."""
        line = order.ScheduleOrder(_HypotheticalEngine(self), waiting, now)
        ordered: list[order.PendingEntry] = []
        for entry in line:
            changed = self.charge_hypothetical(
                ("in order", len(ordered)), entry.queue, entry.requested
            )
            line.update_charges(entry.queue, changed, more=bool(entry.requested.gpus))
            ordered.append(entry)
        for index, entry in enumerate(ordered):
            self.charge_hypothetical(("in order", index), entry.queue, None)
        return ordered

    def charge_hypothetical(
        self, key: Hashable, queue: str, taken: resources.Amounts | None
    ) -> Iterable[str]:
        """Charge a queue for a simulation; None ends that. Returns the changed queues.

        The current order does not follow it.
        """
        self._fair_shares = None
        return self._usage_by_tree.set_charge(self.tree, key, queue, taken)

    def turn_key(self, queue: str) -> order.TurnKey:
        """Return the sort key of a queue: below its deserved share first, emptiest first.

        Then by the usage beyond it, by weight. With a half-life the mean of current and past usage
        beyond it counts. Half a GPU more is counted for each: if shares are no whole GPUs that
        gives each the nearest number (the method of Webster and Sainte-Lague).
        """
        share = self._usage_by_tree.usage(queue).share(self._capacity)
        due = self._deserved.get(queue, 0.0)
        if share < due:
            return _UNDER_DESERVED, share / due, queue
        beyond = share - due
        if self._history.has_history(queue):
            beyond = (beyond + self._past_beyond(queue)) / 2
        half = resources.FULL / 2 / max(self._capacity.gpus, 1)
        return _OVER_DESERVED, (beyond + half) / self.queue(queue).weight, queue

    def _past_beyond(self, queue: str) -> float:
        return max(0.0, self._history.average(queue) - self._deserved.get(queue, 0.0))

    def last_starvation_start(self, queue: str) -> float | None:
        """Return when a starving workload of a queue started last."""
        return self._starvation_starts.get(queue)

    def record_starvation_start(self, queue: str, now: float) -> None:
        """Record that a starving workload of a queue started."""
        self._starvation_starts[queue] = now

    def fair_shares(self) -> Mapping[str, Fraction]:
        """Return the fair share of each queue, by usage and pending requests (`fair_share`)."""
        if self._fair_shares is None:
            self._fair_shares = self._compute_shares(self._demand())
        return self._fair_shares

    def _demand(self) -> dict[str, resources.Amounts]:
        demand = dict(self._usage_by_tree.own_usage(self.tree))
        for queue, requested in self._order.requested.items() if self._order else ():
            own_queue = self.tree.queue_or_implicit(queue)
            demand[own_queue] = demand.get(own_queue, resources.ZERO) + requested
        return demand

    def _compute_shares(self, demand: Mapping[str, resources.Amounts]) -> Mapping[str, Fraction]:
        past = {
            name: Fraction(self._past_beyond(name))
            for name in self.tree.accepted
            if self._history.has_history(name)
        }
        return fair_share.fair_shares_of_amounts(self.tree, self._capacity, demand, past)

    def is_within_fair_share(self, queue: str, extra: resources.Amounts) -> bool:
        """Return whether a queue would be within its fair share with more amounts."""
        own_queue = self.tree.queue_or_implicit(queue)
        after = self._usage_by_tree.usage(own_queue) + extra
        demand = self._demand()
        shares = self.fair_shares()
        if not after.fits(demand[own_queue]):
            shares = self._compute_shares({**demand, own_queue: after})
        return after.dominant(self._capacity) <= shares[own_queue]

    def surplus(self, queue: str) -> int:
        """Return the usage beyond the fair share, in thousandths of GPUs; below 0: what is lacking.

        Rounded down.
        """
        own_queue = self.tree.queue_or_implicit(queue)
        share = self._usage_by_tree.usage(own_queue).dominant(self._capacity)
        return math.floor((share - self.fair_shares()[own_queue]) * self._capacity.gpus)

    def queue_statuses(self, now: float) -> Mapping[str, status_types.QueueStatus]:
        """Return the status of each accepted queue, including the implicit one ("")."""
        self._advance(now)
        queued = _queued_by_queue(self.tree, self._order.pending() if self._order else (), now)
        shares = self.fair_shares()
        return {
            name: self._build_status(name, float(share), queued.get(name, _NOTHING_QUEUED))
            for name, share in shares.items()
        }

    def queue_status(self, queue: str) -> status_types.QueueStatus:
        """Return the status of an accepted queue without pending workloads; quick, for messages."""
        return self._build_status(queue, float(self.fair_shares()[queue]), _NOTHING_QUEUED)

    def _build_status(self, name: str, share: float, queued: "_Queued") -> status_types.QueueStatus:
        used = self._usage_by_tree.usage(name)
        return status_types.QueueStatus(
            usage=used,
            share=used.share(self._capacity),
            fair_share=share,
            deserved=self.tree.deserved[name],
            deserved_share=self._deserved[name],
            fleet_gpus=self._capacity.gpus,
            pending=queued.number,
            oldest_wait_s=queued.oldest_s,
            is_starving=queued.starving,
            average_share=self._history.average(name) if self._history.has_history(name) else None,
            usage_seconds=self._history.usage_seconds(name),
        )

    def _advance(self, now: float) -> None:
        if abs(now - self._advanced_at) < _MIN_ADVANCE_S:
            return
        self._advanced_at = now
        shares = {
            name: self._usage_by_tree.usage(name).share(self._capacity)
            for name in self._queues
            if self._history.has_history(name)
        }
        self._history.advance(now, shares)


class _HypotheticalEngine:
    """Context of an order that is not scheduled: its starvation starts are its own."""

    def __init__(self, engine: QueueEngine) -> None:
        self._engine = engine
        self._starvation_starts: dict[str, float] = {}

    @property
    def tree(self) -> trees.QueueTree:
        """The queue tree."""
        return self._engine.tree

    def turn_key(self, queue: str) -> order.TurnKey:
        """Return the sort key of a queue, with hypothetical charges."""
        return self._engine.turn_key(queue)

    def last_starvation_start(self, queue: str) -> float | None:
        """Return when a starving workload of a queue started last."""
        return self._starvation_starts.get(queue, self._engine.last_starvation_start(queue))

    def record_starvation_start(self, queue: str, now: float) -> None:
        """Record a hypothetical start."""
        self._starvation_starts[queue] = now


class _Queued(NamedTuple):
    """Pending workloads of a queue and its children."""

    number: int = 0
    oldest_s: float | None = None
    starving: bool = False

    def with_workload(self, waited_s: float, *, starving: bool) -> "_Queued":
        oldest = waited_s if self.oldest_s is None else max(self.oldest_s, waited_s)
        return _Queued(self.number + 1, oldest, self.starving or starving)


_NOTHING_QUEUED = _Queued()


def _queued_by_queue(
    tree: trees.QueueTree, waiting: Iterable[order.PendingEntry], now: float
) -> Mapping[str, _Queued]:
    queued: dict[str, _Queued] = {}
    for entry in waiting:
        queue = tree.queue_or_implicit(entry.queue)
        waited_s = max(0.0, now - entry.since)
        starving = not tree.is_implicit_only and waited_s > tree.accepted[queue].starvation_s
        for name in tree.path(queue):
            current = queued.get(name, _NOTHING_QUEUED)
            queued[name] = current.with_workload(waited_s, starving=starving)
    return queued


def _spec_only(queue: queues.Queue | None) -> queues.Queue | None:
    """Return a queue without the fields that we write."""
    return queue and replace(queue, usage=None, version="", generation=0)
