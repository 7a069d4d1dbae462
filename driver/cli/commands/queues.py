"""`ration queues`: what each queue may have, has, and what waits in it."""

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "FAIR is the current fair share given the demand of all queues; BORROWED the use "
    "beyond the deserved share; KEPT the GPUs that backfill reserves for the workload at "
    "the head of the queue. -o wide shows why a queue is ignored.\n\n"
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


def show(read_options: options.ReadOptions) -> None:
    """Show queues."""
    read_options.show(["Queue"], build_answer, beside=())


def build_answer(reports: source.Source) -> out.Answer:
    """Return all queues, each before its children."""
    queues = reports.queues().items
    table = out.Table(
        _COLUMNS, [_row(queue) for queue in queues], "there are no queues: whoever is first has it"
    )
    return out.Answer([queue.model_dump(mode="json", by_alias=True) for queue in queues], (table,))


def _row(queue: model.Queue) -> tuple[str, ...]:
    return (
        queue.name,
        queue.parent,
        queue.allocated,
        queue.fair_share,
        queue.deserved_share,
        queue.limit.gpus,
        queue.borrowed,
        f"{queue.kept} until {queue.kept_until}" if queue.kept else "",
        str(queue.waiting),
        queue.oldest_wait,
        "yes" if queue.accepted else "no",
        str(queue.weight),
        queue.memory,
        queue.compute,
        source_format.format_names(queue.members),
        queue.problem,
    )
