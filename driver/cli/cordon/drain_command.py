"""`ration drain`: cordon, and see that nothing holds a node's GPUs, or one GPU, any more."""

from typing import Annotated

import typer

from driver import clock, errors
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.cluster import Kubeconfig
from driver.cli.cordon import command

DETAILS = (
    "Without --evict it lists the claims and pods that use the devices. With it, pods "
    "with a controller (ReplicaSet, Job) are evicted by the Eviction API, which respects "
    "PodDisruptionBudgets, and the command waits until nothing uses the devices. Bare "
    "pods are evicted only with --force; static pods and claims without a pod are left "
    "and reported. Claims with adminAccess are ignored.\n\n"
    "Requires, in addition to the rights of `ration cordon`, those to list pods and "
    "resourceclaims in all namespaces and to create pods/eviction.\n\n"
    "  ration drain gpu-1\n\n"
    "  ration drain gpu-1/gpu-0000-18-00-0 --evict --timeout 10m\n\n"
    "  ration drain gpu-1 --evict --dry-run -o json\n\n"
    "Exit codes: 0 nothing holds it; 1 something still does; 2 there is no such node or "
    "GPU; 3 the API server refused or was not reached."
)
_Evict = Annotated[bool, typer.Option("--evict", help="Evict the pods that have a controller.")]
_Force = Annotated[
    bool,
    typer.Option("--force", help="With --evict: evict bare pods too, which are not recreated."),
]
_Timeout = Annotated[str, typer.Option(help="With --evict: timeout, such as 90s or 10m.")]


def show(  # noqa: PLR0913 - the options of a command
    target: command.Target,
    *,
    evict: _Evict = False,
    force: _Force = False,
    timeout: _Timeout = "5m",
    dry_run: command.DryRun = False,
    driver_name: command.DriverName = "",
    kubeconfig: Kubeconfig = None,
    output: out.Output = out.Format.TABLE,
) -> None:
    """Cordon it, and see that nothing holds it any more."""
    from driver.cli.cordon import drain  # noqa: PLC0415 - as the other commands
    from driver.cli.sources import format as source_format  # noqa: PLC0415 - as above

    with cli_errors.exit_on_error():
        within_s = source_format.parse_seconds("--timeout", timeout)
        if force and not evict:
            raise errors.BadInput("--force", "evicts nothing by itself", "--evict too")
    with command.open_api(command.CordonOptions(target, driver_name, kubeconfig)) as (
        cluster_api,
        devices,
    ):
        command.mark(cluster_api, devices, dry=dry_run, err=True)
        left = cluster_api.holders(devices)
        if evict and left and not dry_run:
            work = drain.Drain(
                cluster_api, devices, lambda text: typer.echo(text, err=True), clock.SystemClock()
            )
            left = work.run(drain.DrainOptions(force, within_s))
        out.show_answer(drain.build_answer(devices.target, left, force=evict and force), output)
    raise typer.Exit(cli_errors.NO if left else cli_errors.DONE)
