"""Resolves the cluster and the namespace of commands, as kubectl does."""

import os
from pathlib import Path
from typing import Annotated

import typer

from driver import errors
from driver.cli import errors as cli_errors
from driver.kube import client
from driver.kube.http import credentials
from driver.resources.dra import version_support

Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="path of a kubeconfig; default: $KUBECONFIG, ~/.kube/config, else the pod's"),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="Namespace; default: that of the kubeconfig's context, else default.",
        show_default=False,
    ),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")]


def connect(kubeconfig: Path | None) -> client.KubeClient:
    """A client with the caller's rights; tells and exits with 2 where there are none."""
    try:
        return client.KubeClient.connect(kubeconfig or _usual(), "ration-cli")
    except errors.BadInput as e:
        typer.echo(f"no cluster: {e}; name a kubeconfig with --kubeconfig", err=True)
        raise typer.Exit(cli_errors.BAD) from e


def connect_supported(kubeconfig: Path | None) -> client.KubeClient:
    """Connect, and exit with 3 where Kubernetes is below the floor. Raises ApiError."""
    kube = connect(kubeconfig)
    old = version_support.check_version(kube.server_version().git)
    if old is not None:
        cli_errors.stop(
            f"{old}: upgrade it, or ask `ration doctor` what works there", cli_errors.UNREACHED
        )
    return kube


def resolve_namespace(
    namespace: str | None, kubeconfig: Path | None, *, everywhere: bool = False
) -> str | None:
    """The namespace that is meant; None: all of them."""
    if everywhere:
        return None
    return namespace or credentials.namespace(kubeconfig or _usual()) or "default"


def resolve_kubeconfig(kubeconfig: Path | None) -> Path | None:
    """Return the kubeconfig; None: the pod's own account."""
    return kubeconfig or _usual()


def _usual() -> Path | None:
    named = os.environ.get("KUBECONFIG", "")
    if named:
        return Path(named)
    path = Path.home() / ".kube" / "config"
    return path if path.exists() else None
