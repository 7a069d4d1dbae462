"""Holders of the devices that a rejection counts as taken, and of the parts of their GPUs. Pure.

A rejection is shared by equivalent nodes, so it names no holder; this is read beside it, for the
few nodes that matter most.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from driver import ids, names, reasons
from driver.devices import faces
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import vocabulary
from driver.scheduling.snapshot import snapshot

DescribeHolder = Callable[[ids.Key], str]
"""Words for a holder: `taken by pod team/a`, `kept for team/b until ...`."""
_TAKEN = frozenset(
    {
        reasons.Reason.DEVICE_IN_USE,
        reasons.Reason.COUNTERS_EXHAUSTED,
        reasons.Reason.INCOMPATIBLE_GROUPS,
    }
)
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
    unschedulable: allocator_types.Unschedulable,
    first: ids.NodeName | None = None,
) -> tuple[GpuHolder, ...]:
    """Return the holders on nodes that lack taken or faulty devices: `first`, then by shortage.

    Per node reservations and faults first, then by count of GPUs and by key. At most two nodes are
    read.
    """
    nodes = dict.fromkeys((*_first(unschedulable, first), *_ranked_nodes(unschedulable)))
    return tuple(holder for node in [*nodes][:_MAX_NODES] for holder in _node_holders(view, node))


def describe(takers: Iterable[GpuHolder], name_of: DescribeHolder) -> str:
    """`6 GPUs of node-1 are kept for team/b until ..., 2 are taken by pod team/a`."""
    by_node: dict[ids.NodeName, list[GpuHolder]] = defaultdict(list)
    for taker in takers:
        by_node[taker.node].append(taker)
    return "; ".join(
        _describe_node(node, node_holders, name_of) for node, node_holders in by_node.items()
    )


def format_gpus(count: int) -> str:
    """`1 GPU`, `6 GPUs`."""
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _describe_node(
    node: ids.NodeName, node_holders: list[GpuHolder], name_of: DescribeHolder
) -> str:
    first, *others = node_holders[:_MAX_HOLDERS]
    verb = "is" if first.gpus == 1 else "are"
    parts = [f"{format_gpus(first.gpus)} of {node} {verb} {_describe_holder(first, name_of)}"]
    parts += (
        f"{taker.gpus} {'is' if taker.gpus == 1 else 'are'} {_describe_holder(taker, name_of)}"
        for taker in others
    )
    rest = len(node_holders) - _MAX_HOLDERS
    return ", ".join([*parts, *([f"others by {rest} more"] if rest > 0 else [])])


def _describe_holder(taker: GpuHolder, name_of: DescribeHolder) -> str:
    return f"tainted {taker.fault}" if taker.fault else name_of(taker.holder)


def _lacking_nodes(
    unschedulable: allocator_types.Unschedulable,
) -> Iterator[tuple[int, Sequence[ids.NodeName]]]:
    """Yield the nodes with taken or faulty devices, by how many devices they lack."""
    for rejection, nodes in unschedulable.rejections.items():
        if any(reason in _TAKEN or reason is _FAULTY for reason, _ in rejection.device_reasons):
            yield rejection.requested - rejection.fits, nodes


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
    by_holder: dict[ids.Key, set[tuple[str, str]]] = defaultdict(set)
    faults: dict[str, set[tuple[str, str]]] = defaultdict(set)
    if node not in view.nodes:
        return []
    for share in view.reachable_pools(node):
        if not vocabulary.is_gpu_pool(view, share.pool):
            continue
        for device in view.used_devices(share.pool):
            for holder in view.holders(claims.DeviceId(share.pool.driver, share.pool.name, device)):
                by_holder[holder.claim].add((share.pool.name, _gpu_name(device)))
        for device, taint in _tainted_devices(share):
            faults[taint].add((share.pool.name, _gpu_name(device)))
    # Reserved GPUs still in use are counted with their users.
    in_use = {gpu for key, held in by_holder.items() if _is_claim(key) for gpu in held}
    gpu_holders = [
        GpuHolder(node, len(gpu_keys), key)
        for key, held in by_holder.items()
        if (gpu_keys := held if _is_claim(key) else held - in_use)
    ]
    gpu_holders += [
        GpuHolder(node, len(gpu_keys), ids.Key(""), key) for key, gpu_keys in faults.items()
    ]
    return sorted(gpu_holders, key=_rank)


def _rank(taker: GpuHolder) -> tuple[bool, int, ids.Key, str]:
    return _is_claim(taker.holder), -taker.gpus, taker.holder, taker.fault


def _tainted_devices(share: pools.NodePool) -> Iterator[tuple[str, str]]:
    """Yield the devices with a taint other than the one that names their allocator."""
    every = (device for _, several in share.slices for device in several)
    for device, taint in ((owner, mark) for owner in every for mark in owner.taints):
        if taint.blocks and taint.key not in names.OWN_TAINTS:
            yield device.name, f"{taint.key}={taint.value}" if taint.value else taint.key


def _is_claim(key: ids.Key) -> bool:
    """Return whether a holder is a claim: no namespace has a colon; faults have no key."""
    return bool(key) and ":" not in key


def _gpu_name(device: str) -> str:
    return faces.gpu_name(device) or device
