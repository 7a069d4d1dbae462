"""Real Kubernetes on this machine, without containers around it.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kube-proxy run once; every node
has a containerd, a kubelet and, with the driver, a simulated GPU machine (`gpu`) and the driver's
kubelet plugin (`plugin`). Controllers of the driver are called controller-0, controller-1, ...

Everything a person needs is in .cluster/ of the checkout:

  export KUBECONFIG=$PWD/.cluster/kubeconfig PATH=$PWD/.cluster/bin:$PATH
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import rich.console
import rich.table
import typer

from hack.cluster import (
    boot,
    control,
    errors,
    images,
    layout,
    membership,
    network,
    plan,
    prerequisites,
    progress,
    reboot,
    state,
    store,
    toolchain,
    versions,
)  # fmt: skip
from hack.cluster import (
    down as ending,
)

CHECKOUT = Path(__file__).resolve().parents[2]
app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
_console = rich.console.Console()

Component = Annotated[str, typer.Argument(help="etcd, kubelet, plugin, controller-0, ...")]
Node = Annotated[str | None, typer.Argument(help="the node, for a component that each node has")]
Machine = Annotated[str, typer.Option(help="the simulated machine, by its profile's name")]
AllocatorOption = Annotated[
    state.Allocator, typer.Option(help="who allocates: our controller, or kube-scheduler alone")
]
KubernetesOption = Annotated[
    str | None,
    typer.Option(
        envvar="K8S", help="the release line, as versions.toml names them", metavar="LINE"
    ),
]
GatesOption = Annotated[
    str,
    typer.Option(
        envvar="FEATURE_GATES",
        help="gates of Kubernetes' servers and kubelets: Name=true,Other=false",
        metavar="GATES",
    ),
]


def main() -> None:
    """Run the command line; what went wrong is told in one message."""
    try:
        app()
    except errors.ClusterError as error:
        rich.console.Console(stderr=True).print(f"[red]error:[/] {error}", highlight=False)
        raise SystemExit(1) from error


def _where() -> layout.Layout:
    """The cluster that RATION_CLUSTER names, from inside its network."""
    where = layout.Layout(CHECKOUT)
    if network.exists(where):
        network.enter(where)
    return where


def _steps() -> progress.Steps:
    return progress.Steps(_console, toolchain.cache_root() / "timings.json")


@app.command()
def up(  # noqa: PLR0913 - the options of a command
    *,
    nodes: Annotated[int, typer.Option(help="how many nodes: node-0, node-1, ...")] = 2,
    machine: Machine = "hgx-h100",
    allocator: AllocatorOption = state.Allocator.CONTROLLER,
    controllers: Annotated[int, typer.Option(help="how many of our controllers run")] = 1,
    driver: Annotated[
        state.Driver, typer.Option(help="the driver: processes, pods by its chart, or none")
    ] = state.Driver.PROCESSES,
    kubernetes: KubernetesOption = None,
    feature_gates: GatesOption = "",
) -> None:
    """Bring the cluster up; the first time it builds Kubernetes (about 8 minutes on 2 cores)."""
    entries = tuple(
        state.NodeState(name=name, index=index, machine=machine, allocator=allocator)
        for index, name in enumerate(plan.node_names(nodes))
    )
    wanted = state.Wanted(
        kubernetes=versions.load().line(kubernetes),
        nodes=entries,
        controllers=controllers,
        driver=driver,
        feature_gates=plan.parse_feature_gates(feature_gates),
    )
    where = layout.Layout(CHECKOUT)
    boot.up(where, wanted, _steps())
    for line in ("The cluster is up. Next:", *_next_commands(where)):
        _console.print(line, highlight=False)


def _next_commands(where: layout.Layout) -> tuple[str, ...]:
    """Commands that show the cluster; a named one is reached from inside its network alone."""
    show = "kubectl get nodes,resourceslices"
    if where.name:
        return (f"  RATION_CLUSTER={where.name} python -m hack.cluster run -- {show}",)
    own = ("export KUBECONFIG=$PWD/.cluster/kubeconfig PATH=$PWD/.cluster/bin:$PATH", show)
    return tuple(f"  {command}" for command in own)


@app.command()
def down(
    *,
    owner: Annotated[
        str, typer.Option(help="`any` also ends the cluster of another checkout")
    ] = "self",
) -> None:
    """End the cluster and everything it made on this machine; a crashed one too."""
    if owner not in {"self", "any"}:
        raise errors.ClusterError(f"--owner {owner!r}: expected self or any")
    where = layout.Layout(CHECKOUT)
    came = network.enter(where)
    ending.down(where, _steps(), any_owner=owner == "any")
    if came:
        network.remove(where)


@app.command(context_settings={"ignore_unknown_options": True})
def run(command: Annotated[list[str], typer.Argument(help="after --, with its arguments")]) -> None:
    """Run a command in the network of the cluster that RATION_CLUSTER names; it need not be up.

    KUBECONFIG and PATH are the cluster's. What a cluster is made of is fetched first: from inside
    nothing else is reached.
    """
    where = layout.Layout(CHECKOUT)
    if where.name:
        line = versions.load().line(os.environ.get("K8S"))
        prerequisites.ensure(_steps(), toolchain.choose(toolchain.missing(line)))
        toolchain.ensure(line, _steps())
        images.ensure()
    came = network.enter(where)
    environment = {
        **os.environ,
        "KUBECONFIG": str(where.kubeconfig),
        "PATH": f"{where.programs}:{os.environ.get('PATH', '')}",
    }
    try:
        done = subprocess.run(command, env=environment if where.name else None, check=False)
    except OSError as error:
        raise errors.ClusterError(f"{command[0]}: {error.strerror}; expected a program") from error
    finally:
        if came and store.read(where) is None:
            network.remove(where)
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


@app.command()
def status(
    *, output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table"
) -> None:
    """Show every component: its process and whether it runs."""
    where = _where()
    cluster = store.running(where)
    rows = [_row(where, *component) for component in cluster.components()]
    if output == "json":
        nodes = [entry.model_dump(mode="json") for entry in cluster.nodes]
        document = {
            "kubernetes": cluster.kubernetes,
            "kubeconfig": str(where.kubeconfig),
            "nodes": nodes,
            "components": rows,
        }
        print(json.dumps(document, indent=2))
        return
    table = rich.table.Table("component", "node", "state", "pid", box=None)
    for row in rows:
        table.add_row(*(str(row[name] or "-") for name in ("component", "node", "state", "pid")))
    _console.print(table)


def _row(where: layout.Layout, component: str, node: str | None) -> dict[str, str | int | None]:
    condition = control.condition(where, component, node)
    pid = control.pid(where, component, node) if condition in {"running", "frozen"} else None
    return {"component": component, "node": node, "state": condition, "pid": pid}


def _act(
    act: Callable[[layout.Layout, str, str | None], None], name: str, node: str | None
) -> None:
    where = _where()
    store.running(where)
    act(where, name, node)


@app.command()
def start(component: Component, node: Node = None) -> None:
    """Start a component that was stopped, killed or died, as it was started before."""
    _act(control.start, component, node)


@app.command()
def stop(component: Component, node: Node = None) -> None:
    """End a component in order (SIGTERM) and wait until it is gone."""
    _act(control.stop, component, node)


@app.command()
def kill(component: Component, node: Node = None) -> None:
    """End a component at once (SIGKILL)."""
    _act(control.kill, component, node)


@app.command()
def freeze(component: Component, node: Node = None) -> None:
    """Halt a component where it stands (SIGSTOP)."""
    _act(control.freeze, component, node)


@app.command()
def thaw(component: Component, node: Node = None) -> None:
    """Let a frozen component go on (SIGCONT)."""
    _act(control.thaw, component, node)


@app.command()
def add_node(
    name: Annotated[str, typer.Argument(help="the new node's name")],
    *,
    machine: Machine = "hgx-h100",
    allocator: AllocatorOption = state.Allocator.CONTROLLER,
    label: Annotated[list[str] | None, typer.Option(help="key=value; may repeat")] = None,
    taint: Annotated[list[str] | None, typer.Option(help="key=value:Effect; may repeat")] = None,
    plugin_flag: Annotated[
        list[str] | None, typer.Option(help="a flag of the kubelet plugin; may repeat")
    ] = None,
) -> None:
    """Add a node and wait until it is Ready."""
    new = membership.NewNode(
        name=name,
        machine=machine,
        allocator=allocator,
        labels=plan.parse_labels(label or []),
        taints=tuple(taint or []),
        plugin_flags=tuple(plugin_flag or []),
    )
    with _steps().step(f"Add node {name}", 12):
        membership.add(_where(), new)


@app.command("reboot")
def reboot_(name: Annotated[str, typer.Argument(help="the node's name")]) -> None:
    """Cut a node's power and boot it again; it is Ready some seconds later."""
    with _steps().step(f"Reboot node {name}", 5):
        reboot.reboot(_where(), name)


