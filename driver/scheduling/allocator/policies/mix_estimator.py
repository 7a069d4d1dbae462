"""What is usually asked of the cluster: what claims have now, beside what was configured. Pure.

It follows from the view alone: no memory of what was, no clock. It moves in coarse steps, so that
nodes are judged anew seldom.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import node_capacity, pool_layout
from driver.scheduling.allocator.policies import base, workload_mix
from driver.scheduling.snapshot import snapshot

_ENOUGH = 100
"""Claims; with fewer what they have says little."""
_LEARNED = 0.25
"""How much it counts then: what runs now says nothing of what waits (`benchmarks/placement`)."""
_SHARES = 8
_GRAIN = 50
"""Shares are told apart in steps of a twentieth of a GPU."""
_RATIO = 1.25
_MOST = 16


class _Seen(NamedTuple):
    """Of a node: what its claims have, its CPUs in milli where it has GPUs, these by product."""

    had: Counter[workload_mix.Demand]
    cpu: int
    cards: Counter[str]


class Usual:
    """Of one cluster, beside what is configured (`prior`)."""

    def __init__(self, prior: workload_mix.Mix) -> None:
        self._prior = prior
        self._mark = -1
        self._nodes: dict[ids.NodeName, _Seen] = {}
        self._had: Counter[workload_mix.Demand] = Counter()
        self._cards: Counter[str] = Counter()
        self._cpu = 0
        self._made: OrderedDict[Hashable, workload_mix.Mix] = OrderedDict()

    def of(self, view: snapshot.Snapshot) -> workload_mix.Mix:
        """The mix of now; the same object as long as it is the same."""
        self._renew(view)
        learned = self._learned() if sum(self._had.values()) >= _ENOUGH else {}
        ratio = self._prior.cpu_per_gpu or self._ratio()
        needed = workload_mix.scarce(self._prior.shapes, self._cards)
        key = tuple(learned.items()), ratio, tuple(needed.items())
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._blend(learned, ratio, needed)
        self._made.move_to_end(key)
        while len(self._made) > _MOST:
            self._made.popitem(last=False)
        return found

    def _renew(self, view: snapshot.Snapshot) -> None:
        found = view.changed_since(self._mark)
        if found is None:
            self._nodes.clear()
            self._had.clear()
            self._cards.clear()
            self._cpu = 0
            self._mark = view.revision
            changed = [*view.nodes]
        else:
            self._mark, names = found
            changed = [*names]
        for name in changed:
            self._count(self._nodes.pop(name, None), -1)
            if name in view.nodes:
                seen = self._nodes[name] = _seen(view, view.nodes[name])
                self._count(seen, 1)

    def _count(self, seen: _Seen | None, sign: int) -> None:
        if seen is None:
            return
        for counter, found in ((self._had, seen.had), (self._cards, seen.cards)):
            for key, number in found.items():
                counter[key] += sign * number  # type: ignore[index]
        self._cpu += sign * seen.cpu

    def _learned(self) -> Mapping[workload_mix.Demand, float]:
        """The part of each shape that claims have, in eighths; rare ones are left out."""
        total = sum(self._had.values())
        found = (
            (demand, round(_SHARES * number / total))
            for demand, number in sorted(self._had.items(), key=lambda one: _order(one[0]))
            if number
        )
        return {demand: share / _SHARES for demand, share in found if share}

    def _ratio(self) -> float:
        """Milli CPUs there are for each GPU, in steps: its share, where nothing else is known."""
        cards = sum(self._cards.values())
        if not cards or self._cpu <= 0:
            return 0.0
        return float(_RATIO ** round(math.log(self._cpu / cards, _RATIO)))

    def _blend(
        self,
        learned: Mapping[workload_mix.Demand, float],
        ratio: float,
        needed: Mapping[str, float],
    ) -> workload_mix.Mix:
        shapes = self._prior.shapes
        own = ((demand, weight * (1 - _LEARNED)) for demand, weight in shapes)
        total = sum(learned.values()) or 1.0
        new = (
            (demand._replace(cpu=int(ratio * demand.gpus)), weight * _LEARNED / total)
            for demand, weight in learned.items()
        )
        both = workload_mix.of((*own, *new)).shapes if learned else shapes
        return workload_mix.Mix(both, ratio, needed)


def _order(demand: workload_mix.Demand) -> tuple[str, int, int]:
    return demand.mode, demand.number, demand.thousandths


def _seen(view: snapshot.Snapshot, node: nodes.Node) -> _Seen:
    had: Counter[workload_mix.Demand] = Counter()
    cards: Counter[str] = Counter()
    for share in view.reachable_pools(node.name):
        if share.pool.driver == view.driver:
            cards.update(card.model.product for card in pool_layout.of(share.pool).idle)
            had.update(_had(view, share.pool))
    return _Seen(had, node.allocatable.get("cpu", 0) if cards else 0, cards)


def _had(view: snapshot.Snapshot, of: pools.Pool) -> Iterator[workload_mix.Demand]:
    """What each claim has of a pool: its whole GPUs together, its parts one by one."""
    found = pool_layout.of(of)
    whole = Counter[ids.Key]()
    for name in view.used_devices(of):
        face = found.faces.get(name)
        if face is None:
            continue
        for holder in view.holders(claims.DeviceId(of.driver, of.name, name)):
            if face.mode == base.WHOLE:
                whole[holder.claim] += 1
                continue
            taken = node_capacity.taken(face, holder.result.consumed, face.card)
            memory = found.idle[face.card].model.memory
            if face.mode == base.PARTS:
                part = base.FULL * face.memory // memory // _GRAIN * _GRAIN
            else:
                part = min(-(-taken.thousandths // _GRAIN) * _GRAIN, base.FULL)
            yield workload_mix.Demand(face.mode, 1, part)
    yield from (workload_mix.Demand(base.WHOLE, number) for number in whole.values())
