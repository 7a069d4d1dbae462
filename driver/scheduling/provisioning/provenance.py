"""What a node came for, and since when it is there: the annotation `ration.dev/brought-for`. Pure.

ration.dev/brought-for: gang/team/train 2026-11-22T09:30:00Z
"""

import datetime as dt
from dataclasses import dataclass

from driver import clock


@dataclass(frozen=True, slots=True)
class ProvisionedFor:
    """The wish by its key, and since when its node is there."""

    demand: str
    since: dt.datetime

    def render(self) -> str:
        """The annotation's value."""
        return f"{self.demand} {clock.rfc3339(self.since)}"


def parse(text: str) -> ProvisionedFor | None:
    """Read it; None where there is none, or somebody wrote something else there."""
    wish, _, since = text.partition(" ")
    try:
        moment = dt.datetime.fromisoformat(since)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return ProvisionedFor(wish, aware) if wish.count("/") > 1 else None
