"""`ration idle`: what was given out and does nothing, and what would do in its place."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "Idle: no process ran for that time. Oversized: the peak memory use is less than half "
    "of the allocation. The suggestion is the peak plus a quarter, rounded up to Gi: the "
    "memory to request of an MPS share, or the minimum for a MIG profile. MIG devices are "
    "not measured.\n\n"
    "  ration idle\n\n"
    "  ration idle -n vision --for 2h\n\n"
    "  ration idle -o json\n\n"
    "Exit codes: 0 shown; 2 bad input; 3 refused, or not reached."
)
_For = Annotated[str, typer.Option("--for", help="Minimum idle time: 90s, 30m, 2h.")]
_GIB = 1 << 30
_SPARE = 1.25
_COLUMNS = (
    out.Column("CLAIM"),
    out.Column("PODS"),
    out.Column("NODE"),
    out.Column("GPU"),
    out.Column("PART"),
    out.Column("IDLE"),
    out.Column("HAS"),
    out.Column("PEAK"),
    out.Column("SUGGESTED"),
    out.Column("QUEUE", wide=True),
    out.Column("LAST BUSY", wide=True),
)


@dataclass(frozen=True, slots=True)
class Idle:
    """A part that does nothing, or is too large. Bytes; `suggested` 0: as it is."""

    claim: str
    pods: tuple[str, ...]
    node: str
    gpu: str
    part: str
    idle_s: int
    memory: int
    peak: int | None
    suggested: int
    queue: str
    last_busy: str


def show(read_options: options.ReadOptions, *, at_least: _For = "10m") -> None:
    """Show what does nothing."""
    with cli_errors.exit_on_error():
        least_s = source_format.parse_seconds("--for", at_least)
    namespace = read_options.namespace_of_named()
    read_options.show(["ResourceSlice"], lambda reports: build_answer(reports, namespace, least_s))


def build_answer(reports: source.Source, namespace: str, at_least_s: float) -> out.Answer:
    """Return idle or oversized claims, the longest first."""
    now = reports.fleet().at
    idles = [
        idle
        for gpu in (gpu for node in reports.nodes().items for gpu in node.gpus)
        for part in gpu.parts
        if not namespace or part.claim.startswith(f"{namespace}/")
        for idle in _of(gpu, part, now)
        if idle.idle_s >= at_least_s or idle.suggested
    ]
    idles.sort(key=lambda idle: (-idle.idle_s, idle.claim, idle.gpu))
    table = out.Table(_COLUMNS, [_row(idle) for idle in idles], "nothing is idle or oversized")
    return out.Answer([asdict(idle) for idle in idles], (table,))


def _of(gpu: model.Gpu, part: model.Part, now: str) -> Iterator[Idle]:
    if part.use is None or part.admin:
        return
    yield Idle(
        claim=part.claim,
        pods=part.pods,
        node=gpu.node,
        gpu=gpu.name,
        part=source_format.format_part(part),
        idle_s=int(source_format.elapsed_s(part.use.idle_since, now) or 0),
        memory=part.memory,
        peak=part.use.peak_memory,
        suggested=suggest_memory(part.memory, part.use.peak_memory),
        queue=part.queue,
        last_busy=part.use.last_busy,
    )


def suggest_memory(has: int, peak: int | None) -> int:
    """Return sufficient memory in bytes; 0 if unknown, or if at most twice the peak is held."""
    if not peak or 2 * peak >= has:
        return 0
    return math.ceil(peak * _SPARE / _GIB) * _GIB


def _row(idle: Idle) -> tuple[str, ...]:
    return (
        idle.claim,
        source_format.format_names(key.partition("/")[2] for key in idle.pods),
        idle.node,
        idle.gpu,
        idle.part,
        source_format.format_duration(idle.idle_s) if idle.idle_s else "",
        source_format.format_memory(idle.memory),
        source_format.format_memory(idle.peak) if idle.peak else "",
        source_format.format_memory(idle.suggested) if idle.suggested else "",
        idle.queue,
        idle.last_busy,
    )
