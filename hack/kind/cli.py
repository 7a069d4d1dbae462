"""The driver on kind, with simulated GPUs on its workers.

Docker must run; --daemon has one of our own run for the time of the cluster. The nodes' image is
kind's own where a hub is reached, and else built here, once.
"""

import json
from pathlib import Path
from typing import Annotated

import rich.console
import rich.table
import typer

from hack.cluster import errors, progress, toolchain, versions
from hack.kind import daemon as daemons
from hack.kind import docker, layout, state
from hack.kind import up as bringing
from hack.kind.nodeimage import build as building

CHECKOUT = Path(__file__).resolve().parents[2]
app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
_console = rich.console.Console()

Name = Annotated[str, typer.Option("--name", envvar="CLUSTER", help="the cluster's name")]
OwnDaemon = Annotated[
    bool,
    typer.Option("--daemon", help="have a Docker daemon of our own run, below the cache; as root"),
]


def main() -> None:
    """Run the command line; what went wrong is said in one message."""
    try:
        app()
    except (errors.ClusterError, OSError) as error:
        known = docker.refusal(error)
        if not isinstance(known, errors.ClusterError):
            raise
        console = rich.console.Console(stderr=True, soft_wrap=True)
        console.print(f"[red]error:[/] {known}", highlight=False)
        raise SystemExit(1) from error


def _steps() -> progress.Steps:
    return progress.Steps(_console, toolchain.cache_root() / "timings.json")


@app.command()
def up(
    *,
    name: Name = "ration",
    machine: Annotated[
        str, typer.Option(envvar="MACHINE", help="the simulated machine of each worker")
    ] = "hgx-h100",
    node_image: Annotated[
        str, typer.Option(envvar="NODE", help="the image of the nodes, in place of kind's own")
    ] = "",
    daemon: OwnDaemon = False,
) -> None:
    """Bring the cluster up, or on to what the checkout holds now."""
    where = layout.Layout(CHECKOUT, name)
    request = bringing.Request(machine=machine, node_image=node_image, own_daemon=daemon)
    bringing.up(where, layout.Cache.of_user(), request, _steps())
    shown = where.kubeconfig.relative_to(CHECKOUT)
    _console.print(
        "The cluster is up. Next:\n"
        f"  export KUBECONFIG=$PWD/{shown}\n"
        "  kubectl get nodes,resourceslices\n"
        "  kubectl apply -f examples/quickstart/quickstart.yaml",
        highlight=False,
    )


@app.command()
def down(*, name: Name = "ration") -> None:
    """Delete the cluster and its machines; end a Docker daemon of our own with the last one."""
    bringing.down(layout.Layout(CHECKOUT, name), layout.Cache.of_user(), _steps())


@app.command()
def status(
    *,
    name: Name = "ration",
    output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
) -> None:
    """Show each node: its container, its GPUs, the driver's pods on it."""
    rows = state.rows(layout.Layout(CHECKOUT, name), layout.Cache.of_user())
    if output == "json":
        print(json.dumps(rows, indent=2))
        return
    if not rows:
        _console.print(f"No cluster {name} is up; start one with: make kind-up")
        return
    table = rich.table.Table(*rows[0], box=None)
    for row in rows:
        table.add_row(*row.values())
    _console.print(table)


@app.command()
def build(*, daemon: OwnDaemon = False) -> None:
    """Build the nodes' image, and nothing else, unless Docker has it."""
    cache = layout.Cache.of_user()
    cache.parts.mkdir(parents=True, exist_ok=True)
    with toolchain.lock(cache.lock):
        chosen = daemons.choose(cache, own=daemon)
        recipe = building.Recipe(versions.load().default)
        print(building.ensure(recipe, chosen, cache, _steps()))
