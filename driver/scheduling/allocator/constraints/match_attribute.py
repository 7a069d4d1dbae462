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

ValueSet = frozenset[Hashable]


@dataclass(slots=True)
class MatchAttribute:
    """One constraint of one claim, and the values of the devices it has been given so far.

    `values` is by place of the node's spots; None where the attribute is not there.
    """

    claim: int
    constraint: dra_requests.Constraint
    values: tuple[ValueSet | None, ...]
    _chosen: list[ValueSet] = field(default_factory=list)

    @property
    def reason(self) -> reasons.Reason:
        """Why a device is not accepted."""
        return reasons.Reason.CONSTRAINT_UNMET

    def signature(self, place: int) -> Hashable:
        """What it can tell devices apart by."""
        return self.values[place]

    def covers(self, claim: int, way: str) -> bool:
        """Whether it is on the devices of a way of a claim."""
        return claim == self.claim and self.constraint.covers(way)

    @property
    def common(self) -> ValueSet | None:
        """What agreeing devices have in common; None while there is no device."""
        return self._chosen[-1] if self._chosen and not self.constraint.distinct else None

    def accepts(self, place: int) -> bool:
        """Whether a device may be added."""
        value = self.values[place]
        if value is None:
            return False
        if not self._chosen:
            return True
        if self.constraint.distinct:
            return all(value.isdisjoint(other) for other in self._chosen)
        return not value.isdisjoint(self._chosen[-1])

    def add(self, place: int) -> None:
        """Add a device that is accepted."""
        value = self.values[place] or frozenset()
        agree = self._chosen and not self.constraint.distinct
        self._chosen.append(value & self._chosen[-1] if agree else value)

    def remove_last(self) -> None:
        """Take the last device back."""
        self._chosen.pop()

    def clear(self) -> None:
        """Take all devices back."""
        self._chosen.clear()


def match_constraints(
    found: Sequence[claims.Claim], spots: Sequence[candidates.NodeDevice]
) -> tuple[MatchAttribute, ...]:
    """The constraints of every claim of a workload, ready for a node."""
    return tuple(
        MatchAttribute(place, rule, tuple(_device_values(rule.attribute, spot) for spot in spots))
        for place, claim in enumerate(found)
        for rule in claim.spec.constraints
    )


def _device_values(name: str, spot: candidates.NodeDevice) -> ValueSet | None:
    found = attributes.lookup(spot.device.attributes, spot.id.driver, name)
    return None if found is None or found == () else attributes.members(found)
