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

_UNDER, _OVER = 0, 1
_MOST_ASKED = 4096
_INSTANT_S = 1.0
"""What is used for so short a time does not count: many charges come at nearly one moment."""


class Engine:
    """Of one fleet. `put_queue`, `renew` and `charge` feed it."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._known: dict[str, queues.Queue] = {}
        self._tree: trees.Tree | None = None
        self._ledger = queue_usage.Ledger()
        self._history = usage_history.History()
        self._capacity = resources.NOTHING
        self._world: int | None = None
        self._deserved: Mapping[str, float] = {}
        self._fair: Mapping[str, Fraction] | None = None
        self._line: order.Line | None = None
        self._rescued: dict[str, float] = {}
        self._asked: dict[object, resources.Amounts] = {}
        self._advanced = -math.inf

    # What it is fed with.

    def put_queue(self, name: str, queue: queues.Queue | None) -> None:
        """A Queue came, changed or went. What only its status says changes nothing but the past."""
        before = self._known.get(name)
        if queue is None:
            self._known.pop(name, None)
            self._history.forget(name)
        else:
            if before is not None and before.uid != queue.uid:
                self._history.forget(name)
            self._known[name] = queue
            self._remember(queue)
        if _spec(before) != _spec(queue):
            self._tree = self._fair = None

    def _remember(self, queue: queues.Queue) -> None:
        usage = queue.usage
        self._history.keep(queue.name, queue.half_life_s)
        if usage is None or not self._capacity.gpus:
            return
        # Who wrote something else there has no past.
        with contextlib.suppress(ValueError):
            at = dt.datetime.fromisoformat(usage.at).timestamp()
            seconds = max(0.0, usage.gpu_seconds) * resources.FULL / self._capacity.gpus
            self._history.resume(queue.name, at, seconds)

    def renew(self, view: snapshot.Snapshot) -> None:
        """The fleet may be another one."""
        if view.generation == self._world:
            return
        first = not self._capacity.gpus
        self._world = view.generation
        self._capacity = resources.capacity(view)
        self._asked.clear()
        self._weigh(self.tree)
        for queue in self._known.values() if first else ():
            self._remember(queue)

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
        before = self._books.used(mine).gpus
        changed = self._books.put(self.tree, claim, leaf, taken)
        if not changed:
            return
        self._fair = None
        if self._line is not None:
            more = self._books.used(mine).gpus > before
            self._line.charged(leaf, changed, more=more)

    # What it answers.

    @property
    def tree(self) -> trees.Tree:
        """The queues that count, and what is wrong with the others."""
        if self._tree is None:
            self._tree = trees.build(self._known.values())
            self._ledger.rebuild(self._tree)
            self._weigh(self._tree)
        return self._tree

    @property
    def _books(self) -> queue_usage.Ledger:
        """The ledger, by the tree of now."""
        _ = self.tree
        return self._ledger

    def _weigh(self, tree: trees.Tree) -> None:
        found = fair_share.deserved(tree, self._capacity)
        self._deserved = {name: float(one) for name, one in found.items()}
        self._fair = None

    @property
    def capacity(self) -> resources.Amounts:
        """The fleet, as of the last `renew`."""
        return self._capacity

    def leaf_of(self, pod: pods.Pod) -> str:
        """The queue of a pod, "" for none."""
        return self.tree.leaf_of(pod)

    def queue(self, leaf: str) -> queues.Queue:
        """What a queue says of itself; the implicit one for what is none."""
        return self.tree.accepted.get(leaf, trees.IMPLICIT)

    def used(self, queue: str) -> resources.Amounts:
        """What a queue and its children have."""
        return self._books.used(queue)

    def asked(self, view: snapshot.Snapshot, found: Iterable[claims.Claim]) -> resources.Amounts:
        """`amounts.asked`, worked out once for claims of the same templates in the same world."""
        self.renew(view)
        known = (*found,)
        specs = tuple(claim.spec for claim in known)
        if specs not in self._asked:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            self._asked[specs] = resources.asked(view, known)
        return self._asked[specs]

    def may(self, leaf: str, asked: resources.Amounts) -> status_types.Over | None:
        """The limit that would be exceeded, of the queue or else of the nearest ancestor."""
        for name in reversed(self.tree.path(leaf)):
            queue = self.tree.accepted[name]
            used = self._books.used(name)
            for bound in quota.bounds(quota.limit(queue)):
                more, now = quota.of(asked, bound), quota.of(used, bound)
                if more and now + more > bound.most:
                    own = bound in quota.bounds(queue.limit)
                    return status_types.Over(name, bound, now, more, borrowing=own)
        return None

    def full_models(self, leaf: str) -> frozenset[str]:
        """The models of which a queue, or one above it, has all that it may."""
        found: set[str] = set()
        for name in self.tree.path(leaf):
            used = self._ledger.used(name)
            for bound in quota.bounds(quota.limit(self.tree.accepted[name])):
                if bound.product and quota.of(used, bound) >= bound.most:
                    found.add(bound.product)
        return frozenset(found)

    def line(self, waiting: Iterable[order.Waiting], now: float) -> order.Line:
        """The order of what waits. One at a time: charges are told to the last one alone."""
        self._advance(now)
        self._line = order.Line(self, waiting, now)
        self._fair = None
        return self._line

    def in_order(self, waiting: Iterable[order.Waiting], now: float) -> list[order.Waiting]:
        """The order of what waits if each got what it asks; nothing is remembered of it."""
        line = order.Line(_Supposed(self), waiting, now)
        found: list[order.Waiting] = []
        for one in line:
            changed = self.suppose(("in order", len(found)), one.leaf, one.asked)
            line.charged(one.leaf, changed, more=bool(one.asked.gpus))
            found.append(one)
        for place, one in enumerate(found):
            self.suppose(("in order", place), one.leaf, None)
        return found

    def suppose(self, key: Hashable, leaf: str, taken: resources.Amounts | None) -> Iterable[str]:
        """Count something for a queue for as long as it is weighed what would be; None ends that.

        The line that is being gone through does not hear of it. The queues that it changes.
        """
        self._fair = None
        return self._books.put(self.tree, key, leaf, taken)

    def turn(self, queue: str) -> order.Turn:
        """Below what it deserves first, the emptiest of these; then the least beyond, by weight.

        With a half-life the mean of what is beyond now and of what was on average counts. Half a
        GPU more is counted for each: where shares are no whole GPUs that gives each the nearest
        number (the method of Webster and Sainte-Lague).
        """
        share = self._books.used(queue).share(self._capacity)
        due = self._deserved.get(queue, 0.0)
        if share < due:
            return _UNDER, share / due, queue
        beyond = share - due
        if self._history.remembers(queue):
            beyond = (beyond + self._past(queue)) / 2
        half = resources.FULL / 2 / max(self._capacity.gpus, 1)
        return _OVER, (beyond + half) / self.queue(queue).weight, queue

    def _past(self, queue: str) -> float:
        return max(0.0, self._history.average(queue) - self._deserved.get(queue, 0.0))

    def rescued(self, leaf: str) -> float | None:
        """When the last workload of a queue started for having waited too long."""
        return self._rescued.get(leaf)

    def rescue(self, leaf: str, now: float) -> None:
        """One did now."""
        self._rescued[leaf] = now

    def fair(self) -> Mapping[str, Fraction]:
        """The fair share of each queue, by what is used and waits now (`fair`)."""
        if self._fair is None:
            self._fair = self._shares(self._wanted())
        return self._fair

    def _wanted(self) -> dict[str, resources.Amounts]:
        found = dict(self._books.own(self.tree))
        for leaf, asked in self._line.asked.items() if self._line else ():
            mine = self.tree.leaf(leaf)
            found[mine] = found.get(mine, resources.NOTHING) + asked
        return found

    def _shares(self, wanted: Mapping[str, resources.Amounts]) -> Mapping[str, Fraction]:
        past = {
            name: Fraction(self._past(name))
            for name in self.tree.accepted
            if self._history.remembers(name)
        }
        return fair_share.of_amounts(self.tree, self._capacity, wanted, past)

    def within(self, leaf: str, extra: resources.Amounts) -> bool:
        """Whether a queue would have no more than its fair share with so much more."""
        mine = self.tree.leaf(leaf)
        after = self._books.used(mine) + extra
        wanted = self._wanted()
        shares = self.fair()
        if not after.fits(wanted[mine]):
            shares = self._shares({**wanted, mine: after})
        return after.dominant(self._capacity) <= shares[mine]

    def surplus(self, leaf: str) -> int:
        """What a queue has beyond its fair share, in thousandths of GPUs; below 0: what it lacks.

        Rounded down.
        """
        mine = self.tree.leaf(leaf)
        share = self._books.used(mine).dominant(self._capacity)
        return math.floor((share - self.fair()[mine]) * self._capacity.gpus)

    def standings(self, now: float) -> Mapping[str, status_types.Standing]:
        """How each accepted queue stands, the implicit one ("") included."""
        self._advance(now)
        queued = _queued(self.tree, self._line.waiting() if self._line else (), now)
        shares = self.fair()
        return {
            name: self._standing(name, float(share), queued.get(name, _NOTHING_QUEUED))
            for name, share in shares.items()
        }

    def standing_of(self, queue: str) -> status_types.Standing:
        """How an accepted queue stands, but for what waits in it; quick, for words (`words`)."""
        return self._standing(queue, float(self.fair()[queue]), _NOTHING_QUEUED)

    def _standing(self, name: str, share: float, known: "_Queued") -> status_types.Standing:
        used = self._books.used(name)
        return status_types.Standing(
            used=used,
            share=used.share(self._capacity),
            fair=share,
            deserved=self.tree.deserved[name],
            deserved_share=self._deserved[name],
            whole=self._capacity.gpus,
            waiting=known.number,
            oldest_s=known.oldest_s,
            starving=known.starving,
            past=self._history.average(name) if self._history.remembers(name) else None,
            past_s=self._history.used(name),
        )

    def _advance(self, now: float) -> None:
        if abs(now - self._advanced) < _INSTANT_S:
            return
        self._advanced = now
        shares = {
            name: self._books.used(name).share(self._capacity)
            for name in self._known
            if self._history.remembers(name)
        }
        self._history.advance(now, shares)


class _Supposed:
    """Where a line stands that nobody goes through: what it rescues stays with it."""

    def __init__(self, of: Engine) -> None:
        self._of = of
        self._rescued: dict[str, float] = {}

    @property
    def tree(self) -> trees.Tree:
        """The queues that count."""
        return self._of.tree

    def turn(self, queue: str) -> order.Turn:
        """Whose turn it is, with all that is supposed."""
        return self._of.turn(queue)

    def rescued(self, leaf: str) -> float | None:
        """When the last workload of a queue started for having waited too long."""
        return self._rescued.get(leaf, self._of.rescued(leaf))

    def rescue(self, leaf: str, now: float) -> None:
        """One would."""
        self._rescued[leaf] = now


class _Queued(NamedTuple):
    """What waits in a queue and its children."""

    number: int = 0
    oldest_s: float | None = None
    starving: bool = False

    def plus(self, waited_s: float, *, starving: bool) -> "_Queued":
        oldest = waited_s if self.oldest_s is None else max(self.oldest_s, waited_s)
        return _Queued(self.number + 1, oldest, self.starving or starving)


_NOTHING_QUEUED = _Queued()


def _queued(
    tree: trees.Tree, waiting: Iterable[order.Waiting], now: float
) -> Mapping[str, _Queued]:
    found: dict[str, _Queued] = {}
    for one in waiting:
        leaf = tree.leaf(one.leaf)
        waited_s = max(0.0, now - one.since)
        starving = not tree.is_plain and waited_s > tree.accepted[leaf].starvation_s
        for name in tree.path(leaf):
            known = found.get(name, _NOTHING_QUEUED)
            found[name] = known.plus(waited_s, starving=starving)
    return found


def _spec(queue: queues.Queue | None) -> queues.Queue | None:
    """All of a queue but what we write."""
    return queue and replace(queue, usage=None, version="", generation=0)
