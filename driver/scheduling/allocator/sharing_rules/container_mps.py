"""A container has one MPS daemon at most, and no GPU outside it (D10). Pure.

A process talks to one daemon, and of the limits of two shares in one environment one silently wins.
"""

import functools
from collections.abc import Iterator, Sequence

from driver import names, reasons
from driver.api import v1alpha1
from driver.resources.core import pods
from driver.resources.dra import claims, slices
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.constraints import shared as constraint_shared
from driver.scheduling.allocator.sharing_rules import device_config
from driver.scheduling.snapshot import snapshot

_Daemon = tuple[str, str]
"""The daemon of a device: ("share", "") admits nothing else, ("claim", ...) only its own."""
_NONE: _Daemon = ("", "")
_SHARE = "share"


class _ContainerConstraint(constraint_shared.SharedConstraint[_Daemon]):
    """What one way of one claim brings into a container."""

    reason = reasons.Reason.CONTAINER_DAEMONS

    def accepts(self, place: int) -> bool:
        mine = self.signature(place)
        return not self._entries or (
            mine[0] != _SHARE and all(other == mine for other in self._entries)
        )

    def entry(self, place: int) -> _Daemon:
        return self.signature(place)

    def signature(self, place: int) -> _Daemon:
        spot = self._devices[place]
        if device_config.sharing_kind(spot.device) == names.SHARING_MPS:
            return _SHARE, ""
        own = self._configs.claim_mps(self._claim, self._subrequest.request, spot.device)
        return _NONE if own is None else ("claim", str(self._claim))


def constraints(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    wants: Sequence[allocator_requests.RequestSpec],
    spots: Sequence[candidates.NodeDevice],
    found: device_config.DeviceConfigs,
) -> Iterator[_ContainerConstraint]:
    """One for each container and each way of a request that it uses.

    A workload of one device has nothing to keep.
    """
    most = sum(
        max(2 if way.request.everything else way.request.count for way in want.subrequests)
        for want in wants
    )
    if most < 2 and not workload.allocated_claims:  # noqa: PLR2004
        return
    settled = [
        (claim, *one)
        for claim in workload.allocated_claims
        for one in _allocated_daemons(view, claim)
    ]
    ways = [(want.claim_index, way) for want in wants for way in want.subrequests]
    for container in workload.pod.containers:
        uses = functools.partial(_container_uses, workload.pod, container)
        given = [one for claim, name, one in settled if uses(claim, name)]
        for claim, way in ways:
            if uses(workload.open_claims[claim], way.name):
                yield _ContainerConstraint(claim, way, spots, found, given)


def _container_uses(
    pod: pods.Pod, container: pods.Container, claim: claims.Claim, way: str
) -> bool:
    mine = {one.name for one in pod.claims if one.claim == claim.name}
    base = way.partition("/")[0]
    return any(name in mine and one in {"", base} for name, one in container.claims)


def _allocated_daemons(
    view: snapshot.Snapshot, claim: claims.Claim
) -> Iterator[tuple[str, _Daemon]]:
    """The requests of an allocated claim of the pod, and the daemons of their devices."""
    allocation = claim.allocation
    if allocation is None:
        return
    for result in allocation.results:
        if result.device.driver == view.driver:
            device = snapshot.published_device(view, result.device)
            if device is not None:
                yield result.request, _result_daemon(view, claim, allocation, result, device)


def _result_daemon(
    view: snapshot.Snapshot,
    claim: claims.Claim,
    allocation: claims.Allocation,
    result: claims.Result,
    device: slices.Device,
) -> _Daemon:
    if device_config.sharing_kind(device):
        mps = device_config.sharing_kind(device) == names.SHARING_MPS
        return (_SHARE, "") if mps else _NONE
    config = device_config.result_config(allocation, result, device, view.driver)
    own = config is not None and isinstance(config.sharing, v1alpha1.MpsSharing)
    alone = own and not result.admin_access
    return ("claim", claim.uid) if alone else _NONE
