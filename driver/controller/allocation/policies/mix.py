"""What is usually asked of a cluster: the shapes of workloads, each with its weight. Pure."""

import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from driver.controller.allocation.policies import base


class Demand(NamedTuple):
    """A shape: so many cards (`number`), of each so much, and so much CPU in milli.

    `mode` is IDLE for pods that ask no GPU. A share takes `thousandths` of a card, a MIG device
    has at least so much of its memory. With `products` only cards of those will do.
    """

    mode: str
    number: int = 1
    thousandths: int = base.FULL
    cpu: int = 0
    products: frozenset[str] = frozenset()

    def fits(self, card: base.Card) -> bool:
        """Whether a card could serve it now."""
        if self.products and card.model.product not in self.products:
            return False
        if self.mode == base.PARTS:
            return any(
                part.memory * base.FULL >= self.thousandths * card.model.memory
                and part.mask & card.free == part.mask
                for part in card.model.parts
            )
        if self.mode == base.WHOLE:
            return card.mode == base.IDLE
        return card.mode in {base.IDLE, self.mode} and card.left >= self.thousandths


@dataclass(frozen=True, eq=False)
class Mix:
    """Shapes with weights that add up to 1; `cpus` are the CPUs that any of them asks, sorted."""

    shapes: tuple[tuple[Demand, float], ...]

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """The amounts of CPU at which a node begins to fit more shapes."""
        return tuple(sorted({demand.cpu for demand, _ in self.shapes}))

    def step(self, cpu: int) -> int:
        """The same number for amounts of CPU between which no shape tells a difference."""
        return bisect.bisect_right(self.cpus, cpu)


def of(found: Iterable[tuple[Demand, float]]) -> Mix:
    """Of shapes and how often each is asked."""
    shapes = tuple(found)
    total = sum(weight for _, weight in shapes)
    return Mix(tuple((demand, weight / total) for demand, weight in shapes if weight > 0))


NOTHING = Mix(())
"""Nothing is known."""
PRIOR = of(
    (
        (Demand(base.WHOLE, 1), 0.35),
        (Demand(base.WHOLE, 2), 0.1),
        (Demand(base.WHOLE, 4), 0.1),
        (Demand(base.WHOLE, 8), 0.15),
        (Demand(base.MPS, 1, 250), 0.1),
        (Demand(base.MPS, 1, 500), 0.1),
        (Demand(base.PARTS, 1, 110), 0.05),
        (Demand(base.PARTS, 1, 450), 0.05),
    )
)
"""What is asked where nothing is known: whole GPUs, whole nodes of eight, some halves and less."""
