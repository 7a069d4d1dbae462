"""`ration doctor`: what is wrong, and what to do about it."""

import os
import platform
from pathlib import Path
from typing import Annotated

import typer

from driver import clock, errors, names
from driver.cli import cluster
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.doctor import checks, collect
from driver.cli.doctor import host as node_itself
from driver.cli.doctor.checks import findings
from driver.cli.doctor.checks import host as of_host
from driver.runtime.files import driver_search

DETAILS = (
    "Reads from the API server only and changes nothing. Checks of the cluster: "
    "Kubernetes version and feature gates, DeviceClasses, a leading controller, readiness "
    "and images of the pods, their RBAC rights, the rules of managed drivers, and the webhook's "
    "certificates. Checks of each node with GPUs: its published devices or the plugin's problem, "
    "its allocator, and conflicting agents: a driver of the same name, a device plugin, a MIG "
    "manager.\n\n"
    "With --host it checks the local machine without the API server: the location of the "
    "NVIDIA driver, its device files and their links in /dev/char, the cgroup driver, "
    "CDI, and the version of the container toolkit's hook. In the plugin's pod the host "
    "is mounted at /host.\n\n"
    "ok: passed. note: informational. wrong: see the fix. not "
    "seen: you lack the right to read it, or there was no response.\n\n"
    "  ration doctor\n\n"
    "  ration doctor --node gpu-7 --problems-only\n\n"
    "  ration doctor -o json\n\n"
    "  kubectl -n ration-system exec POD -- python -m driver.cli doctor --host "
    "--host-root /host\n\n"
    "Exit codes: 0 nothing is wrong; 1 something is; 2 there is no kubeconfig or no such "
    "folder; 3 not all could be seen."
)
_STYLES = {"wrong": "red", "not seen": "yellow", "ok": "green"}
_Host = Annotated[
    bool, typer.Option("--host", help="check the local machine, a node, instead of the cluster")
]
_HostRoot = Annotated[
    Path,
    typer.Option(help="with --host: root of the node's file system; /host in the plugin's pod"),
]
_DriverRoot = Annotated[
    str, typer.Option(help="with --host: the plugin's --driver-root, as seen by this process")
]


def examine(  # noqa: PLR0913 - the options of a command
    node: Annotated[str, typer.Option(help="check only this node, and the cluster")] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="namespace in which the chart is installed")
    ] = "ration-system",
    driver_name: Annotated[
        str, typer.Option(help="name of the DRA driver, as installed")
    ] = names.DRIVER,
    kubeconfig: cluster.Kubeconfig = None,
    *,
    problems_only: Annotated[
        bool, typer.Option("--problems-only", help="omit checks that passed")
    ] = False,
    host: _Host = False,
    host_root: _HostRoot = Path("/"),
    driver_root: _DriverRoot = driver_search.AUTO,
    output: out.Output = out.Format.TABLE,
) -> None:
    """Look for what keeps GPUs from being given out, and what to do about it."""
    if host:
        with cli_errors.exit_on_error():
            result = _of_host(host_root, driver_root, node)
    else:
        seen = collect.FactCollector(cluster.connect(kubeconfig)).collect(
            driver_name, namespace, node, clock.SystemClock().now()
        )
        result = checks.run(seen)
    shown = [
        finding
        for finding in result
        if not problems_only or finding.state is not findings.State.FINE
    ]
    out.show_answer(build_answer(shown), output)
    raise typer.Exit(findings.exit_code(result))


def build_answer(result: list[findings.Finding]) -> out.Answer:
    """Return the printed answer."""
    rows = [finding.row() for finding in result]
    columns = tuple(
        out.Column(name.upper(), blank="", styles=_STYLES if name == "state" else {})
        for name in ("state", "where", "check", "found", "fix")
    )
    return out.Answer(rows, (out.Table(columns, [tuple(row.values()) for row in rows]),))


def _of_host(root: Path, driver_root: str, node: str) -> tuple[findings.Finding, ...]:
    """Raises BadInput where the root is none."""
    if not root.is_dir():
        raise errors.BadInput("--host-root", f"{root} is no folder", "a node's root")
    setting: driver_search.Setting = (
        driver_search.AUTO if driver_root == driver_search.AUTO else Path(driver_root)
    )
    name = node or os.environ.get("NODE_NAME") or platform.node()
    return tuple(of_host.examine(node_itself.collect_host(root, setting, name)))
