"""`ration cordon` and `ration uncordon`: no new work on a node's GPUs, or on one GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driver import clock, names
from driver.cli import cluster
from driver.cli import errors as cli_errors
from driver.cli.cluster import Kubeconfig

if TYPE_CHECKING:
    from driver.cli.cordon import api, targets

DETAILS = (
    "A whole node: by a DeviceTaintRule where the API server has those (Kubernetes 1.37), else by "
    f"the annotation {names.CORDON} on the Node. One GPU: by that annotation; the node's plugin "
    "taints everything that the GPU is published as, within some ten seconds, and this waits for "
    "it. Pods without GPUs still come: `kubectl cordon` keeps those away.\n\n"
    "It takes the rights to get nodes, to list and create devicetaintrules.resource.k8s.io, and, "
    "for a GPU, to list resourceslices and to patch nodes.\n\n"
    "  ration cordon gpu-1\n\n"
    "  ration cordon gpu-1/gpu-0000-18-00-0\n\n"
    "  ration cordon gpu-1/GPU-5f0c1c6e-8d5b-4a2f-9a6e-2d6c6f0f8f11 --dry-run\n\n"
    "Exit codes: 0 it is cordoned; 1 the plugin has not taken it up in time; 2 there is no such "
    "node or GPU; 3 the API server refused or was not reached."
)
UNCORDON_DETAILS = (
    "GPUs that were cordoned one by one stay so when their node is uncordoned, and are named.\n\n"
    "  ration uncordon gpu-1\n\n"
    "  ration uncordon gpu-1/gpu-0000-18-00-0\n\n"
    "Exit codes: 0 it is not cordoned any more; 1 the plugin has not taken it up in time; 2 there "
    "is no such node or GPU, or all of its node is cordoned; 3 the API server refused or was not "
    "reached."
)
_TAKEN_UP_S = 30.0

Target = Annotated[
    str, typer.Argument(metavar="NODE[/GPU]", help="A node, or a GPU by name, UUID or PCI address.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
DriverName = Annotated[str, typer.Option(help="driverName, as installed")]
_Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Until the plugin has taken it up.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """What all three commands are told."""

    target: str
    driver: str
    kubeconfig: Path | None


@contextmanager
def at_desk(asked: Asked) -> Iterator[tuple["api.Desk", "targets.Target", frozenset[str]]]:
    """The target as it is found, with its other names; failures end the command."""
    # Loaded where it is used: other commands need none of it.
    from driver.cli.cordon import api, targets  # noqa: PLC0415

    with cli_errors.told():
        wanted = targets.parse(asked.target)
        kube = cluster.connect_new_enough(asked.kubeconfig)
        at = api.Desk(kube, asked.driver, clock.SystemClock())
        found, also = at.found(wanted)
        yield at, found, also


def cordon(
    target: Target,
    *,
    dry_run: DryRun = False,
    wait: _Wait = True,
    driver_name: DriverName = names.DRIVER,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Let nothing new go on a node's GPUs, or on one GPU."""
    with at_desk(Asked(target, driver_name, kubeconfig)) as (at, found, _):
        mark(at, found, driver_name, dry=dry_run)
        if wait and not dry_run:
            _settle(at, found, cordoned=True)


def uncordon(
    target: Target,
    *,
    dry_run: DryRun = False,
    wait: _Wait = True,
    driver_name: DriverName = names.DRIVER,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Let new work on a node's GPUs, or on one GPU, again."""
    from driver.cli.cordon import marks  # noqa: PLC0415

    with at_desk(Asked(target, driver_name, kubeconfig)) as (at, found, also):
        writes = at.carry_out(
            lambda now: marks.uncordon_writes(found, now, also), found.node, dry=dry_run
        )
        _tell(writes, f"{found} uncordoned", f"{found} was not cordoned", dry=dry_run)
        alone = sorted(at.now(found.node).annotation - {names.ALL})
        if alone and not found.gpu:
            again = ", ".join(f"ration uncordon {found.node}/{one}" for one in alone)
            typer.echo(f"cordoned for themselves, still: {', '.join(alone)} ({again})", err=True)
        elif wait and not dry_run:
            _settle(at, found, cordoned=False)


def mark(
    at: "api.Desk", found: "targets.Target", driver: str, *, dry: bool, err: bool = False
) -> None:
    """Cordon it, and say so, with `err` on standard error."""
    from driver.cli.cordon import marks  # noqa: PLC0415

    writes = at.carry_out(lambda now: marks.cordon_writes(found, now, driver), found.node, dry=dry)
    _tell(writes, f"{found} cordoned", f"{found} is already cordoned", dry=dry, err=err)


def _tell(
    writes: tuple[object, ...], done: str, nothing: str, *, dry: bool, err: bool = False
) -> None:
    if not writes:
        typer.echo(nothing, err=err)
        return
    typer.echo(f"{done}{' (dry run)' if dry else ''}", err=err)
    for one in writes if dry else ():
        typer.echo(f"would {one}", err=err)


def _settle(at: "api.Desk", found: "targets.Target", *, cordoned: bool) -> None:
    """Wait for the plugin where it is the one to tell; a rule holds without it."""
    if cordoned and not found.gpu and at.now(found.node).rule:
        return
    if not at.settles(found, cordoned=cordoned, within_s=_TAKEN_UP_S):
        cli_errors.stop(
            f"{found}: the node's plugin has not taken it up after {_TAKEN_UP_S:.0f} s, and does "
            f"so once it runs: ration doctor --node {found.node}",
            cli_errors.NO,
        )