@app.command()
def remove_node(name: Annotated[str, typer.Argument(help="the node's name")]) -> None:
    """Take a node away as if its machine were gone."""
    with _steps().step(f"Remove node {name}", 3):
        membership.remove(_where(), name)


@app.command()
def build(
    names: Annotated[
        list[str] | None, typer.Argument(help="tool sets; default those of a cluster")
    ] = None,
    *,
    kubernetes: KubernetesOption = None,
) -> None:
    """Fill the cache of programs, and nothing else; a set that cannot be had stops no other.

    RATION_PROGRAMS in the environment is release (official files alone), build (with Go), or auto.
    """
    toolchain.supply_all(_sets(names, kubernetes), _steps())


def _sets(names: list[str] | None, kubernetes: str | None) -> tuple[versions.ToolSet, ...]:
    """Tool sets of these names; those of a line of Kubernetes where none is named."""
    catalogue = versions.load()
    if not names:
        return catalogue.of(catalogue.line(kubernetes))
    sets = catalogue.sets()
    for name in names:
        if name not in sets:
            raise errors.ClusterError(f"no tool set {name}; expected one of {', '.join(sets)}")
    return tuple(sets[name] for name in names)


@app.command()
def pin(
    names: Annotated[list[str] | None, typer.Argument(help="tool sets; default all")] = None,
) -> None:
    """Write tools/SET/go.mod and go.sum again from versions.toml."""
    for tools in _sets(names or list(versions.load().sets()), None):
        with _steps().step(f"Pin {tools.name} {tools.version}", 15):
            toolchain.pin(tools)
