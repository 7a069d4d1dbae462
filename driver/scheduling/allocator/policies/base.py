"""What placement policies look at, and what one is. Pure values.

GPUs are told apart by what matters for placing alone: cards that are equal are interchangeable.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from driver import ids, names

MAX_SCORE = 100
FULL = 1000
"""What an idle card has left, in thousandths."""
IDLE = ""
WHOLE = "whole"
MPS = names.SHARING_MPS
TIME_SLICING = names.SHARING_TIME_SLICING
PARTS = "mig"
UNKNOWN = -1
"""No NUMA node."""
SHARED = frozenset({MPS, TIME_SLICING})


class Part(NamedTuple):
    """A MIG placement: its profile, its memory slices as a bit mask, its memory in bytes."""

    profile: str
    mask: int
    memory: int


@dataclass(frozen=True, eq=False)
class Model:
    """A kind of GPU: `memory` in bytes, `parts` every MIG placement. One object a kind."""

    product: str
    memory: int
    parts: tuple[Part, ...] = ()

    @cached_property
    def slices(self) -> int:
        """Every memory slice, as a bit mask."""
        found = 0
        for part in self.parts:
            found |= part.mask
        return found


class Card(NamedTuple):
    """A GPU as it is now: how it is used, what it has left to give in that way, in thousandths.

    `free` is a bit mask of the memory slices that MIG instances may still lie on.
    """

    model: Model
    mode: str
    left: int
    free: int


class Position(NamedTuple):
    """Where a GPU sits: NVLink neighbours as a bit mask over the node's GPUs, root, NUMA node."""

    peers: int = 0
    root: str = ""
    numa: int = UNKNOWN


class Wiring(NamedTuple):
    """The positions of a node's GPUs, in their order."""

    positions: tuple[Position, ...]


class Taken(NamedTuple):
    """What is taken of a card, in thousandths; of MIG the slices in `mask`. `memory` in bytes."""

    card: int
    mode: str
    thousandths: int = FULL
    mask: int = 0
    memory: int = 0


class Room(NamedTuple):
    """What a node has left: milli CPUs and bytes of memory for pods, and its cards."""

    cpu: int
    memory: int
    cards: tuple[Card, ...]
    wiring: Wiring

    @property
    def idle(self) -> int:
        """How many cards nobody uses."""
        return sum(1 for card in self.cards if card.mode == IDLE)

    @property
    def left(self) -> int:
        """How much of its cards is left, in thousandths."""
        return sum(card.left for card in self.cards)

    def without(self, taken: tuple[Taken, ...], cpu: int = 0, memory: int = 0) -> "Room":
        """What is left once something is taken of it."""
        cards = list(self.cards)
        for one in taken:
            cards[one.card] = _without(cards[one.card], one)
        return Room(self.cpu - cpu, self.memory - memory, tuple(cards), self.wiring)


def _without(card: Card, taken: Taken) -> Card:
    if taken.mode == PARTS:
        free = card.free & ~taken.mask
        left = FULL * free.bit_count() // max(card.model.slices.bit_count(), 1)
        return Card(card.model, PARTS, left, free)
    if taken.mode == WHOLE:
        return Card(card.model, WHOLE, 0, 0)
    return Card(card.model, taken.mode, card.left - taken.thousandths, 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to place a workload: a node, what is taken of it, its room before and after."""

    node: ids.NodeName
    before: Room
    after: Room
    taken: tuple[Taken, ...]


class Policy(Protocol):
    """A policy is pure and looks at candidates only. One that does not care says `MAX_SCORE`."""

    @property
    def name(self) -> str:
        """In configuration."""
        ...

    def score(self, candidate: Candidate) -> int:
        """0 to 100, quantised (D6): higher is better."""
        ...

    def explain(self, candidate: Candidate) -> str:
        """Why this candidate, in a few words, for the event; empty where it does not care."""
        ...
