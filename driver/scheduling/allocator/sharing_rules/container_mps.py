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
"""The daemon of a GPU: ("share", "") admits nothing else, ("claim", ...) only its own."""
_NONE: _Daemon = ("", "")
_SHARE = "share"


class _ContainerConstraint(constraint_shared.SharedConstraint[_Daemon | None]):
    """Constraint of one subrequest within a container; devices of other drivers do not count."""

    reason = reasons.Reason.MULTIPLE_MPS_DAEMONS

    def accepts(self, index: int) -> bool:
        daemon = self.signature(index)
        others = [other for other in self._entries if other is not None]
        return (
            daemon is None
            or not others
            or (daemon[0] != _SHARE and all(other == daemon for other in others))
        )

    def entry(self, index: int) -> _Daemon | None:
        return self.signature(index)

    def signature(self, index: int) -> _Daemon | None:
        device = self._devices[index]
        if device.id.driver != self._configs.driver:
            return None
        if device_config.sharing_kind(device.device) == names.SHARING_MPS:
            return _SHARE, ""
        settings = self._configs.claim_mps(self._claim, self._subrequest.request, device.device)
        return _NONE if settings is None else ("claim", str(self._claim))


def constraints(
    view: snapshot.Snapshot,
    workload: allocator_types.Workload,
    requests: Sequence[allocator_requests.RequestSpec],
    devices: Sequence[candidates.NodeDevice],
    configs: device_config.DeviceConfigs,
) -> Iterator[_ContainerConstraint]:
    """Yield a constraint for each container and each subrequest that it uses.

    A workload of one device has none.
    """
    most = sum(
        max(
            2 if subrequest.request.all_devices else subrequest.request.count
            for subrequest in request.subrequests
        )
        for request in requests
    )
    if most < 2 and not workload.allocated_claims:  # noqa: PLR2004
        return
    settled = [
        (claim, *entry)
        for claim in workload.allocated_claims
        for entry in _allocated_daemons(view, claim)
    ]
    subrequests = [
        (request.claim_index, subrequest)
        for request in requests
        for subrequest in request.subrequests
    ]
    for container in workload.pod.containers:
        uses = functools.partial(_container_uses, workload.pod, container)
        entries: list[_Daemon | None] = [
            entry for claim, name, entry in settled if uses(claim, name)
        ]
        for claim, subrequest in subrequests:
            if uses(workload.unallocated_claims[claim], subrequest.name):
                yield _ContainerConstraint(claim, subrequest, devices, configs, entries)


def _container_uses(
    pod: pods.Pod, container: pods.Container, claim: claims.Claim, subrequest: str
) -> bool:
    entry_names = {entry.name for entry in pod.claims if entry.claim == claim.name}
    base = subrequest.partition("/")[0]
    return any(name in entry_names and entry in {"", base} for name, entry in container.claims)


def _allocated_daemons(
    view: snapshot.Snapshot, claim: claims.Claim
) -> Iterator[tuple[str, _Daemon]]:
    """Yield the requests of an allocated claim of the pod, and the daemons of their devices."""
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
