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
    """One constraint of one claim, and the values of the devices added so far.

    `values` is by index of the node's devices; None where the attribute is missing.
    """

    claim: int
    constraint: dra_requests.Constraint
    values: tuple[ValueSet | None, ...]
    _chosen: list[ValueSet] = field(default_factory=list)

    @property
    def reason(self) -> reasons.Reason:
        """Reason for a rejected device."""
        return reasons.Reason.CONSTRAINT_NOT_SATISFIED

    def signature(self, index: int) -> Hashable:
        """Return all that it distinguishes devices by."""
        return self.values[index]

    def covers(self, claim: int, subrequest: str) -> bool:
        """Return whether it applies to a claim's subrequest."""
        return claim == self.claim and self.constraint.covers(subrequest)

    @property
    def common(self) -> ValueSet | None:
        """Values that agreeing devices have in common; None without a device."""
        return self._chosen[-1] if self._chosen and not self.constraint.distinct else None

    def accepts(self, index: int) -> bool:
        """Return whether a device may be added."""
        value = self.values[index]
        if value is None:
            return False
        if not self._chosen:
            return True
        if self.constraint.distinct:
            return all(value.isdisjoint(other) for other in self._chosen)
        return not value.isdisjoint(self._chosen[-1])

    def add(self, index: int) -> None:
        """Add a device that is accepted."""
        value = self.values[index] or frozenset()
        agree = self._chosen and not self.constraint.distinct
        self._chosen.append(value & self._chosen[-1] if agree else value)

    def remove_last(self) -> None:
        """Remove the device added last."""
        self._chosen.pop()

    def clear(self) -> None:
        """Remove all devices."""
        self._chosen.clear()


def match_constraints(
    workload_claims: Sequence[claims.Claim], devices: Sequence[candidates.NodeDevice]
) -> tuple[MatchAttribute, ...]:
    """Return the constraints of every claim of a workload, ready for a node."""
    return tuple(
        MatchAttribute(
            index, rule, tuple(_device_values(rule.attribute, device) for device in devices)
        )
        for index, claim in enumerate(workload_claims)
        for rule in claim.spec.constraints
    )


def _device_values(name: str, device: candidates.NodeDevice) -> ValueSet | None:
    value = attributes.find_attribute(device.device.attributes, device.id.driver, name)
    return None if value is None or value == () else attributes.constraint_values(value)
