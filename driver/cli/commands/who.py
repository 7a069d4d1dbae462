"""`ration who`: who has which GPU."""

from collections.abc import Iterator
from typing import Annotated

import typer

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "MODE kept: held by a Reservation or by backfill. Lists all namespaces unless one is "
    "given. USE is the utilization of the last minute, or the idle time; not available "
    "for MIG devices, which NVML does not sample.\n\n"
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


def show(read_options: options.ReadOptions, path: _Where = "") -> None:
    """Show who has which GPU."""
    namespace = read_options.namespace_of_named()
    node = path.partition("/")[0]
    read_options.show(
        ["ResourceSlice"], lambda reports: build_answer(reports, path, namespace), node=node
    )


def build_answer(reports: source.Source, location: str, namespace: str) -> out.Answer:
    """Return the holders on a node, a GPU, or all of them. Raises NotFound."""
    now = reports.fleet().at
    result = [
        (gpu, part)
        for gpu in select_gpus(reports, location)
        for part in gpu.parts
        if not namespace or part.claim.startswith(f"{namespace}/")
    ]
    retained = [
        (gpu, entry)
        for gpu in select_gpus(reports, location)
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
        for gpu, part in result
    ]
    document += [
        {
            "node": gpu.node,
            "gpu": gpu.name,
            "uuid": gpu.uuid,
            "kept": entry.model_dump(mode="json", by_alias=True),
        }
        for gpu, entry in retained
    ]
    rows = [row for gpu, part in result for row in _rows(gpu, part, now)]
    rows += [_kept_row(gpu, entry, now) for gpu, entry in retained]
    return out.Answer(document, (out.Table(_COLUMNS, sorted(rows), "nobody has any"),))


def select_gpus(reports: source.Source, path: str) -> Iterator[model.Gpu]:
    """Yield the GPUs of `NODE`, `NODE/GPU` or all. Raises NotFound."""
    node, _, name = path.partition("/")
    gpus = [
        gpu for matching_node in options.matching_nodes(reports, node) for gpu in matching_node.gpus
    ]
    mine = [
        matching_node
        for matching_node in gpus
        if name in {"", matching_node.name, matching_node.uuid, matching_node.pci}
    ]
    if name and not mine:
        raise options.not_found(
            f"node {node} has no GPU {name}: `ration devices {node}` lists them"
        )
    yield from mine


def _rows(gpu: model.Gpu, part: model.Part, now: str) -> Iterator[tuple[str, ...]]:
    for pod in part.pods or ("",):
        yield (
            pod,
            part.claim,
            gpu.node,
            gpu.name,
            part.mode,
            source_format.format_part(part),
            source_format.format_use(part.use, now),
            source_format.format_age(part.since, now),
            part.queue,
            source_format.format_memory(part.use.peak_memory)
            if part.use and part.use.peak_memory
            else "",
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
    since = source_format.format_age(entry.since, now)
    head = (entry.holder, entry.reservation, gpu.node, gpu.name, "kept", until, "", since)
    return (*head, "", "", entry.device, "", gpu.uuid)
