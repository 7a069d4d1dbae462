"""Claims with the decisions in flight applied."""

from dataclasses import replace

from driver import ids
from driver.controller.scheduler import state
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold


class InFlightClaims:
    """On the decider's thread. Without it explanations would name the wrong pods."""

    def __init__(self, shared: state.SchedulerContext) -> None:
        self._context = shared

    def claim(self, key: ids.Key) -> claims.Claim | None:
        """Return the cached claim with what is being written of it; None without a claim."""
        claim = self._context.stores.claims.get(key)
        if claim is None:
            return None
        if key in self._context.memory.writing:
            for decision in self._context.memory.in_flight.values():
                if key in decision.allocations:
                    entries = (
                        *claim.consumers,
                        *allocation_hold.reserved_for_entries(decision.pod),
                    )
                    users = tuple(dict.fromkeys(entries))
                    return replace(claim, allocation=decision.allocations[key], consumers=users)
        return claim
