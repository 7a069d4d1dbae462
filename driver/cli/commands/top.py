"""`ration top`: the fleet live, from the cluster down to the pods."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "In a terminal it is redrawn on every change until Ctrl-C; --once, or a pipe, prints "
    "it once. In a GPU's bar a full cell is allocated and a light one is allocated but "
    "idle.\n\n"
    "  ration top\n\n"
    "  ration top gpu-1 --once\n\n"
    "  ration top --busy\n\n"
    "Exit codes: 0 shown; 2 there is no such node; 3 refused, or not reached."
)
_Node = Annotated[str, typer.Argument(help="Only this node.")]
_Once = Annotated[bool, typer.Option("--once", help="Print it once.")]
_Busy = Annotated[bool, typer.Option("--busy", help="Show only GPUs in use.")]


def show(
    read_options: options.ReadOptions, node: _Node = "", *, once: _Once = False, busy: _Busy = False
) -> None:
    """Watch the fleet."""
    live = not once and sys.stdout.isatty() and read_options.output.is_for_people
    watching = read_options.watched() if live else read_options
    watching.show(
        ["ResourceSlice"],
        lambda reports: build_answer(reports, node, busy=busy),
        node=node,
        free_gpus=True,
    )


def build_answer(reports: source.Source, node: str, *, busy: bool) -> out.Answer:
    """Return the tree. Raises NotFound."""
    fleet = reports.fleet()
    nodes = options.matching_nodes(reports, node)
    document = {
        "fleet": fleet.model_dump(mode="json", by_alias=True),
        "nodes": [item.model_dump(mode="json", by_alias=True) for item in nodes],
    }
    return out.Answer(document, ("\n".join(lines(fleet, nodes, busy=busy)),))


def lines(fleet: model.Fleet, nodes: Sequence[model.Node], *, busy: bool) -> Iterator[str]:
    """The tree, a line each."""
    modes = "  ".join(f"{count} {mode}" for mode, count in fleet.modes.items())
    share = source_format.format_share(fleet.memory_allocated, fleet.memory)
    yield (
        f"{fleet.gpus} GPUs on {fleet.nodes} nodes   {modes}   memory "
        f"{share}   {fleet.waiting} waiting   "
        f"{fleet.unhealthy} unhealthy   {fleet.idle} idle"
    )
    wide = max(
        (len(part.claim) for node in nodes for gpu in node.gpus for part in gpu.parts), default=0
    )
    for node in nodes:
        message = f"   {node.problem}" if node.problem else ""
        used = source_format.format_share(node.memory_allocated, node.memory)
        yield f"{node.name}   {used}{message}"
        for gpu in node.gpus:
            if gpu.parts or not busy:
                yield from _gpu(gpu, fleet.at, wide)


def _gpu(gpu: model.Gpu, now: str, wide: int) -> Iterator[str]:
    ill = (
        ""
        if gpu.health == "healthy"
        else f"   {gpu.health} ({source_format.format_taints(gpu.taints)})"
    )
    yield (
        f"  {gpu.index} [{source_format.format_bar(gpu)}] {gpu.mode:<12} "
        f"{source_format.format_share(gpu.memory_allocated, gpu.memory):>15} "
        f"{gpu.compute_allocated:>4}%{ill}"
    )
    for part in gpu.parts:
        use = source_format.format_use(part.use, now)
        pods = source_format.format_names(part.pods) or "no pod"
        yield f"      {part.claim:<{wide}}  {source_format.format_part(part):<12} {use:<12} {pods}"
