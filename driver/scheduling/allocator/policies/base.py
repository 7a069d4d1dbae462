"""Types of placement policies, and their protocol. Pure values.

GPUs are distinguished by what matters for placement alone: equal GPUs are interchangeable.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from driver import ids, names

MAX_SCORE = 100
FULL = 1000
"""Capacity of an idle GPU, in thousandths."""
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
    """A model of GPU: `memory` in bytes, `placements` every MIG placement. One object per model."""

    product: str
    memory: int
    placements: tuple[MigPlacement, ...] = ()

    @cached_property
    def all_slices(self) -> int:
        """Every memory slice, as a bit mask."""
        slices_mask = 0
        for placement in self.placements:
            slices_mask |= placement.mask
        return slices_mask


class GpuState(NamedTuple):
    """State of a GPU: its mode, and its remaining capacity in that mode, in thousandths.

    `free_slices` is a bit mask of the memory slices without MIG instances.
    """

    model: GpuModel
    mode: str
    remaining: int
    free_slices: int


class GpuLocation(NamedTuple):
    """Location of a GPU: NVLink peers as a bit mask over the node's GPUs, PCIe root, NUMA node."""

    peers: int = 0
    pcie_root: str = ""
    numa_node: int = UNKNOWN_NUMA


class NodeTopology(NamedTuple):
    """Locations of a node's GPUs, in their order."""

    locations: tuple[GpuLocation, ...]


class Usage(NamedTuple):
    """Usage of a GPU, in thousandths; with MIG the slices in `mask`. `memory` in bytes."""

    gpu: int
    mode: str
    thousandths: int = FULL
    mask: int = 0
    memory: int = 0


class NodeCapacity(NamedTuple):
    """Free capacity of a node: milli CPUs and bytes of memory for pods, and its GPUs."""

    cpu: int
    memory: int
    gpus: tuple[GpuState, ...]
    topology: NodeTopology

    @property
    def idle_gpus(self) -> int:
        """Number of GPUs without usage."""
        return sum(1 for gpu in self.gpus if gpu.mode == IDLE)

    @property
    def remaining(self) -> int:
        """Remaining capacity of all GPUs, in thousandths."""
        return sum(gpu.remaining for gpu in self.gpus)

    def without(self, usages: tuple[Usage, ...], cpu: int = 0, memory: int = 0) -> "NodeCapacity":
        """Return the capacity that is left after some usage."""
        gpus = list(self.gpus)
        for usage in usages:
            gpus[usage.gpu] = _without(gpus[usage.gpu], usage)
        return NodeCapacity(self.cpu - cpu, self.memory - memory, tuple(gpus), self.topology)


def _without(gpu: GpuState, usage: Usage) -> GpuState:
    if usage.mode == MIG:
        free = gpu.free_slices & ~usage.mask
        left = FULL * free.bit_count() // max(gpu.model.all_slices.bit_count(), 1)
        return GpuState(gpu.model, MIG, left, free)
    if usage.mode == WHOLE:
        return GpuState(gpu.model, WHOLE, 0, 0)
    return GpuState(gpu.model, usage.mode, gpu.remaining - usage.thousandths, 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to place a workload: a node, the usage, and the capacity before and after."""

    node: ids.NodeName
    before: NodeCapacity
    after: NodeCapacity
    usages: tuple[Usage, ...]


class Policy(Protocol):
    """A policy is pure and reads candidates only. Without preference it returns `MAX_SCORE`."""

    @property
    def name(self) -> str:
        """Name in configuration."""
        ...

    def score(self, candidate: Candidate) -> int:
        """Return 0 to 100, quantised (D6): higher is better."""
        ...

    def explain(self, candidate: Candidate) -> str:
        """Return why this candidate, in a few words for the event; empty without preference."""
        ...
