"""`ration validate`: what is wrong with files, before they are applied."""

from typing import TYPE_CHECKING, Annotated

import typer

from driver import names
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli import yaml_input

if TYPE_CHECKING:
    from driver.cli.validate import checks

DETAILS = (
    "Validates Ration's configuration in ResourceClaims, ResourceClaimTemplates and "
    "DeviceClasses with the code of the admission webhook, whether selectors compile and "
    "requests are supported, combinations of devices in the containers of Pods and "
    "workloads, and Queues, Reservations, NodeOfferings, WorkloadMix, NodeShapes and "
    "ManagedDrivers documents. No cluster is needed: DeviceClasses are those of the files and "
    "of the chart.\n\n"
    "  ration validate -f claim.yaml\n\n"
    "  ration validate -f manifests/ -f queues.yaml -o json\n\n"
    "  helm template ./my-chart | ration validate -f -\n\n"
    "Exit codes: 0 nothing is wrong; 1 something is; 2 a file cannot be read."
)
_Files = Annotated[
    list[str],
    typer.Option(
        "--file", "-f", help="A file, a folder, or - for standard input. May be repeated."
    ),
]
_DriverName = Annotated[str, typer.Option(help="name of the DRA driver, as installed")]
_STATES = {True: "wrong", False: "doubtful"}


def show(
    *, file: _Files, driver_name: _DriverName = names.DRIVER, output: out.Output = out.Format.TABLE
) -> None:
    """Say what is wrong with files, before they are applied."""
    # Loaded where something is checked: the selectors' compiler takes half a second.
    from driver.cli.validate import checks  # noqa: PLC0415

    with cli_errors.exit_on_error():
        sources = [
            checks.Source(name, document)
            for path in file
            for name, read in yaml_input.read_files(path)
            for document in read
        ]
    verdict = checks.check_sources(sources, driver_name)
    out.show_answer(build_answer(verdict), output)
    raise typer.Exit(
        cli_errors.NO
        if any(object_problem.certain for object_problem in verdict.problems)
        else cli_errors.DONE
    )


def build_answer(verdict: "checks.ValidationResult") -> out.Answer:
    """Return the printed answer."""
    rows = [
        {
            "state": _STATES[object_problem.certain],
            "file": object_problem.file,
            "object": object_problem.object,
            "problem": object_problem.message,
        }
        for object_problem in verdict.problems
    ]
    wrong = sum(object_problem.certain for object_problem in verdict.problems)
    message = f"{verdict.checked} checked, {verdict.passed} with nothing of ours: {wrong} wrong"
    doubtful = len(rows) - wrong
    message += f", {doubtful} doubtful" if doubtful else ""
    styles = {"wrong": "red", "doubtful": "yellow"}
    columns = (
        out.Column("STATE", styles=styles),
        *map(out.Column, ("FILE", "OBJECT", "PROBLEM")),
    )
    table = out.Table(columns, [tuple(row.values()) for row in rows])
    document = {"checked": verdict.checked, "passed": verdict.passed, "problems": rows}
    return out.Answer(document, (table, message))
