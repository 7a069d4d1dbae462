"""`ration devices`: every GPU, how it is used, and how it is."""

import enum
from typing import Annotated

import typer

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model, selection

DETAILS = (
    "Modes: free; kept (KEPT FOR: the holder of a Reservation, or the workload for which "
    "backfill reserves it, and until when); whole, mig, mps, time-slicing. Health: "
    "healthy; cordoned (by an operator); unhealthy (-o wide shows the fault).\n\n"
    "Only the controller knows which GPUs backfill reserves: if it is not queried, they "
    "are shown as free, with a note on standard error.\n\n"
    "  ration devices\n\n"
    "  ration devices gpu-1 -o wide\n\n"
    "  ration devices --mode free --health healthy\n\n"
    "Exit codes: 0 shown; 2 there is no such node; 3 refused, or not reached."
)


class Mode(enum.StrEnum):
    """Values of `--mode`."""

    ANY = ""
    FREE = "free"
    KEPT = "kept"
    WHOLE = "whole"
    MIG = "mig"
    MPS = "mps"
    TIME_SLICING = "time-slicing"


class Health(enum.StrEnum):
    """Values of `--health`."""

    ANY = ""
    HEALTHY = "healthy"
    CORDONED = "cordoned"
    UNHEALTHY = "unhealthy"


_Node = Annotated[str, typer.Argument(help="Name of the node; default: all.")]
_Mode = Annotated[Mode, typer.Option(show_default=False, help="Show only GPUs in this mode.")]
_Health = Annotated[
    Health, typer.Option(show_default=False, help="Show only GPUs with this health.")
]
_Product = Annotated[str, typer.Option(help="Show only GPUs of this product.")]
_COLUMNS = (
    out.Column("NODE"),
    out.Column("GPU"),
    out.Column("PRODUCT"),
    out.Column("MODE", styles=source_format.MODES),
    out.Column("MEMORY"),
    out.Column("COMPUTE", blank="0%"),
    out.Column("CLAIMS"),
    out.Column("HEALTH", styles=source_format.HEALTH),
    out.Column("KEPT FOR"),
    out.Column("TAINTS", wide=True),
    out.Column("ALLOCATOR", wide=True),
    out.Column("NUMA", wide=True),
    out.Column("NVLINK", wide=True),
    out.Column("UUID", wide=True),
)


def show(
    read_options: options.ReadOptions,
    node: _Node = "",
    *,
    mode: _Mode = Mode.ANY,
    health: _Health = Health.ANY,
    product: _Product = "",
) -> None:
    """Show every GPU."""
    node_filter = selection.NodeFilter(product=product, mode=mode, health=health)
    read_options.show(
        ["ResourceSlice"],
        lambda reports: build_answer(reports, node, node_filter),
        node=node,
        free_gpus=True,
    )


def build_answer(
    reports: source.Source, node: str, node_filter: selection.NodeFilter
) -> out.Answer:
    """Return the GPUs of a node, or of all. Raises NotFound."""
    nodes = options.matching_nodes(reports, node, node_filter)
    gpus = [gpu for item in nodes for gpu in item.gpus if node_filter.matches_gpu(gpu)]
    document = [gpu.model_dump(mode="json", by_alias=True) for gpu in gpus]
    table = out.Table(_COLUMNS, [_row(gpu) for gpu in gpus], "no GPUs are published")
    return out.Answer(document, (table,))


def _row(gpu: model.Gpu) -> tuple[str, ...]:
    claims = dict.fromkeys(part.claim for part in gpu.parts)
    return (
        gpu.node,
        gpu.name,
        gpu.product,
        gpu.mode,
        source_format.format_share(gpu.memory_allocated, gpu.memory),
        f"{gpu.compute_allocated}%",
        source_format.format_names(claims),
        gpu.health,
        source_format.format_names(dict.fromkeys(map(source_format.format_kept, gpu.kept))),
        source_format.format_taints(gpu.taints),
        gpu.allocator,
        "" if gpu.numa is None else str(gpu.numa),
        ",".join(map(str, gpu.nvlink)),
        gpu.uuid,
    )
