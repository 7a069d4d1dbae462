"""Charts: GPUs and queues as bars of 1000, and the GPU reachability of a node. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from driver.scheduling.reports import format as render_format
from driver.scheduling.reports import model

WHOLE = model.WHOLE_BAR
_HOLDS_NOTHING = "monitor"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a GPU's bar; `idle`: given, and not used. `title` says all of it in words."""

    start: int
    width: int
    mode: str
    idle: bool
    claim: str
    title: str


def segments(gpu: model.Gpu) -> tuple[Segment, ...]:
    """Return the claims' segments of a GPU's bar; monitoring claims have none."""
    return tuple(
        Segment(
            part.start,
            max(part.width, 1),
            part.mode,
            bool(part.use and part.use.idle_since),
            part.claim,
            title(part),
        )
        for part in gpu.parts
        if part.mode != _HOLDS_NOTHING and not part.admin
    )


def title(part: model.Part) -> str:
    """`team/claim: MIG 1g.10gb, 10 GiB, pod team/a, idle`."""
    label = render_format.mode(part.mode) + (f" {part.profile}" if part.profile else "")
    words = [label]
    if part.memory:
        words.append(render_format.memory(part.memory))
    if part.pods:
        more = f" and {len(part.pods) - 1} more" if len(part.pods) > 1 else ""
        words.append(f"pod {part.pods[0]}{more}")
    if part.use and part.use.idle_since:
        words.append("idle")
    if part.problem:
        words.append(part.problem)
    return f"{part.claim}: {', '.join(words)}"


def ticks(gpu: model.Gpu) -> tuple[int, ...]:
    """Return the boundaries of MIG's memory slices; empty unless partitioned by MIG."""
    cut = gpu.mode == "mig" or any(holder.mode == "mig" for holder in gpu.kept)
    if not cut or not gpu.memory_slices:
        return ()
    return tuple(
        round(number * WHOLE / gpu.memory_slices) for number in range(1, gpu.memory_slices)
    )


def share(part: float, whole: float) -> int:
    """Return a part of a whole in 1000ths; 0 of nothing."""
    return round(min(max(part / whole, 0.0), 1.0) * WHOLE) if whole else 0


@dataclass(frozen=True, slots=True)
class QueueBar:
    """A queue's bar in 1000ths of the widest; `borrowed` is the end of `used`."""

    used: int
    borrowed: int
    deserved: int | None
    fair: int | None


def queue_bars(queues: Sequence[model.Queue]) -> dict[str, QueueBar]:
    """Return the bars by queue name, on one scale."""
    most = max((max(_amounts(queue), default=0.0) for queue in queues), default=0.0)
    bars = {}
    for queue in queues:
        allocated, borrowed = (
            render_format.number(queue.allocated) or 0.0,
            render_format.number(queue.borrowed) or 0.0,
        )
        deserved, fair = (
            render_format.number(queue.deserved_share),
            render_format.number(queue.fair_share),
        )
        used = share(allocated, most)
        bars[queue.name] = QueueBar(
            used,
            min(share(borrowed, most), used),
            None if deserved is None else share(deserved, most),
            None if fair is None else share(fair, most),
        )
    return bars


def _amounts(queue: model.Queue) -> Iterator[float]:
    for text in (queue.allocated, queue.deserved_share, queue.fair_share):
        amount = render_format.number(text)
        if amount is not None:
            yield amount


Reach = Literal["self", "nvlink", "pcie", "numa", "system"]


def reaches(gpus: Iterable[model.Gpu]) -> tuple[tuple[Reach, ...], ...]:
    """Return how each GPU of a node reaches each other, by the nearest connection."""
    all_gpus = tuple(gpus)
    return tuple(tuple(_reach(gpu, other) for other in all_gpus) for gpu in all_gpus)


def _reach(gpu: model.Gpu, other: model.Gpu) -> Reach:
    if gpu.index == other.index:
        return "self"
    if other.index in gpu.nvlink:
        return "nvlink"
    if gpu.pcie_root and gpu.pcie_root == other.pcie_root:
        return "pcie"
    return "numa" if gpu.numa is not None and gpu.numa == other.numa else "system"
