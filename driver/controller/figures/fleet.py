"""The fleet: how its GPUs are used, what memory is free, how much of that is in pieces. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from driver import ids, names
from driver.controller.figures import cards
from driver.resources import claims, quantity, slices, taint_rules
from driver.telemetry.families import Family, Figures

FREE: Final = "free"
MODES: Final = (
    *(FREE, cards.WHOLE, cards.MIG, cards.MPS, cards.TIME_SLICING),
    *(cards.TAINTED, cards.CORDONED),
)
GPUS: Final = Family(
    "dra_gpu_fleet_gpus",
    "GPUs by product and by how claims have them; of those that nobody has, free ones, and ones "
    "kept from new claims: tainted, as they are ill, and cordoned. Whether nodes take pods does "
    "not count.",
    ("modelName", "mode"),
)
MEMORY: Final = Family("dra_gpu_fleet_memory_bytes", "Memory of all GPUs.", ("modelName",))
MEMORY_FREE: Final = Family(
    "dra_gpu_fleet_memory_free_bytes",
    "Memory of GPUs that no claim has: all of a free one, of a shared one or one in parts what is "
    "left, of one that is kept from new claims nothing.",
    ("modelName",),
)
FRAGMENTATION: Final = Family(
    "dra_gpu_fleet_fragmentation_ratio",
    "The part of the free memory that lies on GPUs of which claims have a part, and which cannot "
    "be given whole; 0 where no memory is free.",
    ("modelName",),
)
FAMILIES: Final = (GPUS, MEMORY, MEMORY_FREE, FRAGMENTATION)
_Gpu = tuple[str, ids.DeviceName]
"""A pool and the name of a whole face."""


@dataclass(slots=True)
class _Use:
    mode: str
    memory: int = 0


@dataclass(slots=True)
class _Sum:
    """Of a product: GPUs by mode, and bytes."""

    gpus: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MODES, 0))
    memory: int = 0
    whole: int = 0
    pieces: int = 0


class Fleet:
    """Of one thread at a time. What a slice shows is read once."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._read: dict[str, tuple[slices.Slice, tuple[cards.Card, ...]]] = {}

    def figures(
        self,
        shown: Iterable[slices.Slice],
        rules: Iterable[taint_rules.TaintRule],
        held: Iterable[claims.Claim],
    ) -> Figures:
        """The figures of the newest generation of each pool of our driver."""
        known = self._cards(shown, tuple(rules))
        uses = self._uses(known, held)
        sums: dict[str, _Sum] = {}
        for key, card in known.items():
            _count(sums.setdefault(card.product, _Sum()), card, uses.get(key))
        return _told(sums)

    def _cards(
        self, shown: Iterable[slices.Slice], rules: tuple[taint_rules.TaintRule, ...]
    ) -> Mapping[_Gpu, cards.Card]:
        mine = [one for one in shown if one.driver == self._driver]
        newest: dict[str, int] = {}
        for one in mine:
            newest[one.pool] = max(one.generation, newest.get(one.pool, 0))
        before, self._read = self._read, {}
        found: dict[_Gpu, cards.Card] = {}
        for one in mine:
            known = before.get(one.name)
            (told,) = taint_rules.applied((one,), rules)
            if known is None or known[0] is not told:
                known = told, cards.of_slice(told)
            self._read[one.name] = known
            if one.generation == newest[one.pool]:
                found |= {(one.pool, card.name): card for card in known[1]}
        return found

    def _uses(
        self, known: Mapping[_Gpu, cards.Card], held: Iterable[claims.Claim]
    ) -> Mapping[_Gpu, _Use]:
        found: dict[_Gpu, _Use] = {}
        results = (
            result for claim in held if claim.allocation for result in claim.allocation.results
        )
        for result in results:
            device = result.device
            card = known.get((device.pool, cards.gpu_of(device.device)))
            if card is None or device.driver != self._driver or result.admin_access:
                continue
            mode = cards.mode_of(card.name, device.device)
            use = found.setdefault((device.pool, card.name), _Use(mode))
            use.memory += _memory(result, card, mode)
        return found


def _memory(result: claims.Result, card: cards.Card, mode: str) -> int:
    if mode == cards.WHOLE:
        return card.memory
    if mode == cards.MIG:
        return card.parts.get(result.device.device, 0)
    taken = result.consumed.get(names.CAP_MEMORY)
    return taken.units if isinstance(taken, quantity.Quantity) else 0


def _count(to: _Sum, card: cards.Card, use: _Use | None) -> None:
    to.memory += card.memory
    if use is not None:
        to.gpus[use.mode] += 1
        to.pieces += max(0, card.memory - use.memory)
    elif card.kept:
        to.gpus[card.kept] += 1
    else:
        to.gpus[FREE] += 1
        to.whole += card.memory


def _told(sums: Mapping[str, _Sum]) -> Figures:
    free = {product: one.whole + one.pieces for product, one in sums.items()}
    return {
        GPUS.name: {
            (product, mode): count
            for product, one in sums.items()
            for mode, count in one.gpus.items()
        },
        MEMORY.name: {(product,): one.memory for product, one in sums.items()},
        MEMORY_FREE.name: {(product,): bytes_ for product, bytes_ in free.items()},
        FRAGMENTATION.name: {
            (product,): one.pieces / free[product] if free[product] else 0.0
            for product, one in sums.items()
        },
    }
