"""Allocator settings: policies, rules beyond the API, step budget."""

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
    """Filters of one workload beyond the API."""

    @property
    def checks_solutions(self) -> bool:
        """Return whether `rejection` may reject a solution."""
        ...

    def device_filter(self, claim: int) -> candidates.DeviceFilter:
        """Return the filter of single devices for a claim of the workload."""
        ...

    def constraints(
        self, specs: Sequence[requests.RequestSpec], devices: Sequence[candidates.NodeDevice]
    ) -> Sequence[constraint_base.Constraint]:
        """Return the constraints between the chosen devices."""
        ...

    def rejection(
        self,
        picks: Sequence[allocator_types.DeviceAssignment],
        devices: Sequence[candidates.NodeDevice],
    ) -> str:
        """Return why a whole solution is rejected, in words; empty if it is not."""
        ...


class AllocationRules(Protocol):
    """Rules beyond the API. Nodes without a device of `driver` are not reported.

    With "" as `driver` every node is.
    """

    driver: str

    def for_workload(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> WorkloadFilters:
        """Return the filters of a workload."""
        ...


class NoRules:
    """The API's rules alone."""

    driver = ""
    checks_solutions = False

    def for_workload(
        self, _view: snapshot.Snapshot, _workload: allocator_types.Workload
    ) -> WorkloadFilters:
        """Return no filters."""
        return self

    def device_filter(self, _claim: int) -> candidates.DeviceFilter:
        """Return a filter without checks."""
        return candidates.DeviceFilter()

    def constraints(
        self, _wants: Sequence[requests.RequestSpec], _spots: Sequence[candidates.NodeDevice]
    ) -> Sequence[constraint_base.Constraint]:
        """Return no constraints."""
        return ()

    def rejection(
        self,
        _picks: Sequence[allocator_types.DeviceAssignment],
        _spots: Sequence[candidates.NodeDevice],
    ) -> str:
        """Reject nothing."""
        return ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Policies, rules beyond the API, and step budget (None: unlimited)."""

    policy_chain: ranking.PolicyChain
    rules: AllocationRules = field(default_factory=NoRules)
    step_budget: int | None = STEP_BUDGET
