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
MIG = "mig"
UNKNOWN_NUMA = -1
"""No NUMA node."""
SHARED_MODES = frozenset({MPS, TIME_SLICING})


class MigPlacement(NamedTuple):
    """A MIG placement: its profile, its memory slices as a bit mask, its memory in bytes."""

    profile: str
    mask: int
    memory: int


@dataclass(frozen=True, eq=False)
class GpuModel:
    """A kind of GPU: `memory` in bytes, `parts` every MIG placement. One object a kind."""

    product: str
    memory: int
    placements: tuple[MigPlacement, ...] = ()

    @cached_property
    def all_slices(self) -> int:
        """Every memory slice, as a bit mask."""
        found = 0
        for part in self.placements:
            found |= part.mask
        return found


class GpuState(NamedTuple):
    """A GPU as it is now: how it is used, what it has left to give in that way, in thousandths.

    `free` is a bit mask of the memory slices that MIG instances may still lie on.
    """

    model: GpuModel
    mode: str
    remaining: int
    free_slices: int


class GpuLocation(NamedTuple):
    """Where a GPU sits: NVLink neighbours as a bit mask over the node's GPUs, root, NUMA node."""

    peers: int = 0
    pcie_root: str = ""
    numa_node: int = UNKNOWN_NUMA


class NodeTopology(NamedTuple):
    """The positions of a node's GPUs, in their order."""

    locations: tuple[GpuLocation, ...]


class Usage(NamedTuple):
    """What is taken of a card, in thousandths; of MIG the slices in `mask`. `memory` in bytes."""

    gpu: int
    mode: str
    thousandths: int = FULL
    mask: int = 0
    memory: int = 0


class NodeCapacity(NamedTuple):
    """What a node has left: milli CPUs and bytes of memory for pods, and its cards."""

    cpu: int
    memory: int
    gpus: tuple[GpuState, ...]
    topology: NodeTopology

    @property
    def idle_gpus(self) -> int:
        """How many cards nobody uses."""
        return sum(1 for card in self.gpus if card.mode == IDLE)

    @property
    def remaining(self) -> int:
        """How much of its cards is left, in thousandths."""
        return sum(card.remaining for card in self.gpus)

    def without(self, taken: tuple[Usage, ...], cpu: int = 0, memory: int = 0) -> "NodeCapacity":
        """What is left once something is taken of it."""
        cards = list(self.gpus)
        for one in taken:
            cards[one.gpu] = _without(cards[one.gpu], one)
        return NodeCapacity(self.cpu - cpu, self.memory - memory, tuple(cards), self.topology)


def _without(card: GpuState, taken: Usage) -> GpuState:
    if taken.mode == MIG:
        free = card.free_slices & ~taken.mask
        left = FULL * free.bit_count() // max(card.model.all_slices.bit_count(), 1)
        return GpuState(card.model, MIG, left, free)
    if taken.mode == WHOLE:
        return GpuState(card.model, WHOLE, 0, 0)
    return GpuState(card.model, taken.mode, card.remaining - taken.thousandths, 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to place a workload: a node, what is taken of it, its room before and after."""

    node: ids.NodeName
    before: NodeCapacity
    after: NodeCapacity
    usages: tuple[Usage, ...]


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
