"""Cache of each node's free capacity and signature, updated when the node changes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from driver.resources import quantities
from driver.resources.core import nodes
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import pool_layout, vocabulary
from driver.scheduling.allocator.equivalence import node_signature
from driver.scheduling.allocator.node_filter import node_resources_fit
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import snapshot


@dataclass(frozen=True, slots=True)
class NodeState:
    """All of a node that results depend on for pods without selectors, ports and volumes.

    `devices` is a value that nodes with equivalent devices share; None: equivalent to no other.
    `cpu` are the milli CPUs left for pods, `gpus` the thousandths left of all GPUs, `free` what is
    left by resource. `is_open`: no taint and no condition keeps pods away.
    """

    capacity: base.NodeCapacity
    devices: node_signature.DeviceSignature | None
    cpu: int
    gpus: int
    free: Mapping[str, int]
    is_open: bool
    drivers: frozenset[str]
    """Drivers of the pools that it reaches."""


class NodeCapacityCache:
    """States of nodes as of the last `refresh`."""

    def __init__(self) -> None:
        self._revision = -1
        self._states: dict[str, NodeState] = {}
        self._signatures: dict[str, node_signature.DeviceSignature | None] = {}

    def refresh(self, view: snapshot.Snapshot) -> bool:
        """Drop the nodes that changed since the last call; return whether any may have changed."""
        changes = view.changed_since(self._revision)
        if changes is None:
            self._states.clear()
            self._signatures.clear()
            self._revision = view.revision
            return True
        self._revision, changed = changes
        for name in changed:
            self._states.pop(name, None)
            self._signatures.pop(name, None)
        return False

    def state(self, view: snapshot.Snapshot, node: nodes.Node) -> NodeState:
        """Return the state of a node."""
        state = self._states.get(node.name)
        if state is None:
            devices = self.signature(view, node)
            state = self._states[node.name] = _compute_state(view, node, devices)
        return state

    def get(self, view: snapshot.Snapshot, node: nodes.Node) -> base.NodeCapacity:
        """Return the capacity of a node."""
        return self.state(view, node).capacity

    def signature(
        self, view: snapshot.Snapshot, node: nodes.Node
    ) -> node_signature.DeviceSignature | None:
        """Return a value that nodes with equivalent devices share; None: equivalent to no other."""
        if node.name not in self._signatures:
            self._signatures[node.name] = node_signature.node_signature(
                view, view.reachable_pools(node.name)
            )
        return self._signatures[node.name]


def _compute_state(
    view: snapshot.Snapshot, node: nodes.Node, devices: node_signature.DeviceSignature | None
) -> NodeState:
    shares = view.reachable_pools(node.name)
    usage = view.usage.get(node.name, snapshot.NodeUsage())
    capacity = compute_capacity(view, node)
    return NodeState(
        capacity,
        devices,
        capacity.cpu,
        capacity.remaining,
        node_resources_fit.free_resources(node, usage),
        node.ready and not (node.leaving or node.cordoned or node.taints or usage.placeholders),
        frozenset(share.pool.driver for share in shares),
    )


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
    free = node_resources_fit.free_resources(node, usage)
    wiring = base.NodeTopology(tuple(positions))
    return base.NodeCapacity(free.get("cpu", 0), free.get("memory", 0), tuple(gpus), wiring)


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
