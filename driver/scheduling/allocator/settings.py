"""How the allocator decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from driver.scheduling.allocator import candidates, requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.constraints import base as constraint_base
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.snapshot import snapshot

BUDGET = 20_000
"""Steps of one node's search: devices tried. Past it the answer is "gave up", never "no"."""


class Verdicts(Protocol):
    """What is judged of one workload beyond the API."""

    def judge(self, claim: int) -> candidates.Judge:
        """Of each device for a claim of the workload, whatever else is chosen."""
        ...

    def pacts(
        self, wants: Sequence[requests.Want], spots: Sequence[candidates.Spot]
    ) -> Sequence[constraint_base.Pact]:
        """Between the devices that are chosen."""
        ...

    def objection(
        self, picks: Sequence[allocator_types.Pick], spots: Sequence[candidates.Spot]
    ) -> str:
        """Against a whole solution, in words; empty where there is none."""
        ...


class Rules(Protocol):
    """What is judged beyond the API. Nodes without a device of `driver` are not told of.

    With "" as `driver` every node is.
    """

    driver: str

    def of(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> Verdicts:
        """Made for each workload."""
        ...


class NoRules:
    """The API's rules alone."""

    driver = ""

    def of(self, _view: snapshot.Snapshot, _workload: allocator_types.Workload) -> Verdicts:
        """Nothing more."""
        return self

    def judge(self, _claim: int) -> candidates.Judge:
        """Nothing more."""
        return candidates.Judge()

    def pacts(
        self, _wants: Sequence[requests.Want], _spots: Sequence[candidates.Spot]
    ) -> Sequence[constraint_base.Pact]:
        """Nothing more."""
        return ()

    def objection(
        self, _picks: Sequence[allocator_types.Pick], _spots: Sequence[candidates.Spot]
    ) -> str:
        """Nothing more."""
        return ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is best, what is judged beyond the API, how long to search (None: to the end)."""

    ranking: ranking.Ranking
    rules: Rules = field(default_factory=NoRules)
    budget: int | None = BUDGET
