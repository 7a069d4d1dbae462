"""Problems that have lasted too long: from observations to breaches. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.chaos import invariants

Key = tuple[invariants.Rule, str]


@dataclass(frozen=True, slots=True)
class Breach:
    """A problem that outlived its rule's patience, and for how long it had been there."""

    problem: invariants.Problem
    lasted_s: float

    @property
    def text(self) -> str:
        """Return it as text for people."""
        one = self.problem
        return f"{one.rule}: {one.subject}: {one.words} (for {self.lasted_s:.0f} s)"


class Patience:
    """Told of every look; each breach is told once, as long as the problem lasts."""

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}
        self._known: dict[Key, invariants.Problem] = {}
        self._told: set[Key] = set()

    def look(
        self, now: float, found: Iterable[invariants.Problem], *, blind: bool = False
    ) -> list[Breach]:
        """The breaches that a look at `now` (seconds) adds.

        A `blind` one saw next to nothing: what was there before may be there still.
        """
        there = {(one.rule, one.subject): one for one in found}
        since = {key: self._since.get(key, now) for key in there}
        if blind:
            self._since |= since
            there |= {key: self._known[key] for key in self._since.keys() - there.keys()}
        else:
            self._since = since
        self._known = there
        self._told &= there.keys()
        late = [
            Breach(one, now - self._since[key])
            for key, one in there.items()
            if key not in self._told and now - self._since[key] >= one.rule.patience_s
        ]
        self._told |= {(one.problem.rule, one.problem.subject) for one in late}
        return late
