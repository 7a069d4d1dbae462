"""`ration claims`: what each claim asks, has, and why it waits."""

from driver.cli import output as out
from driver.cli.sources import format as source_format
from driver.cli.sources import options, source
from driver.scheduling.reports import model

DETAILS = (
    "Lists claims that request or have GPUs of Ration, of the namespace or of all with "
    "-A. States: pending, allocated (not reserved by a pod), reserved, deleting.\n\n"
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


def show(read_options: options.ReadOptions) -> None:
    """Show claims."""
    namespace = read_options.in_namespace()
    beside = ("DeviceClass", "Pod", "Queue")
    read_options.show(
        ["ResourceClaim"], lambda reports: build_answer(reports, namespace), beside=beside
    )


def build_answer(reports: source.Source, namespace: str) -> out.Answer:
    """Return the claims of a namespace, or of all."""
    claims = reports.claims(namespace)
    within = f" in namespace {namespace}" if namespace else ""
    table = out.Table(
        _COLUMNS, [_row(claim) for claim in claims.items], f"no claims ask for GPUs{within}"
    )
    document = [claim.model_dump(mode="json", by_alias=True) for claim in claims.items]
    return out.Answer(document, (table,))


def _row(claim: model.Claim) -> tuple[str, ...]:
    pods = (key.partition("/")[2] for key in claim.pods)
    gpus = dict.fromkeys(device.gpu or device.device for device in claim.devices)
    return (
        claim.namespace,
        claim.name,
        claim.state,
        "; ".join(ask.text for ask in claim.requests),
        claim.node,
        source_format.format_names(gpus),
        source_format.format_names(pods),
        claim.reason,
        claim.message,
        claim.queue,
        claim.since,
    )
