"""`ration queues`: what each queue may have, has, and what waits in it."""

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "FAIR is what is fair now, by all who want some; BORROWED what it has beyond what it deserves, "
    "KEPT what backfill keeps idle for its first pod or gang. "
    "A queue that is left out says why with -o wide.\n\n"
    "  ration queues\n\n"
    "  ration queues -o wide\n\n"
    "  ration queues --watch\n\n"
    "Exit codes: 0 shown; 3 refused, or not reached."
)
_COLUMNS = (
    out.Column("QUEUE"),
    out.Column("PARENT"),
    out.Column("HAS", blank="0"),
    out.Column("FAIR"),
    out.Column("DESERVED"),
    out.Column("LIMIT"),
    out.Column("BORROWED", blank="0"),
    out.Column("KEPT", blank="0"),
    out.Column("WAITING"),
    out.Column("OLDEST"),
    out.Column("ACCEPTED", styles={"no": "red"}),
    out.Column("WEIGHT", wide=True),
    out.Column("MEMORY", wide=True),
    out.Column("COMPUTE", wide=True),
    out.Column("MEMBERS", wide=True),
    out.Column("PROBLEM", wide=True),
)


def show(asked: options.Asking) -> None:
    """Show queues."""
    asked.show(["Queue"], answer, beside=())


def answer(of: source.Source) -> out.Answer:
    """All queues, each before its children."""
    found = of.queues().items
    table = out.Table(
        _COLUMNS, [_row(one) for one in found], "there are no queues: whoever is first has it"
    )
    return out.Answer([one.model_dump(mode="json", by_alias=True) for one in found], (table,))


def _row(one: model.Queue) -> tuple[str, ...]:
    return (
        one.name,
        one.parent,
        one.allocated,
        one.fair_share,
        one.deserved_share,
        one.limit.gpus,
        one.borrowed,
        f"{one.kept} until {one.kept_until}" if one.kept else "",
        str(one.waiting),
        one.oldest_wait,
        "yes" if one.accepted else "no",
        str(one.weight),
        one.memory,
        one.compute,
        source_format.several(one.members),
        one.problem,
    )
