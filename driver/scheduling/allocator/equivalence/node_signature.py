"""Which nodes are alike, so that what one answers all of them would. Pure.

Nodes are alike where nothing but names and UUIDs tells the devices that they reach apart, and where
the same of them are in use. Whether a pod fits is for each node to say.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from driver.resources import fields
from driver.resources.dra import claims, pools
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.snapshot import snapshot


def node_signature(view: snapshot.Snapshot, shares: Iterable[pools.Share]) -> Hashable | None:
    """The same for nodes that are alike, of what they reach; None for one that is like no other.

    A pool of which it does not reach all makes a node so, one that has no look, and a share in use
    that is configured (its terms may be of any kind), but for what its claim needed.
    """
    found: list[Hashable] = []
    for share in shares:
        of = share.pool
        if of.look is None or share.problem or sum(len(d) for _, d in share.slices) != of.size:
            return None
        used = [
            _device_use(view, claims.DeviceId(of.driver, of.name, name))
            for name in view.used_devices(of)
        ]
        if None in used:
            return None
        found.append((of.look, frozenset(used)))
    return tuple(found)


def _device_use(view: snapshot.Snapshot, device: claims.DeviceId) -> Hashable | None:
    """How a device is used: of shares how much, and by which namespaces (D18)."""
    amounts: dict[str, int] = {}
    namespaces: set[str] = set()
    for holder in view.holders(device):
        if holder.result.share_id and not all(
            _is_slice_config(one.opaque) for one in holder.allocation.configs
        ):
            return None
        if holder.result.share_id:
            namespaces.add(holder.namespace)
        for name, amount in holder.result.consumed.items():
            amounts[name] = amounts.get(name, 0) + amount.nanos
    if not namespaces:
        return device.device
    return device.device, frozenset(amounts.items()), frozenset(namespaces)


def depends_on_uuids(
    view: snapshot.Snapshot,
    found: Iterable[claims.Claim],
    wants: Sequence[allocator_requests.RequestSpec],
) -> bool:
    """Whether a workload's answer may depend on UUIDs: then no node is like another for it.

    Selectors and constraints say what they read; configuration may be for one device, unless it
    tells a need.
    """
    ways = [way for want in wants for way in want.subrequests]
    return (
        any(_reads_uuids(way) for way in ways)
        or any(
            not _is_slice_config(one)
            for way in ways
            for one in view.classes[way.request.device_class].configs
        )
        or any(
            any(not _is_slice_config(one.opaque) for one in claim.spec.configs)
            or any(pools.is_uuid(one.attribute) for one in claim.spec.constraints)
            for claim in found
        )
    )


def _is_slice_config(opaque: fields.Raw) -> bool:
    """Whether a configuration says what kind of part will do, and nothing of how it is set up."""
    parameters = opaque.get("parameters")
    return isinstance(parameters, Mapping) and parameters.get("kind") == "SliceConfig"


def _reads_uuids(way: allocator_requests.SubRequest) -> bool:
    return any(one.reads is None or any(map(pools.is_uuid, one.reads)) for one in way.matchers)
