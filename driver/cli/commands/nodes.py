"""`ration nodes`: the kinds of node that can be asked for, what is there and on its way."""

from collections.abc import Iterator

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "STARTUP is the measured startup time of recent nodes or, if assumed, that of the "
    "document. RESTING: no node is requested at present because a request failed; -o wide "
    "shows why.\n\n"
    "  ration nodes\n\n"
    "  ration nodes -o wide\n\n"
    "  ration nodes --watch\n\n"
    "Exit codes: 0 shown; 3 refused, or not reached."
)
SHAPES = "NodeShapes"
"""What is read of the release's ConfigMaps."""
_COLUMNS = (
    out.Column("SHAPE"),
    out.Column("NODES"),
    out.Column("GPUS"),
    out.Column("COMING"),
    out.Column("OLDEST"),
    out.Column("STARTUP"),
    out.Column("COST"),
    out.Column("RESTING", styles={"yes": "yellow"}),
    out.Column("EACH", wide=True),
    out.Column("PRODUCT", wide=True),
    out.Column("KNOWN", wide=True),
    out.Column("MOST", wide=True),
    out.Column("WHY", wide=True),
)
_NO_DOCUMENT = "nodes are not asked for, or the ConfigMap that names their kinds was not read"
_COMING = (out.Column("SHAPE"), out.Column("FOR"), out.Column("SINCE"), out.Column("NODE"))


def show(read_options: options.ReadOptions) -> None:
    """Show kinds of node."""
    read_options.show(["Node"], build_answer, beside=("Pod", "ResourceSlice", SHAPES))


def build_answer(reports: source.Source) -> out.Answer:
    """Return every shape, and every node in flight."""
    shapes = reports.shapes()
    now = reports.fleet().at if any(shape.coming for shape in shapes.items) else ""
    none = "the document of shapes names none" if shapes.on else _NO_DOCUMENT
    kinds = out.Table(_COLUMNS, [_row(shape, now) for shape in shapes.items], none)
    parts: list[out.Table | str] = [kinds]
    if shapes.items:
        rows = [row for shape in shapes.items for row in _rows(shape, now)]
        parts += ["", out.Table(_COMING, rows, "no node is on its way")]
    return out.Answer(
        [shape.model_dump(mode="json", by_alias=True) for shape in shapes.items], tuple(parts)
    )


def _row(shape: model.Shape, now: str) -> tuple[str, ...]:
    startup = source_format.format_duration(shape.startup_seconds)
    return (
        shape.name,
        str(shape.nodes),
        str(shape.gpus_there),
        str(len(shape.coming)),
        source_format.format_age(shape.coming[0].since, now) if shape.coming else "",
        startup if shape.measured else f"{startup} assumed",
        f"{shape.cost:g}",
        "yes" if shape.resting else "",
        str(shape.gpus),
        shape.product,
        "of a live node" if shape.learned else "of its document",
        str(shape.max_in_flight),
        shape.resting,
    )


def _rows(shape: model.Shape, now: str) -> Iterator[tuple[str, ...]]:
    for coming in shape.coming:
        yield (
            shape.name,
            coming.wanted_for,
            source_format.format_age(coming.since, now),
            coming.node,
        )
