"""Holders of the devices that a refusal counts as taken, and of the parts of their GPUs. Pure.

A refusal is the same for nodes that are alike, so it names nobody; this is read beside it, of the
few nodes that matter most.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from driver import ids, names, reasons
from driver.devices import faces
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot

DescribeHolder = Callable[[ids.Key], str]
"""Words for a holder: `taken by pod team/a`, `kept for team/b until ...`."""
_TAKEN = frozenset({reasons.Reason.DEVICE_TAKEN, reasons.Reason.COUNTERS_TAKEN})
_FAULTY = reasons.Reason.DEVICE_TAINTED
_MAX_NODES = 2
_MAX_HOLDERS = 3


class GpuHolder(NamedTuple):
    """GPUs of a node, whole or in part, with a holder (a key of the view) or a taint (`fault`)."""

    node: ids.NodeName
    gpus: int
    holder: ids.Key
    fault: str = ""


def rejection_holders(
    view: snapshot.Snapshot,
    answer: allocator_types.Unschedulable,
    first: ids.NodeName | None = None,
) -> tuple[GpuHolder, ...]:
    """Takers on the nodes that lack taken or faulty devices: `first`, then by what they lack.

    On each node promises and faults first, then by count of GPUs and by key. At most two nodes are
    read.
    """
    nodes = dict.fromkeys((*_first(answer, first), *_ranked_nodes(answer)))
    return tuple(taker for node in [*nodes][:_MAX_NODES] for taker in _node_holders(view, node))


def describe(takers: Iterable[GpuHolder], name_of: DescribeHolder) -> str:
    """`6 GPUs of node-1 are kept for team/b until ..., 2 are taken by pod team/a`."""
    by_node: dict[ids.NodeName, list[GpuHolder]] = defaultdict(list)
    for taker in takers:
        by_node[taker.node].append(taker)
    return "; ".join(_describe_node(node, mine, name_of) for node, mine in by_node.items())


def format_gpus(count: int) -> str:
    """`1 GPU`, `6 GPUs`."""
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _describe_node(node: ids.NodeName, mine: list[GpuHolder], name_of: DescribeHolder) -> str:
    first, *others = mine[:_MAX_HOLDERS]
    verb = "is" if first.gpus == 1 else "are"
    parts = [f"{format_gpus(first.gpus)} of {node} {verb} {_describe_holder(first, name_of)}"]
    parts += (
        f"{taker.gpus} {'is' if taker.gpus == 1 else 'are'} {_describe_holder(taker, name_of)}"
        for taker in others
    )
    rest = len(mine) - _MAX_HOLDERS
    return ", ".join([*parts, *([f"others by {rest} more"] if rest > 0 else [])])


def _describe_holder(taker: GpuHolder, name_of: DescribeHolder) -> str:
    return f"tainted {taker.fault}" if taker.fault else name_of(taker.holder)


def _lacking_nodes(
    answer: allocator_types.Unschedulable,
) -> Iterator[tuple[int, Sequence[ids.NodeName]]]:
    """Nodes with devices that are taken or faulty, by how many devices they lack."""
    for refusal, nodes in answer.rejections.items():
        if any(reason in _TAKEN or reason is _FAULTY for reason, _ in refusal.device_reasons):
            yield refusal.requested - refusal.fits, nodes


def _first(
    answer: allocator_types.Unschedulable, node: ids.NodeName | None
) -> Iterator[ids.NodeName]:
    if node is not None and any(node in nodes for _, nodes in _lacking_nodes(answer)):
        yield node


def _ranked_nodes(answer: allocator_types.Unschedulable) -> Iterator[ids.NodeName]:
    """The first nodes, those that lack least before others, then by name."""
    several = (
        (lack, node) for lack, nodes in _lacking_nodes(answer) for node in nodes[:_MAX_NODES]
    )
    yield from (node for _, node in sorted(several))


def _node_holders(view: snapshot.Snapshot, node: ids.NodeName) -> list[GpuHolder]:
    held: dict[ids.Key, set[tuple[str, str]]] = defaultdict(set)
    faults: dict[str, set[tuple[str, str]]] = defaultdict(set)
    if node not in view.nodes:
        return []
    for share in view.reachable_pools(node):
        if share.pool.driver != view.driver:
            continue
        for device in view.used_devices(share.pool):
            for holder in view.holders(claims.DeviceId(share.pool.driver, share.pool.name, device)):
                held[holder.claim].add((share.pool.name, _gpu_name(device)))
        for device, taint in _tainted_devices(share):
            faults[taint].add((share.pool.name, _gpu_name(device)))
    # Promised GPUs that others still use are counted with those.
    in_use = {card for key, cards in held.items() if _is_claim(key) for card in cards}
    takers = [
        GpuHolder(node, len(cards), key)
        for key, mine in held.items()
        if (cards := mine if _is_claim(key) else mine - in_use)
    ]
    takers += [GpuHolder(node, len(cards), ids.Key(""), key) for key, cards in faults.items()]
    return sorted(takers, key=_rank)


def _rank(taker: GpuHolder) -> tuple[bool, int, ids.Key, str]:
    return _is_claim(taker.holder), -taker.gpus, taker.holder, taker.fault


def _tainted_devices(share: pools.Share) -> Iterator[tuple[str, str]]:
    """Devices with a taint that tells of more than who allocates them."""
    every = (device for _, several in share.slices for device in several)
    for device, taint in ((owner, mark) for owner in every for mark in owner.taints):
        if taint.blocks and taint.key not in names.OWN_TAINTS:
            yield device.name, f"{taint.key}={taint.value}" if taint.value else taint.key


def _is_claim(key: ids.Key) -> bool:
    """No namespace has a colon, and all other keys of a view do; faults have no key."""
    return bool(key) and ":" not in key


def _gpu_name(device: str) -> str:
    return faces.gpu_name(device) or device
