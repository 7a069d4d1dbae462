"""For a workload that fits nowhere: where it comes nearest, what is short there, who is in the way.

Pure. Its steps are bounded, whatever the size of the cluster: `all_seen` says whether a node was
left out, so that another one may be nearer.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import ids, reasons
from driver.resources.core import nodes
from driver.scheduling.allocator import settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.results import node_result
from driver.scheduling.explain import (
    cost,
    holders,
    shortage,
    step_budget,
    victim_search,
    without_pods,
)
from driver.scheduling.snapshot import snapshot

STEPS = 800
"""At most, about 20 microseconds each."""
_BARE = 3
"""A third of them, at most, goes into whether it could ever fit."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest fit. Of `leaving` is said how they are found in `freeing.Freed`.

    `ever` is False where no node would do even if nothing ran there; then `gap` is what the node
    that has most is short of. None: not known, for the steps ended. `leaving` are the pods whose
    going would do, by `namespace/name`; () where there is no such set, or none was found. `alone`:
    no other node counts, for the pod is bound to this one.
    """

    node: ids.NodeName
    gap: shortage.Gap | None
    ever: bool | None = True
    leaving: tuple[ids.Key, ...] = ()
    least: bool = False
    all_seen: bool = True
    alone: bool = False


def of(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    refused: allocator_types.Unschedulable,
    people: holders.Tenants,
    deciding: settings.Settings,
    meter: step_budget.Meter,
) -> Nearest | None:
    """None where no node lacks but room: then what was refused says it all.

    So it does where a cordon is in the way: what there is would do once that is taken back.
    """
    # Whether it fits is asked, not which devices are best.
    asked = step_budget.of(view, workload, replace(deciding, policy_chain=ranking.PolicyChain(())))
    found = [view.nodes[name] for name in _in_order(view, refused) if name in view.nodes]
    if asked is None or not found:
        return None
    bare = step_budget.Meter(meter.most // _BARE)
    could = _Bare(view, asked, bare)
    there = [node for node in found if could.fit(node) is not False]
    meter.count(bare.steps)
    if not there:
        return None if _is_cordoned(refused) else could.nearest()
    search = victim_search.Search(view, asked, cost.Fewest(view), meter)
    best = victim_search.best(search, ((node, _leaving(people, node)) for node in there))
    if best.freed is not None and not best.freed.leaving:
        return None  # it fits now
    node = there[0] if best.freed is None else view.nodes[best.freed.node]
    return Nearest(
        node=node.name,
        gap=shortage.of(view, asked, node),
        ever=could.fit(node),
        leaving=best.freed.names if best.freed else (),
        least=best.freed is not None and best.freed.least and best.all_seen,
        all_seen=best.all_seen,
    )


def _is_cordoned(refused: allocator_types.Unschedulable) -> bool:
    """Whether a node would have enough, used or not, if nothing of it were cordoned."""
    return any(map(_would_do, refused.rejections))


def _would_do(refusal: allocator_types.NodeRejection) -> bool:
    counted = dict(refusal.device_reasons)
    others = sum(counted.values()) - counted.get(reasons.Reason.SELECTOR_MISMATCH, 0)
    cordoned = reasons.Reason.DEVICE_CORDONED in counted
    return cordoned and refusal.fits + others >= refusal.requested


def _leaving(people: holders.Tenants, node: nodes.Node) -> list[holders.Tenant]:
    """The pods whose going is of use."""
    return [one for one in people.of(node.name) if not holders.comes_back(one.pod)]


class _Bare:
    """Whether nodes would do if nothing ran there; of nodes that are alike then, one is asked."""

    def __init__(
        self, view: snapshot.Snapshot, asked: step_budget.Asking, meter: step_budget.Meter
    ) -> None:
        self._view = without_pods.Bare(view)
        self._asked = asked
        self._meter = meter
        self._known: dict[Hashable, bool] = {}
        self._short: list[shortage.Gap | None] = []
        self._refused: list[ids.NodeName] = []

    def fit(self, node: nodes.Node) -> bool | None:
        """None where the steps ended before that was known."""
        kind = self._kind(node)
        if kind not in self._known:
            if self._meter.spent:
                return None
            self._meter.count(step_budget.ASK)
            self._known[kind] = isinstance(self._asked.answer(self._view, node), node_result.Fit)
            if not self._known[kind]:
                self._refused.append(node.name)
                self._short.append(shortage.of(self._view, self._asked, node))
        return self._known[kind]

    def nearest(self) -> Nearest:
        """Where no node would do."""
        gap = shortage.short_by(self._short)
        return Nearest(self._refused[0] if gap is None else gap.node, gap, ever=False)

    def _kind(self, node: nodes.Node) -> Hashable:
        looks = tuple((one.pool.look, one.problem) for one in self._view.reachable_pools(node.name))
        if any(look is None for look, _ in looks):
            return node.name
        return looks, tuple(sorted(node.allocatable.items()))


def _in_order(
    view: snapshot.Snapshot, refused: allocator_types.Unschedulable
) -> list[ids.NodeName]:
    """Nodes that lack but room, those first that lack least.

    In turn one that is short of devices and one that is full otherwise.
    """
    of_devices: list[tuple[int, int, ids.NodeName]] = []
    of_room: list[tuple[int, int, ids.NodeName]] = []
    for refusal, names in refused.rejections.items():
        if refusal.node_reason is None:
            lacking = refusal.requested - refusal.fits
            of_devices += ((lacking, _pods(view, name), name) for name in names)
        elif refusal.node_reason in victim_search.ROOM:
            of_room += ((0, _pods(view, name), name) for name in names)
    return [*_in_turn(sorted(of_devices), sorted(of_room))]


def _pods(view: snapshot.Snapshot, name: ids.NodeName) -> int:
    use: Mapping[ids.NodeName, snapshot.NodeUsage] = view.usage
    return use[name].pod_count if name in use else 0


def _in_turn(
    *found: Sequence[tuple[int, int, ids.NodeName]],
) -> Iterator[ids.NodeName]:
    for at in range(max(map(len, found))):
        yield from (one[at][2] for one in found if at < len(one))
