"""Demand that a node was provisioned for: the annotation `ration.dev/provisioned-for`. Pure.

ration.dev/provisioned-for: gang/team/train 2026-11-22T09:30:00Z
"""

import datetime as dt
from dataclasses import dataclass

from driver import clock


@dataclass(frozen=True, slots=True)
class ProvisionedFor:
    """Key of the demand, and when its node arrived."""

    demand: str
    since: dt.datetime

    def render(self) -> str:
        """Return the annotation's value."""
        return f"{self.demand} {clock.rfc3339(self.since)}"


def parse(text: str) -> ProvisionedFor | None:
    """Parse the value; None if it is missing or foreign."""
    demand_key, _, since = text.partition(" ")
    try:
        moment = dt.datetime.fromisoformat(since)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return ProvisionedFor(demand_key, aware) if demand_key.count("/") > 1 else None
