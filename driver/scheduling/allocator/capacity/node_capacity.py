"""What each node has left, and what it looks like; looked at again when it changes. Pure."""

from collections.abc import Hashable, Mapping

from driver.resources import quantities
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot


class Rooms:
    """Of every node, as of the last `renew`."""

    def __init__(self) -> None:
        self._mark = -1
        self._known: dict[str, base.Room] = {}
        self._looks: dict[str, Hashable | None] = {}

    def renew(self, view: snapshot.Snapshot) -> bool:
        """Forget the nodes that changed since the last time; whether anything may have."""
        found = view.changed_since(self._mark)
        if found is None:
            self._known.clear()
            self._looks.clear()
            self._mark = view.revision
            return True
        self._mark, changed = found
        for name in changed:
            self._known.pop(name, None)
            self._looks.pop(name, None)
        return False

    def of(self, view: snapshot.Snapshot, node: nodes.Node) -> base.Room:
        """Of a node."""
        known = self._known.get(node.name)
        if known is None:
            known = self._known[node.name] = room(view, node)
        return known

    def look(self, view: snapshot.Snapshot, node: nodes.Node) -> Hashable | None:
        """The same for nodes whose devices are alike (`peers`); None: like no other."""
        if node.name not in self._looks:
            self._looks[node.name] = node_signature.look(view, view.reachable_pools(node.name))
        return self._looks[node.name]


def room(view: snapshot.Snapshot, node: nodes.Node) -> base.Room:
    """What a node has left now."""
    cards: list[base.Card] = []
    positions: list[base.Position] = []
    for share in view.reachable_pools(node.name):
        if share.pool.driver == view.driver:
            found = pool_layout.of(share.pool)
            cards += _cards(view, share.pool, found)
            positions += found.positions
    use = view.usage.get(node.name, snapshot.NodeUsage())
    left = {
        name: node.allocatable.get(name, 0) - use.requests.get(name, 0)
        for name in ("cpu", "memory")
    }
    wiring = base.Wiring(tuple(positions))
    return base.Room(left["cpu"], left["memory"], tuple(cards), wiring)


def _cards(
    view: snapshot.Snapshot, of: pools.Pool, found: pool_layout.Anatomy
) -> tuple[base.Card, ...]:
    used = view.used_devices(of)
    if not used:
        return found.idle
    cards = list(found.idle)
    for name in used:
        face = found.faces.get(name)
        if face is not None:
            cards[face.card] = _used(view, of, face, cards[face.card])
    return tuple(cards)


def _used(
    view: snapshot.Snapshot, of: pools.Pool, face: pool_layout.Face, card: base.Card
) -> base.Card:
    """A card one of whose faces is in use; of MIG there may be several."""
    holders = view.holders(claims.DeviceId(of.driver, of.name, face.device.name))
    room = base.Room(0, 0, (card,), base.Wiring(()))
    for holder in holders:
        room = room.without((taken(face, holder.result.consumed, card=0),))
    return room.cards[0]


def taken(
    face: pool_layout.Face, consumed: Mapping[str, quantities.Quantity], card: int
) -> base.Taken:
    """What a result takes of its card: of a share the part of what is scarcest."""
    if face.mode not in base.SHARED:
        return base.Taken(card, face.mode, base.FULL, face.mask, face.memory)
    capacity = face.device.capacity
    parts = [
        -(-base.FULL * amount.nanos // capacity[name].value.nanos)
        for name, amount in consumed.items()
        if name in capacity and capacity[name].value.nanos
    ]
    memory = consumed.get("memory")
    size = face.memory if memory is None else memory.units
    return base.Taken(card, face.mode, max(parts, default=0), 0, size)
