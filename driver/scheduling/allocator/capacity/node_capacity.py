"""What each node has left, and what it looks like; looked at again when it changes. Pure."""

from collections.abc import Hashable, Mapping

from driver.resources import quantities
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot


class NodeCapacityCache:
    """Of every node, as of the last `renew`."""

    def __init__(self) -> None:
        self._revision = -1
        self._capacities: dict[str, base.NodeCapacity] = {}
        self._signatures: dict[str, Hashable | None] = {}

    def refresh(self, view: snapshot.Snapshot) -> bool:
        """Forget the nodes that changed since the last time; whether anything may have."""
        found = view.changed_since(self._revision)
        if found is None:
            self._capacities.clear()
            self._signatures.clear()
            self._revision = view.revision
            return True
        self._revision, changed = found
        for name in changed:
            self._capacities.pop(name, None)
            self._signatures.pop(name, None)
        return False

    def get(self, view: snapshot.Snapshot, node: nodes.Node) -> base.NodeCapacity:
        """Of a node."""
        known = self._capacities.get(node.name)
        if known is None:
            known = self._capacities[node.name] = compute_capacity(view, node)
        return known

    def signature(self, view: snapshot.Snapshot, node: nodes.Node) -> Hashable | None:
        """The same for nodes whose devices are alike (`peers`); None: like no other."""
        if node.name not in self._signatures:
            self._signatures[node.name] = node_signature.node_signature(
                view, view.reachable_pools(node.name)
            )
        return self._signatures[node.name]


def compute_capacity(view: snapshot.Snapshot, node: nodes.Node) -> base.NodeCapacity:
    """What a node has left now."""
    cards: list[base.GpuState] = []
    positions: list[base.GpuLocation] = []
    for share in view.reachable_pools(node.name):
        if share.pool.driver == view.driver:
            found = pool_layout.get_layout(share.pool)
            cards += _gpu_states(view, share.pool, found)
            positions += found.locations
    use = view.usage.get(node.name, snapshot.NodeUsage())
    left = {
        name: node.allocatable.get(name, 0) - use.requests.get(name, 0)
        for name in ("cpu", "memory")
    }
    wiring = base.NodeTopology(tuple(positions))
    return base.NodeCapacity(left["cpu"], left["memory"], tuple(cards), wiring)


def _gpu_states(
    view: snapshot.Snapshot, of: pools.Pool, found: pool_layout.PoolLayout
) -> tuple[base.GpuState, ...]:
    used = view.used_devices(of)
    if not used:
        return found.idle_gpus
    cards = list(found.idle_gpus)
    for name in used:
        face = found.faces.get(name)
        if face is not None:
            cards[face.gpu] = _used_gpu(view, of, face, cards[face.gpu])
    return tuple(cards)


def _used_gpu(
    view: snapshot.Snapshot, of: pools.Pool, face: pool_layout.Face, card: base.GpuState
) -> base.GpuState:
    """A card one of whose faces is in use; of MIG there may be several."""
    holders = view.holders(claims.DeviceId(of.driver, of.name, face.device.name))
    room = base.NodeCapacity(0, 0, (card,), base.NodeTopology(()))
    for holder in holders:
        room = room.without((device_usage(face, holder.result.consumed, card=0),))
    return room.gpus[0]


def device_usage(
    face: pool_layout.Face, consumed: Mapping[str, quantities.Quantity], card: int
) -> base.Usage:
    """What a result takes of its card: of a share the part of what is scarcest."""
    if face.mode not in base.SHARED_MODES:
        return base.Usage(card, face.mode, base.FULL, face.mask, face.memory)
    capacity = face.device.capacity
    parts = [
        -(-base.FULL * amount.nanos // capacity[name].value.nanos)
        for name, amount in consumed.items()
        if name in capacity and capacity[name].value.nanos
    ]
    memory = consumed.get("memory")
    size = face.memory if memory is None else memory.units
    return base.Usage(card, face.mode, max(parts, default=0), 0, size)
