"""Cache of each node's free capacity and signature, updated when the node changes. Pure."""

from collections.abc import Mapping

from driver.resources import quantities
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import pool_layout, vocabulary
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot


class NodeCapacityCache:
    """Capacities and signatures as of the last `refresh`."""

    def __init__(self) -> None:
        self._revision = -1
        self._capacities: dict[str, base.NodeCapacity] = {}
        self._remaining: dict[str, tuple[int, int]] = {}
        self._signatures: dict[str, node_signature.DeviceSignature | None] = {}

    def refresh(self, view: snapshot.Snapshot) -> bool:
        """Drop the nodes that changed since the last call; return whether any may have changed."""
        changes = view.changed_since(self._revision)
        if changes is None:
            self._capacities.clear()
            self._remaining.clear()
            self._signatures.clear()
            self._revision = view.revision
            return True
        self._revision, changed = changes
        for name in changed:
            self._capacities.pop(name, None)
            self._remaining.pop(name, None)
            self._signatures.pop(name, None)
        return False

    def get(self, view: snapshot.Snapshot, node: nodes.Node) -> base.NodeCapacity:
        """Return the capacity of a node."""
        capacity = self._capacities.get(node.name)
        if capacity is None:
            capacity = self._capacities[node.name] = compute_capacity(view, node)
        return capacity

    def cpu_and_gpus(self, view: snapshot.Snapshot, node: nodes.Node) -> tuple[int, int]:
        """Return the free milli CPUs of a node, and the thousandths left of all of its GPUs."""
        amounts = self._remaining.get(node.name)
        if amounts is None:
            capacity = self.get(view, node)
            amounts = self._remaining[node.name] = capacity.cpu, capacity.remaining
        return amounts

    def signature(
        self, view: snapshot.Snapshot, node: nodes.Node
    ) -> node_signature.DeviceSignature | None:
        """Return a value that nodes with equivalent devices share; None: equivalent to no other."""
        if node.name not in self._signatures:
            self._signatures[node.name] = node_signature.node_signature(
                view, view.reachable_pools(node.name)
            )
        return self._signatures[node.name]


def compute_capacity(view: snapshot.Snapshot, node: nodes.Node) -> base.NodeCapacity:
    """Return the free capacity of a node."""
    gpus: list[base.GpuState] = []
    positions: list[base.GpuLocation] = []
    for share in view.reachable_pools(node.name):
        if vocabulary.is_gpu_pool(view, share.pool):
            layout = pool_layout.get_layout(share.pool)
            gpus += _gpu_states(view, share.pool, layout)
            positions += layout.locations
    usage = view.usage.get(node.name, snapshot.NodeUsage())
    remaining = {
        name: node.allocatable.get(name, 0) - usage.requests.get(name, 0)
        for name in ("cpu", "memory")
    }
    wiring = base.NodeTopology(tuple(positions))
    return base.NodeCapacity(remaining["cpu"], remaining["memory"], tuple(gpus), wiring)


def _gpu_states(
    view: snapshot.Snapshot, pool: pools.Pool, layout: pool_layout.PoolLayout
) -> tuple[base.GpuState, ...]:
    used = view.used_devices(pool)
    if not used:
        return layout.idle_gpus
    gpus = list(layout.idle_gpus)
    for name in used:
        face = layout.faces.get(name)
        if face is not None:
            gpus[face.gpu] = _used_gpu(view, pool, face, gpus[face.gpu])
    return tuple(gpus)


def _used_gpu(
    view: snapshot.Snapshot, pool: pools.Pool, face: pool_layout.Face, gpu: base.GpuState
) -> base.GpuState:
    """Return a GPU with one of its faces in use; with MIG several may be."""
    holders = view.holders(claims.DeviceId(pool.driver, pool.name, face.device.name))
    capacity = base.NodeCapacity(0, 0, (gpu,), base.NodeTopology(()))
    for holder in holders:
        capacity = capacity.without((device_usage(face, holder.result.consumed, gpu=0),))
    return capacity.gpus[0]


def device_usage(
    face: pool_layout.Face, consumed: Mapping[str, quantities.Quantity], gpu: int
) -> base.Usage:
    """Return what a result uses of its GPU; for a share the fraction of its scarcest capacity."""
    if face.mode not in base.SHARED_MODES:
        return base.Usage(gpu, face.mode, base.FULL, face.mask, face.memory)
    capacity = face.device.capacity
    parts = [
        -(-base.FULL * amount.nanos // capacity[name].value.nanos)
        for name, amount in consumed.items()
        if name in capacity and capacity[name].value.nanos
    ]
    memory = consumed.get("memory")
    size = face.memory if memory is None else memory.units
    return base.Usage(gpu, face.mode, max(parts, default=0), 0, size)
