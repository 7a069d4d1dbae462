"""For a workload that fits nowhere: where it comes nearest, what is short there, who is in the way.

Pure. Its steps are bounded, whatever the size of the cluster: `all_seen` says whether a node was
left out, so that another one may be nearer.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver import ids
from driver.controller import view as cluster
from driver.controller.allocation import answers, outcome, settings
from driver.controller.allocation.whatif import absence, asking, freeing, gaps, prices, tenants
from driver.resources import nodes

STEPS = 1500
"""Of looking for pods; as many again of looking whether it could ever fit."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest fit. Of `leaving` is said how they are found in `freeing.Freed`.

    `ever` is False where no node would do even if nothing ran there; then `gap` is what the node
    that has most is short of. None: not known, for the steps ended. `leaving` are the pods whose
    going would do, by `namespace/name`; () where there is no such set, or none was found.
    """

    node: ids.NodeName
    gap: gaps.Gap | None
    ever: bool | None = True
    leaving: tuple[ids.Key, ...] = ()
    least: bool = False
    all_seen: bool = True


def of(
    view: cluster.ClusterView,
    workload: outcome.Workload,
    refused: outcome.NoFit,
    people: tenants.Tenants,
    deciding: settings.Settings,
    most: int = STEPS,
) -> Nearest | None:
    """None where no node lacks but room: then what was refused says it all."""
    asked = asking.of(view, workload, deciding)
    found = [view.nodes[name] for name in _in_order(view, refused) if name in view.nodes]
    if asked is None or not found:
        return None
    price = prices.Fewest(view)
    search = freeing.Search(view, asked, price, asking.Meter(most))
    best = freeing.best(search, ((node, people.of(node.name)) for node in found))
    if best.freed is not None and not best.freed.leaving:
        return None  # it fits now
    if best.freed is not None:
        node = view.nodes[best.freed.node]
        gap = gaps.of(view, asked, node)
        least = best.freed.least and best.all_seen
        return Nearest(node.name, gap, True, best.freed.names, least, best.all_seen)  # noqa: FBT003
    return _without(view, asked, found, most, all_seen=best.all_seen)


def _without(
    view: cluster.ClusterView,
    asked: asking.Asking,
    found: Sequence[nodes.Node],
    most: int,
    *,
    all_seen: bool,
) -> Nearest:
    """Where no set of pods was found: whether it could ever fit, and what is short."""
    bare = absence.Bare(view)
    meter = asking.Meter(most)
    short: list[gaps.Gap | None] = []
    for node in _kinds(view, found):
        if meter.spent:
            return Nearest(found[0].name, gaps.of(view, asked, found[0]), None, all_seen=False)
        meter.count(asking.ASK)
        if isinstance(asked.answer(bare, node), answers.Fit):
            gap = gaps.of(view, asked, found[0])
            return Nearest(found[0].name, gap, True, all_seen=all_seen)  # noqa: FBT003
        short.append(gaps.of(bare, asked, node))
    gap = gaps.short_by(short)
    name = found[0].name if gap is None else gap.node
    return Nearest(name, gap, False, all_seen=all_seen)  # noqa: FBT003


def _kinds(view: cluster.ClusterView, found: Sequence[nodes.Node]) -> Iterator[nodes.Node]:
    """Of nodes that are alike when nothing runs there, one."""
    seen: set[Hashable] = set()
    for node in sorted(found, key=lambda one: one.name):
        looks = tuple((one.pool.look, one.problem) for one in view.shares(node.name))
        if any(look is None for look, _ in looks):
            yield node
            continue
        kind = looks, tuple(sorted(node.allocatable.items()))
        if kind not in seen:
            seen.add(kind)
            yield node


def _in_order(view: cluster.ClusterView, refused: outcome.NoFit) -> list[ids.NodeName]:
    """Nodes that lack but room, those first that lack least.

    In turn one that is short of devices and one that is full otherwise.
    """
    of_devices: list[tuple[int, int, ids.NodeName]] = []
    of_room: list[tuple[int, int, ids.NodeName]] = []
    for refusal, names in refused.nodes.items():
        if refusal.node_reason is None:
            lacking = refusal.wanted - refusal.fits
            of_devices += ((lacking, _pods(view, name), name) for name in names)
        elif refusal.node_reason in freeing.ROOM:
            of_room += ((0, _pods(view, name), name) for name in names)
    return [*_in_turn(sorted(of_devices), sorted(of_room))]


def _pods(view: cluster.ClusterView, name: ids.NodeName) -> int:
    use: Mapping[ids.NodeName, cluster.NodeUse] = view.use
    return use[name].count if name in use else 0


def _in_turn(
    *found: Sequence[tuple[int, int, ids.NodeName]],
) -> Iterator[ids.NodeName]:
    for at in range(max(map(len, found))):
        yield from (one[at][2] for one in found if at < len(one))
