"""Whether claims that share a GPU agree on what is one setting for all of it (D18). Pure."""

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

_Share = tuple[int, sharing.Terms | None]
"""A device, by its place, and the terms on which it is shared."""
_TermsByHolder = weakref.WeakKeyDictionary[snapshot.Holder, sharing.Terms | None]


class ShareTerms:
    """On which terms claims have their shares; read once a share, and forgotten with it."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._by_holder: _TermsByHolder = weakref.WeakKeyDictionary()

    def get(self, holder: snapshot.Holder, device: slices.Device) -> sharing.Terms | None:
        """Of a share of a device; None where its configuration cannot be read any more."""
        try:
            return self._by_holder[holder]
        except KeyError:
            found = self._by_holder[holder] = self._read(holder, device)
            return found

    def _read(self, holder: snapshot.Holder, device: slices.Device) -> sharing.Terms | None:
        config = device_config.result_config(holder.allocation, holder.result, device, self._driver)
        if config is None:
            return None
        word = device_config.sharing_kind(device)
        server = device_config.mps_server(device)
        terms = sharing.of_result(holder.result, word, holder.namespace, config, server)
        return None if isinstance(terms, sharing.Conflict) else terms


class _ShareConstraint(constraint_shared.SharedConstraint[_Share]):
    """Ways of one workload that would have shares of the same device; one object a way."""

    reason = reasons.Reason.SHARING_DISAGREES

    def accepts(self, place: int) -> bool:
        mine = self.signature(place)
        return mine is None or all(
            other is None or at != place or sharing.conflict(mine, other) is None
            for at, other in self._entries
        )

    def entry(self, place: int) -> _Share:
        return place, self.signature(place)

    def signature(self, place: int) -> sharing.Terms | None:
        device = self._devices[place].device
        if not device_config.sharing_kind(device):
            return None
        if isinstance(
            self._configs.get(self._claim, self._subrequest.request, device), errors.BadInput
        ):
            return None
        terms = self._configs.sharing_terms(self._claim, self._subrequest.request, device)
        return None if isinstance(terms, sharing.Conflict) else terms


def constraints(
    wants: Sequence[allocator_requests.RequestSpec],
    spots: Sequence[candidates.NodeDevice],
    found: device_config.DeviceConfigs,
) -> Iterator[_ShareConstraint]:
    """Where several requests may meet on one device."""
    if len(wants) < 2 or not any(spot.device.allow_multiple for spot in spots):  # noqa: PLR2004
        return
    given: list[_Share] = []
    for want in wants:
        for way in want.subrequests:
            yield _ShareConstraint(want.claim_index, way, spots, found, given)
