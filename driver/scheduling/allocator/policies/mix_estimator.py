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

_MIN_CLAIMS = 100
"""Claims; with fewer what they have says little."""
_OBSERVED_WEIGHT = 0.25
"""How much it counts then: what runs now says nothing of what waits (`benchmarks/placement`)."""
_SHARE_STEPS = 8
_SHARE_STEP = 50
"""Shares are told apart in steps of a twentieth of a GPU."""
_RATIO = 1.25
_MAX_MIXES = 16


class _NodeWorkload(NamedTuple):
    """Of a node: what its claims have, its CPUs in milli where it has GPUs, these by product."""

    shapes: Counter[workload_mix.WorkloadShape]
    cpu: int
    gpus: Counter[str]


class WorkloadMixEstimator:
    """Of one cluster, beside what is configured (`prior`)."""

    def __init__(self, prior: workload_mix.WorkloadMix) -> None:
        self._prior = prior
        self._revision = -1
        self._nodes: dict[ids.NodeName, _NodeWorkload] = {}
        self._shapes: Counter[workload_mix.WorkloadShape] = Counter()
        self._gpus: Counter[str] = Counter()
        self._cpu = 0
        self._mixes: OrderedDict[Hashable, workload_mix.WorkloadMix] = OrderedDict()

    def estimate(self, view: snapshot.Snapshot) -> workload_mix.WorkloadMix:
        """The mix of now; the same object as long as it is the same."""
        self._refresh(view)
        learned = self._observed_shares() if sum(self._shapes.values()) >= _MIN_CLAIMS else {}
        ratio = self._prior.cpu_per_gpu or self._cpu_per_gpu()
        needed = workload_mix.product_scarcity(self._prior.shapes, self._gpus)
        key = tuple(learned.items()), ratio, tuple(needed.items())
        found = self._mixes.get(key)
        if found is None:
            found = self._mixes[key] = self._blend(learned, ratio, needed)
        self._mixes.move_to_end(key)
        while len(self._mixes) > _MAX_MIXES:
            self._mixes.popitem(last=False)
        return found

    def _refresh(self, view: snapshot.Snapshot) -> None:
        found = view.changed_since(self._revision)
        if found is None:
            self._nodes.clear()
            self._shapes.clear()
            self._gpus.clear()
            self._cpu = 0
            self._revision = view.revision
            changed = [*view.nodes]
        else:
            self._revision, names = found
            changed = [*names]
        for name in changed:
            self._count(self._nodes.pop(name, None), -1)
            if name in view.nodes:
                seen = self._nodes[name] = _observe_node(view, view.nodes[name])
                self._count(seen, 1)

    def _count(self, seen: _NodeWorkload | None, sign: int) -> None:
        if seen is None:
            return
        for counter, found in ((self._shapes, seen.shapes), (self._gpus, seen.gpus)):
            for key, number in found.items():
                counter[key] += sign * number  # type: ignore[index]
        self._cpu += sign * seen.cpu

    def _observed_shares(self) -> Mapping[workload_mix.WorkloadShape, float]:
        """The part of each shape that claims have, in eighths; rare ones are left out."""
        total = sum(self._shapes.values())
        found = (
            (demand, round(_SHARE_STEPS * number / total))
            for demand, number in sorted(self._shapes.items(), key=lambda one: _shape_key(one[0]))
            if number
        )
        return {demand: share / _SHARE_STEPS for demand, share in found if share}

    def _cpu_per_gpu(self) -> float:
        """Milli CPUs there are for each GPU, in steps: its share, where nothing else is known."""
        cards = sum(self._gpus.values())
        if not cards or self._cpu <= 0:
            return 0.0
        return float(_RATIO ** round(math.log(self._cpu / cards, _RATIO)))

    def _blend(
        self,
        learned: Mapping[workload_mix.WorkloadShape, float],
        ratio: float,
        needed: Mapping[str, float],
    ) -> workload_mix.WorkloadMix:
        shapes = self._prior.shapes
        own = ((demand, weight * (1 - _OBSERVED_WEIGHT)) for demand, weight in shapes)
        total = sum(learned.values()) or 1.0
        new = (
            (demand._replace(cpu=int(ratio * demand.gpus)), weight * _OBSERVED_WEIGHT / total)
            for demand, weight in learned.items()
        )
        both = workload_mix.build_mix((*own, *new)).shapes if learned else shapes
        return workload_mix.WorkloadMix(both, ratio, needed)


def _shape_key(demand: workload_mix.WorkloadShape) -> tuple[str, int, int]:
    return demand.mode, demand.gpu_count, demand.thousandths


def _observe_node(view: snapshot.Snapshot, node: nodes.Node) -> _NodeWorkload:
    had: Counter[workload_mix.WorkloadShape] = Counter()
    cards: Counter[str] = Counter()
    for share in view.reachable_pools(node.name):
        if share.pool.driver == view.driver:
            cards.update(
                card.model.product for card in pool_layout.get_layout(share.pool).idle_gpus
            )
            had.update(_pool_shapes(view, share.pool))
    return _NodeWorkload(had, node.allocatable.get("cpu", 0) if cards else 0, cards)


def _pool_shapes(view: snapshot.Snapshot, of: pools.Pool) -> Iterator[workload_mix.WorkloadShape]:
    """What each claim has of a pool: its whole GPUs together, its parts one by one."""
    found = pool_layout.get_layout(of)
    whole = Counter[ids.Key]()
    for name in view.used_devices(of):
        face = found.faces.get(name)
        if face is None:
            continue
        for holder in view.holders(claims.DeviceId(of.driver, of.name, name)):
            if face.mode == base.WHOLE:
                whole[holder.claim] += 1
                continue
            taken = node_capacity.device_usage(face, holder.result.consumed, face.gpu)
            memory = found.idle_gpus[face.gpu].model.memory
            if face.mode == base.MIG:
                part = base.FULL * face.memory // memory // _SHARE_STEP * _SHARE_STEP
            else:
                part = min(-(-taken.thousandths // _SHARE_STEP) * _SHARE_STEP, base.FULL)
            yield workload_mix.WorkloadShape(face.mode, 1, part)
    yield from (workload_mix.WorkloadShape(base.WHOLE, number) for number in whole.values())
