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
    "In a terminal it is drawn again whenever it changes, until Ctrl-C; --once, or a pipe, prints "
    "it once. In a GPU's bar a full cell is given out, a light one is given out and idle.\n\n"
    "  ration top\n\n"
    "  ration top gpu-1 --once\n\n"
    "  ration top --busy\n\n"
    "Exit codes: 0 shown; 2 there is no such node; 3 refused, or not reached."
)
_Node = Annotated[str, typer.Argument(help="Only this node.")]
_Once = Annotated[bool, typer.Option("--once", help="Print it once.")]
_Busy = Annotated[bool, typer.Option("--busy", help="Leave out GPUs that nobody has any of.")]


def show(
    asked: options.Asking, node: _Node = "", *, once: _Once = False, busy: _Busy = False
) -> None:
    """Watch the fleet."""
    live = not once and sys.stdout.isatty() and asked.output.is_for_people
    watching = asked.watched() if live else asked
    watching.show(
        ["ResourceSlice"], lambda of: answer(of, node, busy=busy), node=node, free_gpus=True
    )


def answer(of: source.Source, node: str, *, busy: bool) -> out.Answer:
    """The tree. Raises NotFound."""
    fleet = of.fleet()
    nodes = options.nodes(of, node)
    document = {
        "fleet": fleet.model_dump(mode="json", by_alias=True),
        "nodes": [one.model_dump(mode="json", by_alias=True) for one in nodes],
    }
    return out.Answer(document, ("\n".join(lines(fleet, nodes, busy=busy)),))


def lines(fleet: model.Fleet, nodes: Sequence[model.Node], *, busy: bool) -> Iterator[str]:
    """The tree, a line each."""
    modes = "  ".join(f"{count} {mode}" for mode, count in fleet.modes.items())
    yield (
        f"{fleet.gpus} GPUs on {fleet.nodes} nodes   {modes}   memory "
        f"{source_format.share(fleet.memory_allocated, fleet.memory)}   {fleet.waiting} waiting   "
        f"{fleet.unhealthy} unhealthy   {fleet.idle} idle"
    )
    wide = max(
        (len(part.claim) for node in nodes for gpu in node.gpus for part in gpu.parts), default=0
    )
    for node in nodes:
        told = f"   {node.problem}" if node.problem else ""
        yield f"{node.name}   {source_format.share(node.memory_allocated, node.memory)}{told}"
        for gpu in node.gpus:
            if gpu.parts or not busy:
                yield from _gpu(gpu, fleet.at, wide)


def _gpu(gpu: model.Gpu, at: str, wide: int) -> Iterator[str]:
    ill = "" if gpu.health == "healthy" else f"   {gpu.health} ({source_format.taints(gpu.taints)})"
    yield (
        f"  {gpu.index} [{source_format.bar(gpu)}] {gpu.mode:<12} "
        f"{source_format.share(gpu.memory_allocated, gpu.memory):>15} "
        f"{gpu.compute_allocated:>4}%{ill}"
    )
    for part in gpu.parts:
        use = source_format.use(part.use, at)
        pods = source_format.several(part.pods) or "no pod"
        yield f"      {part.claim:<{wide}}  {source_format.part(part):<12} {use:<12} {pods}"
