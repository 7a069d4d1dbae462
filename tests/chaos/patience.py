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
        problem = self.problem
        return f"{problem.rule}: {problem.subject}: {problem.words} (for {self.lasted_s:.0f} s)"


class Patience:
    """Told of every look; each breach is told once, as long as the problem lasts."""

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}
        self._known: dict[Key, invariants.Problem] = {}
        self._told: set[Key] = set()

    def look(
        self, now: float, problems: Iterable[invariants.Problem], *, blind: bool = False
    ) -> list[Breach]:
        """The breaches that a look at `now` (seconds) adds.

        A `blind` one saw next to nothing: what was there before may be there still.
        """
        present = {(problem.rule, problem.subject): problem for problem in problems}
        since = {key: self._since.get(key, now) for key in present}
        if blind:
            self._since |= since
            present |= {key: self._known[key] for key in self._since.keys() - present.keys()}
        else:
            self._since = since
        self._known = present
        self._told &= present.keys()
        late = [
            Breach(problem, now - self._since[key])
            for key, problem in present.items()
            if key not in self._told and now - self._since[key] >= problem.rule.patience_s
        ]
        self._told |= {(breach.problem.rule, breach.problem.subject) for breach in late}
        return late
