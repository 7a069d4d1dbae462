"""`ration nodes`: the kinds of node that can be asked for, what is there and on its way."""

from collections.abc import Iterator

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "STARTUP is what the last nodes took, or, assumed, what their document says. RESTING: none is "
    "asked for at present, for one did not come; -o wide says why.\n\n"
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


def show(asked: options.Asking) -> None:
    """Show kinds of node."""
    asked.show(["Node"], answer, beside=("Pod", "ResourceSlice", SHAPES))


def answer(of: source.Source) -> out.Answer:
    """Every kind, and every node that is on its way."""
    found = of.shapes()
    at = of.fleet().at if any(one.coming for one in found.items) else ""
    none = "the document of shapes names none" if found.on else _NO_DOCUMENT
    kinds = out.Table(_COLUMNS, [_row(one, at) for one in found.items], none)
    parts: list[out.Table | str] = [kinds]
    if found.items:
        rows = [row for one in found.items for row in _rows(one, at)]
        parts += ["", out.Table(_COMING, rows, "no node is on its way")]
    return out.Answer(
        [one.model_dump(mode="json", by_alias=True) for one in found.items], tuple(parts)
    )


def _row(one: model.Shape, at: str) -> tuple[str, ...]:
    startup = source_format.length(one.startup_seconds)
    return (
        one.name,
        str(one.nodes),
        str(one.gpus_there),
        str(len(one.coming)),
        source_format.age(one.coming[0].since, at) if one.coming else "",
        startup if one.measured else f"{startup} assumed",
        f"{one.cost:g}",
        "yes" if one.resting else "",
        str(one.gpus),
        one.product,
        "of a live node" if one.learned else "of its document",
        str(one.most),
        one.resting,
    )


def _rows(one: model.Shape, at: str) -> Iterator[tuple[str, ...]]:
    for asked in one.coming:
        yield one.name, asked.wanted_for, source_format.age(asked.since, at), asked.node
