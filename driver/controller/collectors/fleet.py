"""The fleet: how its GPUs are used, what memory is free, how much of that is in pieces. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from driver.runtime.metrics.families import Family, Figures
from driver.scheduling.reports import model

FREE, KEPT, TAINTED, CORDONED = "free", "kept", "tainted", "cordoned"
_UNUSED: Final = (FREE, KEPT)
MODES: Final = (FREE, KEPT, "whole", "mig", "mps", "time-slicing", TAINTED, CORDONED)
_KEPT: Final = {"unhealthy": TAINTED, "cordoned": CORDONED}
GPUS: Final = Family(
    "dra_gpu_fleet_gpus",
    "GPUs by product and mode. Unused GPUs are free, kept (held by a Reservation or by "
    "backfill), tainted (unhealthy) or cordoned. Whether their node is schedulable is not "
    "considered.",
    ("modelName", "mode"),
)
MEMORY: Final = Family("dra_gpu_fleet_memory_bytes", "Memory of all GPUs.", ("modelName",))
MEMORY_FREE: Final = Family(
    "dra_gpu_fleet_memory_free_bytes",
    "Memory that no claim uses: all of a free GPU, the remainder of a shared or "
    "partitioned one, and none of a tainted or cordoned one.",
    ("modelName",),
)
FRAGMENTATION: Final = Family(
    "dra_gpu_fleet_fragmentation_ratio",
    "Fraction of the free memory that is on partly used GPUs, which cannot be allocated "
    "whole; 0 if no memory is free.",
    ("modelName",),
)
FAMILIES: Final = (GPUS, MEMORY, MEMORY_FREE, FRAGMENTATION)


@dataclass(slots=True)
class _Sum:
    """Totals of one product: GPUs by mode, and bytes of memory."""

    gpus: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MODES, 0))
    memory: int = 0
    whole: int = 0
    pieces: int = 0

    def count(self, gpu: model.Gpu) -> None:
        """Add a GPU."""
        self.memory += gpu.memory
        mode = _KEPT.get(gpu.health, gpu.mode) if gpu.mode in _UNUSED else gpu.mode
        self.gpus[mode] += 1
        if gpu.mode not in _UNUSED:
            self.pieces += max(0, gpu.memory - gpu.memory_allocated)
        elif mode in _UNUSED:
            self.whole += gpu.memory


def figures(nodes: Iterable[model.Node]) -> Figures:
    """The figures of all GPUs, as they are reported."""
    sums: dict[str, _Sum] = {}
    for node in nodes:
        for gpu in node.gpus:
            sums.setdefault(gpu.product, _Sum()).count(gpu)
    return _figures(sums)


def _figures(sums: Mapping[str, _Sum]) -> Figures:
    free = {product: total.whole + total.pieces for product, total in sums.items()}
    return {
        GPUS.name: {
            (product, mode): count
            for product, total in sums.items()
            for mode, count in total.gpus.items()
        },
        MEMORY.name: {(product,): total.memory for product, total in sums.items()},
        MEMORY_FREE.name: {(product,): bytes_ for product, bytes_ in free.items()},
        FRAGMENTATION.name: {
            (product,): total.pieces / free[product] if free[product] else 0.0
            for product, total in sums.items()
        },
    }
