"""`python -m driver.uninstall`: what the chart's hooks run when it is uninstalled."""

from pathlib import Path
from typing import Annotated

import typer

from driver import clock, errors
from driver.kube import client, gvr
from driver.uninstall import post_delete, pre_delete, report

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)

Driver = Annotated[str, typer.Option("--driver-name")]
Namespace = Annotated[str, typer.Option("--namespace")]
Selector = Annotated[str, typer.Option("--selector", help="labels of all pods of the release")]
Kubeconfig = Annotated[Path | None, typer.Option("--kubeconfig")]


@app.command()
def stop(  # noqa: PLR0913 - the options of a command
    driver: Driver,
    namespace: Namespace,
    selector: Selector,
    plugin: Annotated[str, typer.Option("--plugin", help="the kubelet plugin's DaemonSet")] = "",
    controller: Annotated[str, typer.Option("--controller", help="its Deployment")] = "",
    kubeconfig: Kubeconfig = None,
    *,
    managed: Annotated[
        list[str] | None,
        typer.Option("--managed-driver", help="another driver whose devices it allocated"),
    ] = None,
    on_demand: Annotated[
        bool,
        typer.Option("--nodes-on-demand", help="it requested nodes, and marked them"),
    ] = False,
) -> None:
    """Before: refuse while claims are in use, stop the controller, let go of all claims."""
    release = report.Release(
        driver, namespace, selector, plugin, controller, on_demand, managed=tuple(managed or ())
    )
    pre_delete.PreDelete(_connected(kubeconfig), release, clock.SystemClock(), typer.echo).run()


@app.command()
def sweep(  # noqa: PLR0913 - the options of a command
    driver: Driver,
    namespace: Namespace,
    selector: Selector,
    secret: Annotated[str, typer.Option("--secret", help="the webhook's, of its own making")] = "",
    lease: Annotated[str, typer.Option("--lease", help="the webhook's")] = "",
    kubeconfig: Kubeconfig = None,
    *,
    allocator_rules: Annotated[
        bool,
        typer.Option("--allocator-rules", help="the controller allocated other drivers' devices"),
    ] = False,
    observed_shapes: Annotated[
        str,
        typer.Option(
            "--observed-shapes-configmap", help="ConfigMap of what nodes were seen to have"
        ),
    ] = "",
) -> None:
    """After: delete what the release's processes made."""
    release = report.Release(driver, namespace, selector, allocator_rules=allocator_rules)
    hook = post_delete.PostDelete(_connected(kubeconfig), release, clock.SystemClock(), typer.echo)
    hook.run({gvr.SECRETS: secret, gvr.LEASES: lease, gvr.CONFIG_MAPS: observed_shapes})


@app.command("nodes")
def wait_nodes(
    driver: Driver,
    namespace: Namespace,
    selector: Selector,
    daemon_set: Annotated[str, typer.Option("--daemon-set", help="that clears the nodes")],
    seconds: Annotated[float, typer.Option("--seconds", help="longest wait")] = 60.0,
    kubeconfig: Kubeconfig = None,
) -> None:
    """At last: wait until every node is cleared."""
    release = report.Release(driver, namespace, selector)
    hook = post_delete.PostDelete(_connected(kubeconfig), release, clock.SystemClock(), typer.echo)
    hook.wait_for_nodes(daemon_set, seconds)


def _connected(kubeconfig: Path | None) -> client.KubeClient:
    return client.KubeClient.connect(kubeconfig, "ration-leaving")


def main() -> int:
    """Run one command; the exit code."""
    try:
        app()
    except errors.RationError as error:
        typer.echo(str(error))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
