"""What was asked of the API server, by its audit log. Pure."""

import collections
import json
from collections.abc import Iterable
from dataclasses import dataclass

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_ENDED = "ResponseComplete"
_BEGUN = "ResponseStarted"
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests of an account, counted by verb and kind: `list resourceslices`.

    A watch counts when it begins, everything else when it is answered.
    """

    kinds: collections.Counter[str]

    @property
    def writes(self) -> int:
        """How many of them change something."""
        return sum(count for name, count in self.kinds.items() if name.split()[0] in WRITES)

    @property
    def words(self) -> str:
        """For people: `12 get nodes, 1 list resourceslices`."""
        return ", ".join(f"{count} {name}" for name, count in sorted(self.kinds.items()))

    def of(self, verb: str) -> int:
        """How many of a verb, whatever the kind."""
        return sum(count for name, count in self.kinds.items() if name.split()[0] == verb)


def read(lines: Iterable[str], account: str) -> Asked:
    """The requests of a service account, by its name, in lines of an audit log."""
    found: collections.Counter[str] = collections.Counter()
    for line in lines:
        one = json.loads(line)
        told = _BEGUN if one["verb"] == "watch" else _ENDED
        if one["stage"] == told and one["user"]["username"].rpartition(":")[2] == account:
            kind = one.get("objectRef", {}).get("resource") or one["requestURI"].partition("?")[0]
            found[f"{one['verb']} {kind}"] += 1
    return Asked(found)


def an_hour(count: int, seconds: float) -> float:
    """What was counted in so many seconds, for an hour."""
    return count * _HOUR_S / seconds


def percent(busy_s: float, seconds: float) -> float:
    """Processor time as a part of the time that passed: 100 is one whole CPU."""
    return 100 * busy_s / seconds
