"""Estimate of the workload mix: current allocations beside the configured mix. Pure.

It follows from the snapshot alone: no history, no clock. It moves in coarse steps, so that nodes
are seldom scored anew.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from driver import ids
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import node_capacity, pool_layout, vocabulary
from driver.scheduling.allocator.policies import base, workload_mix
from driver.scheduling.snapshot import snapshot

_MIN_CLAIMS = 100
"""Minimum number of claims for an estimate."""
_OBSERVED_WEIGHT = 0.25
"""Weight of the estimate: running pods do not predict pending ones (`benchmarks/placement`)."""
_SHARE_STEPS = 8
_SHARE_STEP = 50
"""Shares are distinguished in steps of a twentieth of a GPU."""
_RATIO = 1.25
_MAX_MIXES = 16


class _NodeWorkload(NamedTuple):
    """Shapes of a node's claims, milli CPUs if it has GPUs, and GPUs by product."""

    shapes: Counter[workload_mix.WorkloadShape]
    cpu: int
    gpus: Counter[str]


class WorkloadMixEstimator:
    """Estimator for one cluster, beside the configured mix (`prior`)."""

    def __init__(self, prior: workload_mix.WorkloadMix) -> None:
        self._prior = prior
        self._revision = -1
        self._nodes: dict[ids.NodeName, _NodeWorkload] = {}
        self._shapes: Counter[workload_mix.WorkloadShape] = Counter()
        self._gpus: Counter[str] = Counter()
        self._cpu = 0
        self._scarcity: Mapping[str, float] | None = None
        self._mixes: OrderedDict[Hashable, workload_mix.WorkloadMix] = OrderedDict()

    def estimate(self, view: snapshot.Snapshot) -> workload_mix.WorkloadMix:
        """Return the current mix; the same object while it does not change."""
        self._refresh(view)
        observed = self._observed_shares() if sum(self._shapes.values()) >= _MIN_CLAIMS else {}
        ratio = self._prior.cpu_per_gpu or self._cpu_per_gpu()
        if self._scarcity is None:
            self._scarcity = workload_mix.product_scarcity(self._prior.shapes, self._gpus)
        scarcity = self._scarcity
        key = tuple(observed.items()), ratio, tuple(scarcity.items())
        mix = self._mixes.get(key)
        if mix is None:
            mix = self._mixes[key] = self._blend(observed, ratio, scarcity)
        self._mixes.move_to_end(key)
        while len(self._mixes) > _MAX_MIXES:
            self._mixes.popitem(last=False)
        return mix

    def _refresh(self, view: snapshot.Snapshot) -> None:
        changes = view.changed_since(self._revision)
        if changes is None:
            self._nodes.clear()
            self._shapes.clear()
            self._gpus.clear()
            self._cpu = 0
            self._scarcity = None
            self._revision = view.revision
            changed = [*view.nodes]
        else:
            self._revision, names = changes
            changed = [*dict.fromkeys(names)]
        for name in changed:
            previous, node = self._nodes.pop(name, None), view.nodes.get(name)
            current = None if node is None else _observe_node(view, node)
            if current is not None:
                self._nodes[name] = current
            if current != previous:
                self._count(previous, -1)
                self._count(current, 1)
                if previous is None or current is None or previous.gpus != current.gpus:
                    self._scarcity = None

    def _count(self, seen: _NodeWorkload | None, sign: int) -> None:
        if seen is None:
            return
        for demand, number in seen.shapes.items():
            self._shapes[demand] += sign * number
        for product, number in seen.gpus.items():
            self._gpus[product] += sign * number
        self._cpu += sign * seen.cpu

    def _observed_shares(self) -> Mapping[workload_mix.WorkloadShape, float]:
        """Return the share of each allocated shape, in eighths; rare ones are left out."""
        total = sum(self._shapes.values())
        shares = (
            (demand, round(_SHARE_STEPS * number / total))
            for demand, number in sorted(
                self._shapes.items(), key=lambda entry: _shape_key(entry[0])
            )
            if number
        )
        return {demand: share / _SHARE_STEPS for demand, share in shares if share}

    def _cpu_per_gpu(self) -> float:
        """Return milli CPUs per GPU, in steps: the default demand of CPU."""
        gpus = sum(self._gpus.values())
        if not gpus or self._cpu <= 0:
            return 0.0
        return float(_RATIO ** round(math.log(self._cpu / gpus, _RATIO)))

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
    shapes: Counter[workload_mix.WorkloadShape] = Counter()
    gpus: Counter[str] = Counter()
    for share in view.reachable_pools(node.name):
        if vocabulary.is_gpu_pool(view, share.pool):
            gpus.update(pool_layout.get_layout(share.pool).products)
            shapes.update(_pool_shapes(view, share.pool))
    return _NodeWorkload(shapes, node.allocatable.get("cpu", 0) if gpus else 0, gpus)


def _pool_shapes(view: snapshot.Snapshot, pool: pools.Pool) -> Iterator[workload_mix.WorkloadShape]:
    """Yield the shapes of a pool's claims: whole GPUs together, parts one by one."""
    layout = pool_layout.get_layout(pool)
    whole = Counter[ids.Key]()
    for name in view.used_devices(pool):
        face = layout.faces.get(name)
        if face is None:
            continue
        for holder in view.holders(claims.DeviceId(pool.driver, pool.name, name)):
            if face.mode == base.WHOLE:
                whole[holder.claim] += 1
                continue
            usage = node_capacity.device_usage(face, holder.result.consumed, face.gpu)
            memory = layout.idle_gpus[face.gpu].model.memory
            if face.mode == base.MIG:
                part = base.FULL * face.memory // memory // _SHARE_STEP * _SHARE_STEP
            else:
                part = min(-(-usage.thousandths // _SHARE_STEP) * _SHARE_STEP, base.FULL)
            yield workload_mix.WorkloadShape(face.mode, 1, part)
    yield from (workload_mix.WorkloadShape(base.WHOLE, number) for number in whole.values())
