"""`ration cordon` and `ration uncordon`: no new work on a node's GPUs, or on one GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driver import clock
from driver.cli import cluster
from driver.cli import errors as cli_errors
from driver.cli.cluster import Kubeconfig

if TYPE_CHECKING:
    from driver.cli.cordon import api, targets

DETAILS = (
    " on the Node. One GPU: by that annotation; the node's plugin taints everything that "
    "the GPU is published as, within some ten seconds, and this waits for it. Pods "
    "without GPUs still come: `kubectl cordon` keeps those away.\n\n"
    "GPUs of another DRA driver, where Ration's plugin publishes none, and all devices of "
    "--driver-name: by DeviceTaintRules alone.\n\n"
    "Requires the rights to get nodes, to list and create "
    "devicetaintrules.resource.k8s.io and, for one GPU, to list resourceslices and patch "
    "nodes.\n\n"
    "  ration cordon gpu-1\n\n"
    "  ration cordon gpu-1/gpu-0000-18-00-0\n\n"
    "  ration cordon gpu-1/GPU-5f0c1c6e-8d5b-4a2f-9a6e-2d6c6f0f8f11 --dry-run\n\n"
    "  ration cordon gpu-1 --driver-name nic.example.com\n\n"
    "Exit codes: 0 it is cordoned; 1 the plugin has not taken it up in time; 2 there is "
    "no such node or GPU; 3 the API server refused or was not reached."
)
UNCORDON_DETAILS = (
    "GPUs that were cordoned individually stay cordoned when their node is uncordoned, "
    "and are reported.\n\n"
    "  ration uncordon gpu-1\n\n"
    "  ration uncordon gpu-1/gpu-0000-18-00-0\n\n"
    "Exit codes: 0 it is not cordoned any more; 1 the plugin has not taken it up in time; "
    "2 there is no such node or GPU, or all of its node is cordoned; 3 the API server "
    "refused or was not reached."
)
_TAKEN_UP_S = 30.0

Target = Annotated[
    str, typer.Argument(metavar="NODE[/GPU]", help="A node, or a GPU by name, UUID or PCI address.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the actions without executing them.")
]
DriverName = Annotated[
    str, typer.Option(help="DRA driver of the devices; default: that of the node's GPUs.")
]
_Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until the plugin has applied it.")
]


@dataclass(frozen=True, slots=True)
class CordonOptions:
    """Options of all three commands."""

    target: str
    driver: str
    kubeconfig: Path | None


@contextmanager
def open_api(
    cordon_options: CordonOptions,
) -> Iterator[tuple["api.CordonApi", "targets.TargetDevices"]]:
    """The devices of the target; failures end the command."""
    # Loaded where it is used: other commands need none of it.
    from driver.cli.cordon import api, targets  # noqa: PLC0415

    with cli_errors.exit_on_error():
        desired = targets.parse(cordon_options.target)
        kube = cluster.connect_supported(cordon_options.kubeconfig)
        cluster_api = api.CordonApi(kube, clock.SystemClock())
        yield cluster_api, cluster_api.resolve(desired, cordon_options.driver)


def cordon(
    target: Target,
    *,
    dry_run: DryRun = False,
    wait: _Wait = True,
    driver_name: DriverName = "",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Let nothing new go on a node's GPUs, or on one GPU."""
    with open_api(CordonOptions(target, driver_name, kubeconfig)) as (cluster_api, devices):
        mark(cluster_api, devices, dry=dry_run)
        if wait and not dry_run:
            _settle(cluster_api, devices, cordoned=True)


def uncordon(
    target: Target,
    *,
    dry_run: DryRun = False,
    wait: _Wait = True,
    driver_name: DriverName = "",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Let new work on a node's GPUs, or on one GPU, again."""
    from driver.cli.cordon import marks  # noqa: PLC0415

    with open_api(CordonOptions(target, driver_name, kubeconfig)) as (cluster_api, devices):
        result = devices.target
        writes = cluster_api.carry_out(marks.uncordon_writes, devices, dry=dry_run)
        _tell(writes, f"{result} uncordoned", f"{result} was not cordoned", dry=dry_run)
        alone = sorted(cluster_api.read_marks(devices).gpus)
        if alone and not result.gpu:
            again = ", ".join(f"ration uncordon {result.node}/{item}" for item in alone)
            typer.echo(f"cordoned for themselves, still: {', '.join(alone)} ({again})", err=True)
        elif wait and not dry_run:
            _settle(cluster_api, devices, cordoned=False)


def mark(
    cluster_api: "api.CordonApi",
    devices: "targets.TargetDevices",
    *,
    dry: bool,
    err: bool = False,
) -> None:
    """Cordon it, and say so, with `err` on standard error."""
    from driver.cli.cordon import marks  # noqa: PLC0415

    target = devices.target
    writes = cluster_api.carry_out(marks.cordon_writes, devices, dry=dry)
    _tell(writes, f"{target} cordoned", f"{target} is already cordoned", dry=dry, err=err)


def _tell(
    writes: tuple[object, ...], done: str, nothing: str, *, dry: bool, err: bool = False
) -> None:
    if not writes:
        typer.echo(nothing, err=err)
        return
    typer.echo(f"{done}{' (dry run)' if dry else ''}", err=err)
    for item in writes if dry else ():
        typer.echo(f"would {item}", err=err)


def _settle(
    cluster_api: "api.CordonApi", devices: "targets.TargetDevices", *, cordoned: bool
) -> None:
    """Wait for the plugin where it is the one to tell; a rule holds without it."""
    target = devices.target
    if not devices.is_own or (cordoned and not target.gpu and cluster_api.read_marks(devices).rule):
        return
    if not cluster_api.wait_published(devices, cordoned=cordoned, within_s=_TAKEN_UP_S):
        cli_errors.stop(
            f"{target}: the node's plugin has not taken it up after {_TAKEN_UP_S:.0f} s, and does "
            f"so once it runs: ration doctor --node {target.node}",
            cli_errors.NO,
        )
