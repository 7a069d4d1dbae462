"""The account of every cycle: made, prepared, released and gone, or it is lost."""

import collections
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

STAGES = ("made", "prepared", "released", "gone")
_VARIABLE = re.compile(r"[0-9a-f]{4,}(?:-[0-9a-f]+)+|gpu(?:-\w+)+|/[\w./-]+|\d+")


KILLING = 0.2
"""Of the cycles. What lives from then on has many more until it is judged, in which each of its
threads has done a bit of everything."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Claims in all, and claims a second; 0: as fast as possible."""

    cycles: int
    rate: float


class Ledger:
    """Thread safe. `broken` says what should not have been."""

    def __init__(self, pace: Pace, monotonic: Callable[[], float]) -> None:
        self._pace = pace
        self._monotonic = monotonic
        self._began = monotonic()
        self._lock = threading.Lock()
        self._promised = 0
        self.stages = collections.Counter[str]()
        self.faces = collections.Counter[str]()
        self.refused = collections.Counter[str]()
        self.troubles = collections.Counter[str]()
        self.broken: list[str] = []
        self.longest_s = 0.0

    @property
    def elapsed_s(self) -> float:
        return self._monotonic() - self._began

    @property
    def done(self) -> int:
        """Cycles that are over."""
        return self.stages["gone"]

    @property
    def killing(self) -> bool:
        """The first fifth of a run; what is judged of it begins at the half."""
        return self.done < KILLING * self._pace.cycles

    def promise(self, count: int) -> float | None:
        """Plan that many cycles within that many seconds; None: there are enough."""
        with self._lock:
            if self._promised >= self._pace.cycles:
                return None
            due = self._promised / self._pace.rate if self._pace.rate else 0.0
            self._promised += count
            return max(0.0, due - self.elapsed_s)

    def reach(self, stage: str, count: int) -> None:
        """Record that so many claims have come."""
        with self._lock:
            self.stages[stage] += count

    def face(self, face: str) -> None:
        """One of that face is made."""
        with self._lock:
            self.faces[face] += 1

    def refuse(self, why: str) -> None:
        """A call that is to be made again."""
        with self._lock:
            self.refused[_VARIABLE.sub("*", why)[:100]] += 1

    def waited(self, seconds: float) -> None:
        """Record the seconds until a pod was prepared, faults included."""
        with self._lock:
            self.longest_s = max(self.longest_s, seconds)

    def trouble(self, description: str) -> None:
        """It went wrong, on purpose."""
        with self._lock:
            self.troubles[description] += 1

    def breach(self, description: str) -> None:
        """Something that should not be."""
        with self._lock:
            self.broken.append(description)

    def lost(self) -> int:
        """Cycles that began and did not end in order."""
        reached = [self.stages[name] for name in STAGES]
        return max(reached) - min(reached)
