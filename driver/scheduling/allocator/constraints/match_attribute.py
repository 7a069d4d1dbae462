"""Constraints between the devices of one claim (KEP-4381, lists by KEP-5491). Pure.

Agreeing devices have an element in common, all of them; differing ones have none, any two of them.
A single value is a list of one. A device without the attribute does not qualify.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from driver import reasons
from driver.resources.dra import attributes, claims
from driver.resources.dra import requests as dra_requests
from driver.scheduling.allocator import candidates

Members = frozenset[Hashable]


@dataclass(slots=True)
class Bond:
    """One constraint of one claim, and the values of the devices it has been given so far.

    `values` is by place of the node's spots; None where the attribute is not there.
    """

    claim: int
    rule: dra_requests.Constraint
    values: tuple[Members | None, ...]
    _given: list[Members] = field(default_factory=list)

    @property
    def reason(self) -> reasons.Reason:
        """Why a device is not accepted."""
        return reasons.Reason.CONSTRAINT_UNMET

    def look(self, place: int) -> Hashable:
        """What it can tell devices apart by."""
        return self.values[place]

    def covers(self, claim: int, way: str) -> bool:
        """Whether it is on the devices of a way of a claim."""
        return claim == self.claim and self.rule.covers(way)

    @property
    def common(self) -> Members | None:
        """What agreeing devices have in common; None while there is no device."""
        return self._given[-1] if self._given and not self.rule.distinct else None

    def accepts(self, place: int) -> bool:
        """Whether a device may be added."""
        value = self.values[place]
        if value is None:
            return False
        if not self._given:
            return True
        if self.rule.distinct:
            return all(value.isdisjoint(other) for other in self._given)
        return not value.isdisjoint(self._given[-1])

    def add(self, place: int) -> None:
        """Add a device that is accepted."""
        value = self.values[place] or frozenset()
        agree = self._given and not self.rule.distinct
        self._given.append(value & self._given[-1] if agree else value)

    def drop(self) -> None:
        """Take the last device back."""
        self._given.pop()

    def clear(self) -> None:
        """Take all devices back."""
        self._given.clear()


def bonds(found: Sequence[claims.Claim], spots: Sequence[candidates.Spot]) -> tuple[Bond, ...]:
    """The constraints of every claim of a workload, ready for a node."""
    return tuple(
        Bond(place, rule, tuple(_value(rule.attribute, spot) for spot in spots))
        for place, claim in enumerate(found)
        for rule in claim.spec.constraints
    )


def _value(name: str, spot: candidates.Spot) -> Members | None:
    found = attributes.lookup(spot.device.attributes, spot.id.driver, name)
    return None if found is None or found == () else attributes.members(found)
