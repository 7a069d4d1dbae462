"""Allocations of claims by version, and devices allocated beyond their capacity.

The judge of churn: told of every version of every claim in the server's own order, it keeps who
holds what and says at which version a device, a capacity or a counter was over-committed.
"""

import collections
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.resources.dra import claims, slices

Raw = Mapping[str, Any]
Pool = tuple[str, str]
"""Driver and name."""


@dataclass(frozen=True, slots=True)
class Breach:
    """Too much given out: at which version, of what, to whom."""

    version: int
    what: str
    holders: tuple[str, ...]


@dataclass
class _Hardware:
    """The devices of one pool by name, and what its counter sets hold, in nano-units."""

    devices: dict[str, slices.Device] = field(default_factory=dict)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)


class History:
    """Feed it `see`; read `breaches`. Devices never change what they are while it looks."""

    def __init__(self, results: Iterable[slices.Slice]) -> None:
        self._pools: dict[Pool, _Hardware] = {}
        for result in results:
            pool = self._pools.setdefault((result.driver, result.pool), _Hardware())
            pool.devices |= {device.name: device for device in result.devices}
            for shared in result.counter_sets:
                amounts = shared.counters.items()
                pool.counters |= {(shared.name, name): amount.nanos for name, amount in amounts}
        self._held: dict[str, tuple[claims.Result, ...]] = {}
        self._names: dict[str, str] = {}
        self.breaches: list[Breach] = []
        self.counts: collections.Counter[str] = collections.Counter()
        self.ever: set[str] = set()
        """Claims that were allocated at some time, as `namespace/name`."""

    def see(self, version: int, raw: Raw, *, deleted: bool = False) -> None:
        """Take one version of a claim, in order."""
        claim = claims.parse(dict(raw))
        previous = self._held.get(claim.uid, ())
        results = () if deleted or claim.allocation is None else claim.allocation.results
        results = tuple(result for result in results if not result.admin_access)
        self.counts["versions"] += 1
        if results == previous:
            return
        self._names[claim.uid] = claim.key
        self._count(previous, results, deleted=deleted)
        if results:
            self.ever.add(claim.key)
            self._held[claim.uid] = results
        else:
            self._held.pop(claim.uid, None)
        for pool in {(result.device.driver, result.device.pool) for result in results}:
            self._check(version, pool)

    def holders(self) -> tuple[str, ...]:
        """Return who holds anything now."""
        return tuple(sorted(self._names[uid] for uid in self._held))

    def _count(
        self, previous: tuple[claims.Result, ...], now: tuple[claims.Result, ...], *, deleted: bool
    ) -> None:
        match bool(previous), bool(now):
            case False, True:
                self.counts["allocated"] += 1
                self.counts["devices"] += len(now)
            case True, True:
                self.counts["changed in place"] += 1
            case _:
                self.counts["deleted while allocated" if deleted else "deallocated"] += 1

    def _check(self, version: int, pool: Pool) -> None:
        used = self._used(pool)
        hardware = self._pools.get(pool, _Hardware())
        for name, users in used.items():
            device = hardware.devices.get(name)
            if device is None:
                self._breach(version, f"{pool[1]}/{name} is no device", users)
            elif not device.allow_multiple and len(users) > 1:
                self._breach(version, f"{pool[1]}/{name} is exclusive", users)
            elif device.allow_multiple:
                self._check_capacity(version, pool, device, users)
        self._check_counters(version, pool, used)

    def _used(self, pool: Pool) -> dict[str, list[tuple[str, claims.Result]]]:
        """Return the results by device of a pool, one entry a claim."""
        used: dict[str, list[tuple[str, claims.Result]]] = {}
        for uid, results in self._held.items():
            for result in results:
                if (result.device.driver, result.device.pool) == pool:
                    used.setdefault(result.device.device, []).append((self._names[uid], result))
        return used

    def _check_capacity(
        self,
        version: int,
        pool: Pool,
        device: slices.Device,
        users: list[tuple[str, claims.Result]],
    ) -> None:
        taken: collections.Counter[str] = collections.Counter()
        for _, result in users:
            taken.update({name: amount.nanos for name, amount in result.consumed.items()})
        for name, nanos in taken.items():
            has = device.capacity.get(name)
            if has is None or nanos > has.value.nanos:
                self._breach(version, f"{pool[1]}/{device.name}: {name}", users)

    def _check_counters(
        self, version: int, pool: Pool, used: Mapping[str, list[tuple[str, claims.Result]]]
    ) -> None:
        """Each device in use is charged once, shared or not."""
        hardware = self._pools.get(pool, _Hardware())
        taken: collections.Counter[tuple[str, str]] = collections.Counter()
        payers: dict[tuple[str, str], list[tuple[str, claims.Result]]] = {}
        for name, users in used.items():
            for use in hardware.devices[name].consumes if name in hardware.devices else ():
                for counter, amount in use.counters.items():
                    taken[use.set, counter] += amount.nanos
                    payers.setdefault((use.set, counter), []).extend(users)
        for key, nanos in taken.items():
            if nanos > hardware.counters.get(key, 0):
                self._breach(version, f"{pool[1]}/{key[0]}: counter {key[1]}", payers[key])

    def _breach(
        self, version: int, description: str, users: Iterable[tuple[str, claims.Result]]
    ) -> None:
        self.breaches.append(Breach(version, description, tuple(sorted(name for name, _ in users))))
