"""Equivalence of nodes: equivalent nodes give the same result. Pure.

Nodes are equivalent when nothing but names and UUIDs distinguishes the devices that they reach, and
the same of them are in use. Pod filters are evaluated per node.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from driver.resources import fields
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.snapshot import snapshot

DeviceSignature = tuple[tuple[Hashable, frozenset[Hashable]], ...]
"""Per pool its signature, and what of it is in use."""


def node_signature(
    view: snapshot.Snapshot, shares: Iterable[pools.NodePool]
) -> DeviceSignature | None:
    """Return a value that equivalent nodes share; None for a node without equivalent.

    That is a node that does not reach all of a pool, a pool without a signature, and a used share
    of ours with configuration of its own (its terms may be of any kind), unless it is a
    SliceConfig.
    """
    signature: list[tuple[Hashable, frozenset[Hashable]]] = []
    for share in shares:
        pool = share.pool
        if (
            pool.signature is None
            or share.problem
            or sum(len(d) for _, d in share.slices) != pool.size
        ):
            return None
        used = [
            _device_use(view, claims.DeviceId(pool.driver, pool.name, name))
            for name in view.used_devices(pool)
        ]
        if None in used:
            return None
        signature.append((pool.signature, frozenset(used)))
    return tuple(signature)


def _device_use(view: snapshot.Snapshot, device: claims.DeviceId) -> Hashable | None:
    """Return how a device is used: amounts and namespaces of its shares (D18)."""
    amounts: dict[str, int] = {}
    namespaces: set[str] = set()
    for holder in view.holders(device):
        if (
            holder.result.share_id
            and device.driver == view.driver
            and any(_configures(view, config.opaque) for config in holder.allocation.configs)
        ):
            return None
        if holder.result.share_id:
            namespaces.add(holder.namespace)
        for name, amount in holder.result.consumed.items():
            amounts[name] = amounts.get(name, 0) + amount.nanos
    if not namespaces:
        return device.device
    return device.device, frozenset(amounts.items()), frozenset(namespaces)


def used_device(use: Hashable) -> str:
    """Return the name of a device from how it is used, an element of a DeviceSignature."""
    return str(use[0] if isinstance(use, tuple) else use)


def depends_on_uuids(
    view: snapshot.Snapshot,
    workload_claims: Iterable[claims.Claim],
    requests: Sequence[allocator_requests.RequestSpec],
) -> bool:
    """Return whether a workload's result may depend on UUIDs: then no nodes are equivalent for it.

    Selectors and constraints declare what they read; configuration of our driver may name a device,
    unless it is a SliceConfig, and that of another driver decides nothing here.
    """
    subrequests = [subrequest for request in requests for subrequest in request.subrequests]
    return (
        any(_reads_uuids(subrequest) for subrequest in subrequests)
        or any(
            _configures(view, entry)
            for subrequest in subrequests
            for entry in view.classes[subrequest.request.device_class].configs
        )
        or any(
            any(_configures(view, entry.opaque) for entry in claim.spec.configs)
            or any(pools.is_uuid(entry.attribute) for entry in claim.spec.constraints)
            for claim in workload_claims
        )
    )


def _configures(view: snapshot.Snapshot, opaque: fields.Raw) -> bool:
    """Return whether it configures a device of ours; a SliceConfig selects only."""
    if opaque.get("driver") != view.driver:
        return False
    parameters = opaque.get("parameters")
    return not isinstance(parameters, Mapping) or parameters.get("kind") != "SliceConfig"


def _reads_uuids(subrequest: allocator_requests.SubRequest) -> bool:
    return any(
        matcher.reads is None or any(map(pools.is_uuid, matcher.reads))
        for matcher in subrequest.matchers
    )
