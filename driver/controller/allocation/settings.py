"""How the allocator decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from driver.controller import view as cluster
from driver.controller.allocation import asked, offers, outcome, pacts, ranking

BUDGET = 20_000
"""Steps of one node's search: devices tried. Past it the answer is "gave up", never "no"."""


class Verdicts(Protocol):
    """What is judged of one workload beyond the API."""

    def judge(self, claim: int) -> offers.Judge:
        """Of each device for a claim of the workload, whatever else is chosen."""
        ...

    def pacts(
        self, wants: Sequence[asked.Want], spots: Sequence[offers.Spot]
    ) -> Sequence[pacts.Pact]:
        """Between the devices that are chosen."""
        ...

    def objection(self, picks: Sequence[outcome.Pick], spots: Sequence[offers.Spot]) -> str:
        """Against a whole solution, in words; empty where there is none."""
        ...


class Rules(Protocol):
    """What is judged beyond the API. Nodes without a device of `driver` are not told of.

    With "" as `driver` every node is.
    """

    driver: str

    def of(self, view: cluster.ClusterView, workload: outcome.Workload) -> Verdicts:
        """Made for each workload."""
        ...


class NoRules:
    """The API's rules alone."""

    driver = ""

    def of(self, _view: cluster.ClusterView, _workload: outcome.Workload) -> Verdicts:
        """Nothing more."""
        return self

    def judge(self, _claim: int) -> offers.Judge:
        """Nothing more."""
        return offers.Judge()

    def pacts(
        self, _wants: Sequence[asked.Want], _spots: Sequence[offers.Spot]
    ) -> Sequence[pacts.Pact]:
        """Nothing more."""
        return ()

    def objection(self, _picks: Sequence[outcome.Pick], _spots: Sequence[offers.Spot]) -> str:
        """Nothing more."""
        return ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is best, what is judged beyond the API, how long to search (None: to the end)."""

    ranking: ranking.Ranking
    rules: Rules = field(default_factory=NoRules)
    budget: int | None = BUDGET
