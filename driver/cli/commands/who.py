"""`ration who`: who has which GPU."""

from collections.abc import Iterator
from typing import Annotated

import typer

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "MODE kept is for somebody who comes (Reservations) or is first in line (backfill). "
    "Of all namespaces, unless one is named. USE is the load of the last minute, or how long "
    "nothing ran; MIG devices are not told of (NVML samples none).\n\n"
    "  ration who\n\n"
    "  ration who gpu-1/gpu-0000-18-00-0\n\n"
    "  ration who -n vision -o wide\n\n"
    "Exit codes: 0 shown; 2 there is no such node or GPU; 3 refused, or not reached."
)
_Where = Annotated[str, typer.Argument(metavar="NODE[/GPU]", help="Only on this node, or GPU.")]
_COLUMNS = (
    out.Column("POD"),
    out.Column("CLAIM"),
    out.Column("NODE"),
    out.Column("GPU"),
    out.Column("MODE", styles=source_format.MODES),
    out.Column("PART"),
    out.Column("USE"),
    out.Column("SINCE"),
    out.Column("QUEUE", wide=True),
    out.Column("PEAK", wide=True),
    out.Column("DEVICE", wide=True),
    out.Column("READY", wide=True),
    out.Column("UUID", wide=True),
)


def show(asked: options.Asking, where: _Where = "") -> None:
    """Show who has which GPU."""
    namespace = asked.of_named()
    node = where.partition("/")[0]
    asked.show(["ResourceSlice"], lambda of: answer(of, where, namespace), node=node)


def answer(of: source.Source, where: str, namespace: str) -> out.Answer:
    """Who has what of a node, a GPU, or all of them. Raises NotFound."""
    at = of.fleet().at
    found = [
        (gpu, part)
        for gpu in gpus(of, where)
        for part in gpu.parts
        if not namespace or part.claim.startswith(f"{namespace}/")
    ]
    kept = [
        (gpu, entry)
        for gpu in gpus(of, where)
        for entry in gpu.kept
        if gpu.mode == "kept" and _is_in(entry, namespace)
    ]
    document = [
        {
            "node": gpu.node,
            "gpu": gpu.name,
            "uuid": gpu.uuid,
            **part.model_dump(mode="json", by_alias=True),
        }
        for gpu, part in found
    ]
    document += [
        {
            "node": gpu.node,
            "gpu": gpu.name,
            "uuid": gpu.uuid,
            "kept": entry.model_dump(mode="json", by_alias=True),
        }
        for gpu, entry in kept
    ]
    rows = [row for gpu, part in found for row in _rows(gpu, part, at)]
    rows += [_kept_row(gpu, entry, at) for gpu, entry in kept]
    return out.Answer(document, (out.Table(_COLUMNS, sorted(rows), "nobody has any"),))


def gpus(of: source.Source, where: str) -> Iterator[model.Gpu]:
    """Of `NODE`, `NODE/GPU` or all. Raises NotFound."""
    node, _, name = where.partition("/")
    found = [gpu for one in options.nodes(of, node) for gpu in one.gpus]
    mine = [one for one in found if name in {"", one.name, one.uuid, one.pci}]
    if name and not mine:
        raise options.missing(f"node {node} has no GPU {name}: `ration devices {node}` lists them")
    yield from mine


def _rows(gpu: model.Gpu, part: model.Part, at: str) -> Iterator[tuple[str, ...]]:
    for pod in part.pods or ("",):
        yield (
            pod,
            part.claim,
            gpu.node,
            gpu.name,
            part.mode,
            source_format.part(part),
            source_format.use(part.use, at),
            source_format.age(part.since, at),
            part.queue,
            source_format.memory(part.use.peak_memory) if part.use and part.use.peak_memory else "",
            part.device,
            "" if part.ready is None else "yes" if part.ready else part.problem,
            gpu.uuid,
        )


def _is_in(entry: model.Kept, namespace: str) -> bool:
    """Tell if something is kept for a namespace; "" for any."""
    key = entry.reservation or entry.holder.partition(" ")[2]
    return not namespace or key.startswith(f"{namespace}/")


def _kept_row(gpu: model.Gpu, entry: model.Kept, now: str) -> tuple[str, ...]:
    until = f"until {entry.until}" if entry.until else ""
    since = source_format.age(entry.since, now)
    head = (entry.holder, entry.reservation, gpu.node, gpu.name, "kept", until, "", since)
    return (*head, "", "", entry.device, "", gpu.uuid)
