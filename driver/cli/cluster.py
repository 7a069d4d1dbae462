"""How commands find the cluster: as kubectl does."""

import os
from pathlib import Path
from typing import Annotated

import typer

from driver import errors
from driver.kube import client

Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="path of a kubeconfig; default: $KUBECONFIG, ~/.kube/config, else the pod's"),
]


def connect(kubeconfig: Path | None) -> client.KubeClient:
    """A client with the caller's rights; tells and exits with 2 where there are none."""
    try:
        return client.KubeClient.connect(kubeconfig or _usual(), "ration-cli")
    except errors.BadInput as e:
        typer.echo(f"no cluster: {e}; name a kubeconfig with --kubeconfig", err=True)
        raise typer.Exit(2) from e


def _usual() -> Path | None:
    named = os.environ.get("KUBECONFIG", "")
    if named:
        return Path(named)
    path = Path.home() / ".kube" / "config"
    return path if path.exists() else None
