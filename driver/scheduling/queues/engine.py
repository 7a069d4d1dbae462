"""The engine of queues: fed with queues, fleet and charges; asked whose turn it is. Pure.

Owned by the thread that decides. Moments are seconds since the epoch.
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
"""What is used for so short a time does not count: many charges come at nearly one moment."""


class QueueEngine:
    """Of one fleet. `put_queue`, `renew` and `charge` feed it."""

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

    # What it is fed with.

    def set_queue(self, name: str, queue: queues.Queue | None) -> None:
        """A Queue came, changed or went. What only its status says changes nothing but the past."""
        before = self._queues.get(name)
        if queue is None:
            self._queues.pop(name, None)
            self._history.forget(name)
        else:
            if before is not None and before.uid != queue.uid:
                self._history.forget(name)
            self._queues[name] = queue
            self._restore_history(queue)
        if _spec_only(before) != _spec_only(queue):
            self._tree = self._fair_shares = None

    def _restore_history(self, queue: queues.Queue) -> None:
        usage = queue.usage
        self._history.set_half_life(queue.name, queue.half_life_s)
        if usage is None or not self._capacity.gpus:
            return
        # Who wrote something else there has no past.
        with contextlib.suppress(ValueError):
            at = dt.datetime.fromisoformat(usage.at).timestamp()
            seconds = max(0.0, usage.gpu_seconds) * resources.FULL / self._capacity.gpus
            self._history.resume(queue.name, at, seconds)

    def refresh(self, view: snapshot.Snapshot) -> None:
        """The fleet may be another one."""
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
        leaf: str,
        taken: resources.Amounts | None,
        now: float | None = None,
    ) -> None:
        """What a claim of a queue takes now; None frees it. Without `now`: since the last look."""
        if now is not None:
            self._advance(now)
        mine = self.tree.path(leaf)[-1]
        before = self._usage_by_tree.usage(mine).gpus
        changed = self._usage_by_tree.set_charge(self.tree, claim, leaf, taken)
        if not changed:
            return
        self._fair_shares = None
        if self._order is not None:
            more = self._usage_by_tree.usage(mine).gpus > before
            self._order.update_charges(leaf, changed, more=more)

    # What it answers.

    @property
    def tree(self) -> trees.QueueTree:
        """The queues that count, and what is wrong with the others."""
        if self._tree is None:
            self._tree = trees.build_tree(self._queues.values())
            self._usage.rebuild(self._tree)
            self._update_deserved(self._tree)
        return self._tree

    @property
    def _usage_by_tree(self) -> queue_usage.UsageLedger:
        """The ledger, by the tree of now."""
        _ = self.tree
        return self._usage

    def _update_deserved(self, tree: trees.QueueTree) -> None:
        found = fair_share.deserved_shares(tree, self._capacity)
        self._deserved = {name: float(one) for name, one in found.items()}
        self._fair_shares = None

    @property
    def capacity(self) -> resources.Amounts:
        """The fleet, as of the last `renew`."""
        return self._capacity

    def pod_queue(self, pod: pods.Pod) -> str:
        """The queue of a pod, "" for none."""
        return self.tree.pod_queue(pod)

    def queue(self, leaf: str) -> queues.Queue:
        """What a queue says of itself; the implicit one for what is none."""
        return self.tree.accepted.get(leaf, trees.IMPLICIT_QUEUE)

    def usage(self, queue: str) -> resources.Amounts:
        """What a queue and its children have."""
        return self._usage_by_tree.usage(queue)

    def requested_amounts(
        self, view: snapshot.Snapshot, found: Iterable[claims.Claim]
    ) -> resources.Amounts:
        """`amounts.asked`, worked out once for claims of the same templates in the same world."""
        self.refresh(view)
        known = (*found,)
        specs = tuple(claim.spec for claim in known)
        if specs not in self._requested:
            if len(self._requested) >= _MAX_CACHED:
                self._requested.clear()
            self._requested[specs] = resources.requested_amounts(view, known)
        return self._requested[specs]

    def exceeded_limit(
        self, leaf: str, asked: resources.Amounts
    ) -> status_types.ExceededLimit | None:
        """The limit that would be exceeded, of the queue or else of the nearest ancestor."""
        for name in reversed(self.tree.path(leaf)):
            queue = self.tree.accepted[name]
            used = self._usage_by_tree.usage(name)
            for bound in quota.bounds(quota.effective_limit(queue)):
                more, now = quota.bounded_amount(asked, bound), quota.bounded_amount(used, bound)
                if more and now + more > bound.limit:
                    own = bound in quota.bounds(queue.limit)
                    return status_types.ExceededLimit(name, bound, now, more, is_limit=own)
        return None

    def full_models(self, leaf: str) -> frozenset[str]:
        """The models of which a queue, or one above it, has all that it may."""
        found: set[str] = set()
        for name in self.tree.path(leaf):
            used = self._usage.usage(name)
            for bound in quota.bounds(quota.effective_limit(self.tree.accepted[name])):
                if bound.product and quota.bounded_amount(used, bound) >= bound.limit:
                    found.add(bound.product)
        return frozenset(found)

    def schedule_order(
        self, waiting: Iterable[order.PendingEntry], now: float
    ) -> order.ScheduleOrder:
        """The order of what waits. One at a time: charges are told to the last one alone."""
        self._advance(now)
        self._order = order.ScheduleOrder(self, waiting, now)
        self._fair_shares = None
        return self._order

    def hypothetical_order(
        self, waiting: Iterable[order.PendingEntry], now: float
    ) -> list[order.PendingEntry]:
        """The order of what waits if each got what it asks; nothing is remembered of it."""
        line = order.ScheduleOrder(_HypotheticalEngine(self), waiting, now)
        found: list[order.PendingEntry] = []
        for one in line:
            changed = self.charge_hypothetical(("in order", len(found)), one.queue, one.requested)
            line.update_charges(one.queue, changed, more=bool(one.requested.gpus))
            found.append(one)
        for place, one in enumerate(found):
            self.charge_hypothetical(("in order", place), one.queue, None)
        return found

    def charge_hypothetical(
        self, key: Hashable, leaf: str, taken: resources.Amounts | None
    ) -> Iterable[str]:
        """Count something for a queue for as long as it is weighed what would be; None ends that.

        The line that is being gone through does not hear of it. The queues that it changes.
        """
        self._fair_shares = None
        return self._usage_by_tree.set_charge(self.tree, key, leaf, taken)

    def turn_key(self, queue: str) -> order.TurnKey:
        """Below what it deserves first, the emptiest of these; then the least beyond, by weight.

        With a half-life the mean of what is beyond now and of what was on average counts. Half a
        GPU more is counted for each: where shares are no whole GPUs that gives each the nearest
        number (the method of Webster and Sainte-Lague).
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

    def last_starvation_start(self, leaf: str) -> float | None:
        """When the last workload of a queue started for having waited too long."""
        return self._starvation_starts.get(leaf)

    def record_starvation_start(self, leaf: str, now: float) -> None:
        """One did now."""
        self._starvation_starts[leaf] = now

    def fair_shares(self) -> Mapping[str, Fraction]:
        """The fair share of each queue, by what is used and waits now (`fair`)."""
        if self._fair_shares is None:
            self._fair_shares = self._compute_shares(self._demand())
        return self._fair_shares

    def _demand(self) -> dict[str, resources.Amounts]:
        found = dict(self._usage_by_tree.own_usage(self.tree))
        for leaf, asked in self._order.requested.items() if self._order else ():
            mine = self.tree.queue_or_implicit(leaf)
            found[mine] = found.get(mine, resources.ZERO) + asked
        return found

    def _compute_shares(self, wanted: Mapping[str, resources.Amounts]) -> Mapping[str, Fraction]:
        past = {
            name: Fraction(self._past_beyond(name))
            for name in self.tree.accepted
            if self._history.has_history(name)
        }
        return fair_share.fair_shares_of_amounts(self.tree, self._capacity, wanted, past)

    def is_within_fair_share(self, leaf: str, extra: resources.Amounts) -> bool:
        """Whether a queue would have no more than its fair share with so much more."""
        mine = self.tree.queue_or_implicit(leaf)
        after = self._usage_by_tree.usage(mine) + extra
        wanted = self._demand()
        shares = self.fair_shares()
        if not after.fits(wanted[mine]):
            shares = self._compute_shares({**wanted, mine: after})
        return after.dominant(self._capacity) <= shares[mine]

    def surplus(self, leaf: str) -> int:
        """What a queue has beyond its fair share, in thousandths of GPUs; below 0: what it lacks.

        Rounded down.
        """
        mine = self.tree.queue_or_implicit(leaf)
        share = self._usage_by_tree.usage(mine).dominant(self._capacity)
        return math.floor((share - self.fair_shares()[mine]) * self._capacity.gpus)

    def queue_statuses(self, now: float) -> Mapping[str, status_types.QueueStatus]:
        """How each accepted queue stands, the implicit one ("") included."""
        self._advance(now)
        queued = _queued_by_queue(self.tree, self._order.pending() if self._order else (), now)
        shares = self.fair_shares()
        return {
            name: self._build_status(name, float(share), queued.get(name, _NOTHING_QUEUED))
            for name, share in shares.items()
        }

    def queue_status(self, queue: str) -> status_types.QueueStatus:
        """How an accepted queue stands, but for what waits in it; quick, for words (`words`)."""
        return self._build_status(queue, float(self.fair_shares()[queue]), _NOTHING_QUEUED)

    def _build_status(self, name: str, share: float, known: "_Queued") -> status_types.QueueStatus:
        used = self._usage_by_tree.usage(name)
        return status_types.QueueStatus(
            usage=used,
            share=used.share(self._capacity),
            fair_share=share,
            deserved=self.tree.deserved[name],
            deserved_share=self._deserved[name],
            fleet_gpus=self._capacity.gpus,
            pending=known.number,
            oldest_wait_s=known.oldest_s,
            is_starving=known.starving,
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
    """Where a line stands that nobody goes through: what it rescues stays with it."""

    def __init__(self, of: QueueEngine) -> None:
        self._engine = of
        self._starvation_starts: dict[str, float] = {}

    @property
    def tree(self) -> trees.QueueTree:
        """The queues that count."""
        return self._engine.tree

    def turn_key(self, queue: str) -> order.TurnKey:
        """Whose turn it is, with all that is supposed."""
        return self._engine.turn_key(queue)

    def last_starvation_start(self, leaf: str) -> float | None:
        """When the last workload of a queue started for having waited too long."""
        return self._starvation_starts.get(leaf, self._engine.last_starvation_start(leaf))

    def record_starvation_start(self, leaf: str, now: float) -> None:
        """One would."""
        self._starvation_starts[leaf] = now


class _Queued(NamedTuple):
    """What waits in a queue and its children."""

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
    found: dict[str, _Queued] = {}
    for one in waiting:
        leaf = tree.queue_or_implicit(one.queue)
        waited_s = max(0.0, now - one.since)
        starving = not tree.is_implicit_only and waited_s > tree.accepted[leaf].starvation_s
        for name in tree.path(leaf):
            known = found.get(name, _NOTHING_QUEUED)
            found[name] = known.with_workload(waited_s, starving=starving)
    return found


def _spec_only(queue: queues.Queue | None) -> queues.Queue | None:
    """All of a queue but what we write."""
    return queue and replace(queue, usage=None, version="", generation=0)
