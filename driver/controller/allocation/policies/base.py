"""What a placement policy is: a score, and words for it."""

from dataclasses import dataclass
from typing import Protocol

from driver import ids
from driver.resources import claims

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to place the workload: a node, its devices, and what that leaves of the node.

    Of the node's `total` GPUs, `free` are wholly unused before, and `left` after.
    """

    node: ids.NodeName
    devices: tuple[claims.DeviceId, ...]
    free: int
    left: int
    total: int


class Policy(Protocol):
    """A policy is pure and looks at candidates only."""

    name: str

    def score(self, candidate: Candidate) -> int:
        """0 to 100, quantised (D6): higher is better."""
        ...

    def explain(self, candidate: Candidate) -> str:
        """Why this candidate, in a few words, for the event."""
        ...
