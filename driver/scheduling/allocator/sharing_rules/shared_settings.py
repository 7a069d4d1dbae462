"""Agreement of claims that share a GPU on its settings (D18). Pure."""

import weakref
from collections.abc import Iterator, Sequence

from driver import errors, reasons
from driver.resources.dra import slices
from driver.resources.sharing import compatibility as sharing
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator.constraints import shared as constraint_shared
from driver.scheduling.allocator.sharing_rules import device_config
from driver.scheduling.snapshot import snapshot

_Share = tuple[int, sharing.SharingTerms | None]
"""Index of a device, and the terms of its share."""
_TermsByHolder = weakref.WeakKeyDictionary[snapshot.Holder, sharing.SharingTerms | None]


class ShareTerms:
    """Cache of the terms of shares, one entry per holder, dropped with it."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._by_holder: _TermsByHolder = weakref.WeakKeyDictionary()

    def get(self, holder: snapshot.Holder, device: slices.Device) -> sharing.SharingTerms | None:
        """Return the terms of a share; None if its configuration cannot be read any more."""
        try:
            return self._by_holder[holder]
        except KeyError:
            terms = self._by_holder[holder] = self._read(holder, device)
            return terms

    def _read(self, holder: snapshot.Holder, device: slices.Device) -> sharing.SharingTerms | None:
        config = device_config.result_config(holder.allocation, holder.result, device, self._driver)
        if config is None:
            return None
        word = device_config.sharing_kind(device)
        server = device_config.mps_server(device)
        terms = sharing.result_terms(holder.result, word, holder.namespace, config, server)
        return None if isinstance(terms, sharing.Conflict) else terms


class _ShareConstraint(constraint_shared.SharedConstraint[_Share]):
    """Constraint between shares of one device within a workload; one object per subrequest."""

    reason = reasons.Reason.SHARING_CONFLICT

    def accepts(self, index: int) -> bool:
        terms = self.signature(index)
        return terms is None or all(
            other is None or position != index or sharing.find_conflict(terms, other) is None
            for position, other in self._entries
        )

    def entry(self, index: int) -> _Share:
        return index, self.signature(index)

    def signature(self, index: int) -> sharing.SharingTerms | None:
        device = self._devices[index].device
        is_ours = self._devices[index].id.driver == self._configs.driver
        if not is_ours or not device_config.sharing_kind(device):
            return None
        if isinstance(
            self._configs.get(self._claim, self._subrequest.request, device), errors.BadInput
        ):
            return None
        terms = self._configs.sharing_terms(self._claim, self._subrequest.request, device)
        return None if isinstance(terms, sharing.Conflict) else terms


def constraints(
    requests: Sequence[allocator_requests.RequestSpec],
    devices: Sequence[candidates.NodeDevice],
    configs: device_config.DeviceConfigs,
) -> Iterator[_ShareConstraint]:
    """Yield constraints if several requests may share one device."""
    if len(requests) < 2 or not any(device.device.allow_multiple for device in devices):  # noqa: PLR2004
        return
    entries: list[_Share] = []
    for request in requests:
        for subrequest in request.subrequests:
            yield _ShareConstraint(request.claim_index, subrequest, devices, configs, entries)
