"""How the allocator decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from driver.scheduling.allocator import candidates, requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.constraints import base as constraint_base
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.snapshot import snapshot

STEP_BUDGET = 20_000
"""Steps of one node's search: devices tried. Past it the answer is "gave up", never "no"."""


class WorkloadFilters(Protocol):
    """What is judged of one workload beyond the API."""

    def device_filter(self, claim: int) -> candidates.DeviceFilter:
        """Of each device for a claim of the workload, whatever else is chosen."""
        ...

    def constraints(
        self, wants: Sequence[requests.RequestSpec], spots: Sequence[candidates.NodeDevice]
    ) -> Sequence[constraint_base.Constraint]:
        """Between the devices that are chosen."""
        ...

    def rejection(
        self,
        picks: Sequence[allocator_types.DeviceAssignment],
        spots: Sequence[candidates.NodeDevice],
    ) -> str:
        """Against a whole solution, in words; empty where there is none."""
        ...


class AllocationRules(Protocol):
    """What is judged beyond the API. Nodes without a device of `driver` are not told of.

    With "" as `driver` every node is.
    """

    driver: str

    def for_workload(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> WorkloadFilters:
        """Made for each workload."""
        ...


class NoRules:
    """The API's rules alone."""

    driver = ""

    def for_workload(
        self, _view: snapshot.Snapshot, _workload: allocator_types.Workload
    ) -> WorkloadFilters:
        """Nothing more."""
        return self

    def device_filter(self, _claim: int) -> candidates.DeviceFilter:
        """Nothing more."""
        return candidates.DeviceFilter()

    def constraints(
        self, _wants: Sequence[requests.RequestSpec], _spots: Sequence[candidates.NodeDevice]
    ) -> Sequence[constraint_base.Constraint]:
        """Nothing more."""
        return ()

    def rejection(
        self,
        _picks: Sequence[allocator_types.DeviceAssignment],
        _spots: Sequence[candidates.NodeDevice],
    ) -> str:
        """Nothing more."""
        return ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is best, what is judged beyond the API, how long to search (None: to the end)."""

    policy_chain: ranking.PolicyChain
    rules: AllocationRules = field(default_factory=NoRules)
    step_budget: int | None = STEP_BUDGET
