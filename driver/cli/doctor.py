"""`ration doctor`: what is wrong, and what to do about it."""

from typing import Annotated

import typer

from driver import clock, names
from driver.cli import checks, cluster, gather
from driver.cli import output as out
from driver.cli.checks import findings


def examine(
    node: Annotated[str, typer.Option(help="only this node, beside the cluster itself")] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="where the chart is installed")
    ] = "ration-system",
    driver_name: Annotated[str, typer.Option(help="driverName, as installed")] = names.DRIVER,
    kubeconfig: cluster.Kubeconfig = None,
    *,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="leave out what is as it should be")
    ] = False,
    output: out.Output = out.Format.TABLE,
) -> None:
    """Look for what keeps GPUs from being given out, and what to do about it.

    It asks the API server only, and changes nothing. Of the cluster: is
    Kubernetes new enough, are its feature gates on, is there a DeviceClass,
    does a controller lead, are the pods ready, do the webhook's certificates
    hold. Of each node with GPUs: what it publishes, who allocates it, and who
    else is there: another driver of the name, a device plugin, a MIG manager.

    ok: as it should be. note: worth knowing, nothing to repair. wrong: see
    the fix. not seen: you lack the right, or there was no answer.

    Exit code: 0 nothing is wrong, 1 something is, 3 not all could be seen.

    ration doctor                       the whole cluster
    ration doctor --node gpu-7 --wrong  what is wrong with one node
    ration doctor -o json               for programs
    """
    seen = gather.Gathering(cluster.connect(kubeconfig)).look(
        driver_name, namespace, node, clock.SystemClock().now()
    )
    found = checks.run(seen)
    shown = [one for one in found if not wrong or one.state is not findings.State.FINE]
    out.show([one.row() for one in shown], output)
    raise typer.Exit(findings.verdict(found))
