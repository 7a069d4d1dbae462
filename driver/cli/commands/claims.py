"""`ration claims`: what each claim asks, has, and why it waits."""

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "Claims that ask for GPUs of Ration, or have some; of the namespace, or all with -A. States: "
    "pending, allocated (nobody has reserved it), reserved, deleting.\n\n"
    "  ration claims\n\n"
    "  ration claims -A -o wide\n\n"
    "  ration claims -n vision -o json\n\n"
    "Exit codes: 0 shown; 3 refused, or not reached."
)
_COLUMNS = (
    out.Column("NAMESPACE"),
    out.Column("NAME"),
    out.Column("STATE", styles={"pending": "yellow", "deleting": "red"}),
    out.Column("ASKS"),
    out.Column("NODE"),
    out.Column("GPUS"),
    out.Column("PODS"),
    out.Column("REASON", styles={"Prepared": ""}),
    out.Column("MESSAGE", wide=True),
    out.Column("QUEUE", wide=True),
    out.Column("SINCE", wide=True),
)


def show(asked: options.Asking) -> None:
    """Show claims."""
    namespace = asked.of_namespace()
    beside = ("DeviceClass", "Pod", "Queue")
    asked.show(["ResourceClaim"], lambda of: answer(of, namespace), beside=beside)


def answer(of: source.Source, namespace: str) -> out.Answer:
    """The claims of a namespace, or of all."""
    found = of.claims(namespace)
    within = f" in namespace {namespace}" if namespace else ""
    table = out.Table(
        _COLUMNS, [_row(one) for one in found.items], f"no claims ask for GPUs{within}"
    )
    document = [one.model_dump(mode="json", by_alias=True) for one in found.items]
    return out.Answer(document, (table,))


def _row(one: model.Claim) -> tuple[str, ...]:
    pods = (key.partition("/")[2] for key in one.pods)
    gpus = dict.fromkeys(device.gpu or device.device for device in one.devices)
    return (
        one.namespace,
        one.name,
        one.state,
        "; ".join(ask.text for ask in one.requests),
        one.node,
        source_format.several(gpus),
        source_format.several(pods),
        one.reason,
        one.message,
        one.queue,
        one.since,
    )
