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

NameOf = Callable[[ids.Key], str]
"""Words for a holder: `taken by pod team/a`, `kept for team/b until ...`."""
_TAKEN = frozenset({reasons.Reason.DEVICE_TAKEN, reasons.Reason.COUNTERS_TAKEN})
_FAULTY = reasons.Reason.DEVICE_TAINTED
_MOST_NODES = 2
_MOST_HOLDERS = 3


class Taker(NamedTuple):
    """GPUs of a node, whole or in part, with a holder (a key of the view) or a taint (`fault`)."""

    node: ids.NodeName
    gpus: int
    holder: ids.Key
    fault: str = ""


def of_refusal(
    view: snapshot.Snapshot, answer: allocator_types.NoFit, first: ids.NodeName | None = None
) -> tuple[Taker, ...]:
    """Takers on the nodes that lack taken or faulty devices: `first`, then by what they lack.

    On each node promises and faults first, then by count of GPUs and by key. At most two nodes are
    read.
    """
    nodes = dict.fromkeys((*_first(answer, first), *_nodes(answer)))
    return tuple(taker for node in [*nodes][:_MOST_NODES] for taker in _on_node(view, node))


def sentence(takers: Iterable[Taker], name_of: NameOf) -> str:
    """`6 GPUs of node-1 are kept for team/b until ..., 2 are taken by pod team/a`."""
    by_node: dict[ids.NodeName, list[Taker]] = defaultdict(list)
    for taker in takers:
        by_node[taker.node].append(taker)
    return "; ".join(_listed(node, mine, name_of) for node, mine in by_node.items())


def gpus(count: int) -> str:
    """`1 GPU`, `6 GPUs`."""
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _listed(node: ids.NodeName, mine: list[Taker], name_of: NameOf) -> str:
    first, *others = mine[:_MOST_HOLDERS]
    verb = "is" if first.gpus == 1 else "are"
    parts = [f"{gpus(first.gpus)} of {node} {verb} {_by(first, name_of)}"]
    parts += (
        f"{taker.gpus} {'is' if taker.gpus == 1 else 'are'} {_by(taker, name_of)}"
        for taker in others
    )
    rest = len(mine) - _MOST_HOLDERS
    return ", ".join([*parts, *([f"others by {rest} more"] if rest > 0 else [])])


def _by(taker: Taker, name_of: NameOf) -> str:
    return f"tainted {taker.fault}" if taker.fault else name_of(taker.holder)


def _lacking(answer: allocator_types.NoFit) -> Iterator[tuple[int, Sequence[ids.NodeName]]]:
    """Nodes with devices that are taken or faulty, by how many devices they lack."""
    for refusal, nodes in answer.nodes.items():
        if any(reason in _TAKEN or reason is _FAULTY for reason, _ in refusal.devices):
            yield refusal.wanted - refusal.fits, nodes


def _first(answer: allocator_types.NoFit, node: ids.NodeName | None) -> Iterator[ids.NodeName]:
    if node is not None and any(node in nodes for _, nodes in _lacking(answer)):
        yield node


def _nodes(answer: allocator_types.NoFit) -> Iterator[ids.NodeName]:
    """The first nodes, those that lack least before others, then by name."""
    several = ((lack, node) for lack, nodes in _lacking(answer) for node in nodes[:_MOST_NODES])
    yield from (node for _, node in sorted(several))


def _on_node(view: snapshot.Snapshot, node: ids.NodeName) -> list[Taker]:
    held: dict[ids.Key, set[tuple[str, str]]] = defaultdict(set)
    faults: dict[str, set[tuple[str, str]]] = defaultdict(set)
    if node not in view.nodes:
        return []
    for share in view.reachable_pools(node):
        if share.pool.driver != view.driver:
            continue
        for device in view.used_devices(share.pool):
            for holder in view.holders(claims.DeviceId(share.pool.driver, share.pool.name, device)):
                held[holder.claim].add((share.pool.name, _gpu_of(device)))
        for device, taint in _tainted(share):
            faults[taint].add((share.pool.name, _gpu_of(device)))
    # Promised GPUs that others still use are counted with those.
    in_use = {card for key, cards in held.items() if _is_claim(key) for card in cards}
    takers = [
        Taker(node, len(cards), key)
        for key, mine in held.items()
        if (cards := mine if _is_claim(key) else mine - in_use)
    ]
    takers += [Taker(node, len(cards), ids.Key(""), key) for key, cards in faults.items()]
    return sorted(takers, key=_rank)


def _rank(taker: Taker) -> tuple[bool, int, ids.Key, str]:
    return _is_claim(taker.holder), -taker.gpus, taker.holder, taker.fault


def _tainted(share: pools.Share) -> Iterator[tuple[str, str]]:
    """Devices with a taint that tells of more than who allocates them."""
    every = (device for _, several in share.slices for device in several)
    for device, taint in ((owner, mark) for owner in every for mark in owner.taints):
        if taint.blocks and taint.key not in names.OWN_TAINTS:
            yield device.name, f"{taint.key}={taint.value}" if taint.value else taint.key


def _is_claim(key: ids.Key) -> bool:
    """No namespace has a colon, and all other keys of a view do; faults have no key."""
    return bool(key) and ":" not in key


def _gpu_of(device: str) -> str:
    return faces.gpu_name(device) or device
