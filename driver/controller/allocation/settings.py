"""How the allocator decides."""

from dataclasses import dataclass, field

from driver.controller.allocation import offers
from driver.controller.allocation.policies import base

BUDGET = 20_000
"""Steps of one node's search: devices tried. Past it the answer is "gave up", never "no"."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Which node is best, what is judged beyond the API, how long to search (None: to the end)."""

    policy: base.Policy
    rules: offers.Rules = field(default_factory=offers.Rules)
    budget: int | None = BUDGET
