"""Whether claims that share a GPU agree on what is one setting for all of it (D18). Pure."""

from collections.abc import Iterator, Sequence

from driver import errors, reasons
from driver.api import decode
from driver.controller import view as cluster
from driver.controller.allocation import asked, configs, offers
from driver.resources import claims, slices
from driver.sharing import documents
from driver.sharing import terms as sharing

_MOST = 1 << 15


class Terms:
    """On which terms claims have their shares; read once a share."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._known: dict[str, tuple[claims.Allocation, sharing.Terms | None]] = {}

    def of(self, holder: cluster.Holder, device: slices.Device) -> sharing.Terms | None:
        """Of a share of a device; None where its configuration cannot be read any more."""
        key = holder.result.share_id
        known = self._known.get(key)
        if known is not None and known[0] is holder.allocation:
            return known[1]
        if len(self._known) >= _MOST:
            self._known.clear()
        found = self._read(holder, device)
        self._known[key] = holder.allocation, found
        return found

    def _read(self, holder: cluster.Holder, device: slices.Device) -> sharing.Terms | None:
        try:
            found = documents.of_allocation(holder.allocation, self._driver)
            config = decode.winner(found, holder.result.request, "GpuConfig")
        except errors.BadInput:
            return None
        word = configs.sharing_of(device)
        terms = sharing.of_result(holder.result, word, holder.namespace, config)
        return None if isinstance(terms, sharing.Conflict) else terms


class _Together:
    """Ways of one workload that would have shares of the same device; one object a way."""

    reason = reasons.Reason.SHARING_DISAGREES

    def __init__(
        self,
        claim: int,
        way: asked.Way,
        spots: Sequence[offers.Spot],
        found: configs.Configs,
        given: list[tuple[int, sharing.Terms | None]],
    ) -> None:
        self._claim = claim
        self._way = way
        self._spots = spots
        self._configs = found
        self._given = given

    def covers(self, claim: int, way: str) -> bool:
        return (claim, way) == (self._claim, self._way.name)

    def accepts(self, place: int) -> bool:
        mine = self.look(place)
        return mine is None or all(
            other is None or at != place or sharing.conflict(mine, other) is None
            for at, other in self._given
        )

    def add(self, place: int) -> None:
        self._given.append((place, self.look(place)))

    def drop(self) -> None:
        self._given.pop()

    def clear(self) -> None:
        self._given.clear()

    def look(self, place: int) -> sharing.Terms | None:
        device = self._spots[place].device
        if not configs.sharing_of(device):
            return None
        if isinstance(self._configs.of(self._claim, self._way.request, device), errors.BadInput):
            return None
        terms = self._configs.terms(self._claim, self._way.request, device)
        return None if isinstance(terms, sharing.Conflict) else terms


def pacts(
    wants: Sequence[asked.Want],
    spots: Sequence[offers.Spot],
    found: configs.Configs,
) -> Iterator[_Together]:
    """Where several requests may meet on one device."""
    if len(wants) < 2 or not any(spot.device.allow_multiple for spot in spots):  # noqa: PLR2004
        return
    given: list[tuple[int, sharing.Terms | None]] = []
    for want in wants:
        for way in want.ways:
            yield _Together(want.claim, way, spots, found, given)
