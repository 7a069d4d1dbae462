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

MAX_STEPS = 800
"""At most, about 20 microseconds each."""
_EMPTY_SHARE = 3
"""A third of them, at most, goes into whether it could ever fit."""


@dataclass(frozen=True, slots=True)
class NearestFit:
    """The nearest fit. Of `leaving` is said how they are found in `freeing.Freed`.

    `ever` is False where no node would do even if nothing ran there; then `gap` is what the node
    that has most is short of. None: not known, for the steps ended. `leaving` are the pods whose
    going would do, by `namespace/name`; () where there is no such set, or none was found. `alone`:
    no other node counts, for the pod is bound to this one.
    """

    node: ids.NodeName
    gap: shortage.Gap | None
    can_ever_fit: bool | None = True
    leaving: tuple[ids.Key, ...] = ()
    is_optimal: bool = False
    is_exhaustive: bool = True
    is_only_node: bool = False


def find_nearest_fit(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    refused: allocator_types.Unschedulable,
    people: holders.HolderIndex,
    deciding: settings.Settings,
    meter: step_budget.StepBudget,
) -> NearestFit | None:
    """None where no node lacks but room: then what was refused says it all.

    So it does where a cordon is in the way: what there is would do once that is taken back.
    """
    # Whether it fits is asked, not which devices are best.
    asked = step_budget.workload_query(
        view, workload, replace(deciding, policy_chain=ranking.PolicyChain(()))
    )
    found = [view.nodes[name] for name in _ordered_nodes(view, refused) if name in view.nodes]
    if asked is None or not found:
        return None
    bare = step_budget.StepBudget(meter.limit // _EMPTY_SHARE)
    could = _EmptyCluster(view, asked, bare)
    there = [node for node in found if could.can_fit(node) is not False]
    meter.spend(bare.steps)
    if not there:
        return None if _is_cordoned(refused) else could.nearest()
    search = victim_search.Search(view, asked, cost.FewestPods(view), meter)
    best = victim_search.find_best(search, ((node, _evictable(people, node)) for node in there))
    if best.victims is not None and not best.victims.victims:
        return None  # it fits now
    node = there[0] if best.victims is None else view.nodes[best.victims.node]
    return NearestFit(
        node=node.name,
        gap=shortage.find_gap(view, asked, node),
        can_ever_fit=could.can_fit(node),
        leaving=best.victims.names if best.victims else (),
        is_optimal=best.victims is not None and best.victims.is_optimal and best.is_exhaustive,
        is_exhaustive=best.is_exhaustive,
    )


def _is_cordoned(refused: allocator_types.Unschedulable) -> bool:
    """Whether a node would have enough, used or not, if nothing of it were cordoned."""
    return any(map(_would_fit_uncordoned, refused.rejections))


def _would_fit_uncordoned(refusal: allocator_types.NodeRejection) -> bool:
    counted = dict(refusal.device_reasons)
    others = sum(counted.values()) - counted.get(reasons.Reason.SELECTOR_MISMATCH, 0)
    cordoned = reasons.Reason.DEVICE_CORDONED in counted
    return cordoned and refusal.fits + others >= refusal.requested


def _evictable(people: holders.HolderIndex, node: nodes.Node) -> list[holders.DeviceHolder]:
    """The pods whose going is of use."""
    return [one for one in people.node_holders(node.name) if not holders.returns_to_node(one.pod)]


class _EmptyCluster:
    """Whether nodes would do if nothing ran there; of nodes that are alike then, one is asked."""

    def __init__(
        self,
        view: snapshot.Snapshot,
        asked: step_budget.WorkloadQuery,
        meter: step_budget.StepBudget,
    ) -> None:
        self._view = without_pods.EmptyClusterView(view)
        self._query = asked
        self._budget = meter
        self._by_kind: dict[Hashable, bool] = {}
        self._gaps: list[shortage.Gap | None] = []
        self._rejected: list[ids.NodeName] = []

    def can_fit(self, node: nodes.Node) -> bool | None:
        """None where the steps ended before that was known."""
        kind = self._kind(node)
        if kind not in self._by_kind:
            if self._budget.is_spent:
                return None
            self._budget.spend(step_budget.EVALUATE_STEPS)
            self._by_kind[kind] = isinstance(
                self._query.evaluate(self._view, node), node_result.Fit
            )
            if not self._by_kind[kind]:
                self._rejected.append(node.name)
                self._gaps.append(shortage.find_gap(self._view, self._query, node))
        return self._by_kind[kind]

    def nearest(self) -> NearestFit:
        """Where no node would do."""
        gap = shortage.largest_gap(self._gaps)
        return NearestFit(self._rejected[0] if gap is None else gap.node, gap, can_ever_fit=False)

    def _kind(self, node: nodes.Node) -> Hashable:
        looks = tuple((one.pool.look, one.problem) for one in self._view.reachable_pools(node.name))
        if any(look is None for look, _ in looks):
            return node.name
        return looks, tuple(sorted(node.allocatable.items()))


def _ordered_nodes(
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
            of_devices += ((lacking, _pod_count(view, name), name) for name in names)
        elif refusal.node_reason in victim_search.EVICTION_CURABLE:
            of_room += ((0, _pod_count(view, name), name) for name in names)
    return [*_alternate(sorted(of_devices), sorted(of_room))]


def _pod_count(view: snapshot.Snapshot, name: ids.NodeName) -> int:
    use: Mapping[ids.NodeName, snapshot.NodeUsage] = view.usage
    return use[name].pod_count if name in use else 0


def _alternate(
    *found: Sequence[tuple[int, int, ids.NodeName]],
) -> Iterator[ids.NodeName]:
    for at in range(max(map(len, found))):
        yield from (one[at][2] for one in found if at < len(one))
