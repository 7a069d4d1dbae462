"""`ration must-gather`: all that a maintainer needs to see, in one archive."""

import importlib.metadata
import tarfile
from pathlib import Path
from typing import Annotated

import typer

from driver import clock, errors, names
from driver.cli import cluster
from driver.cli import errors as cli_errors
from driver.cli.cluster import Kubeconfig

DETAILS = (
    "Contains the output of `ration dump` and `ration doctor -o json`, events of Ration's "
    "components, the chart's Pods, DaemonSets, Deployments, Leases, ConfigMaps, webhooks, "
    "policies and CRDs, Queues, Reservations and DeviceTaintRules, versions, and of each "
    "pod of Ration its logs (those of the previous container too) and, through the API "
    "server's proxy, its metrics. `index.json` lists the contents, and what could not be "
    "collected and why.\n\n"
    "Secrets are never read, and values of environment variables are omitted. Names of "
    "pods, nodes and namespaces and the contents of logs are included: review it before "
    "sharing it. Nothing is changed.\n\n"
    "  ration must-gather\n\n"
    "  ration must-gather -o ration.tar.gz --tail 20000\n\n"
    "  ration simulate -f pods.yaml --cluster FOLDER/cluster.yaml\n\n"
    "Exit codes: 0 it is written, also where not all could be had; 2 the file cannot be "
    "written; 3 the API server refused or was not reached."
)
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Path of the archive. Default: ration-must-gather-TIME.tar.gz."
    ),
]
_Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="namespace in which the chart is installed")
]
_Tail = Annotated[int, typer.Option(min=1, help="Number of last lines of each log.")]
_CALL_S = 30.0


def show(
    *,
    output: _Output = None,
    tail: _Tail = 5000,
    namespace: _Namespace = "ration-system",
    driver_name: Annotated[
        str, typer.Option(help="name of the DRA driver, as installed")
    ] = names.DRIVER,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Put all that a maintainer needs to see into one archive."""
    # Loaded where it is gathered: other commands need none of it.
    from driver.cli.must_gather import collect, contents  # noqa: PLC0415

    now = clock.SystemClock().now()
    folder = f"ration-must-gather-{now:%Y%m%dT%H%M%SZ}"
    to = output or Path(f"{folder}.tar.gz")
    index = contents.Index(now, importlib.metadata.version("ration"))
    requested = collect.GatherOptions(namespace, driver_name, tail)
    with cli_errors.exit_on_error():
        kube = cluster.connect(kubeconfig).with_timeout(_CALL_S)
        kube.server_version()  # before a file is made for nothing
        try:
            with tarfile.open(to, "x:gz") as tar:
                archive = collect.Archive(tar, folder, index)
                collect.Collector(kube, archive, requested, _say).collect()
        except OSError as error:
            raise errors.BadInput(str(to), error.strerror or str(error), "a new file") from error
    missing = f", {len(index.missing)} could not be had (index.json)" if index.missing else ""
    print(f"{to}: {len(index.files)} files{missing}")


def _say(text: str) -> None:
    typer.echo(text, err=True)
