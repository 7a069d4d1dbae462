"""The driver as users install it: by its chart, with real helm, as pods."""

import os
from pathlib import Path

from hack.chart import helm
from hack.cluster import layout, shell

VALUES = Path(__file__).with_name("pods.yaml")
_WAIT_S = 180


WAITING = ("--wait=legacy", f"--timeout={_WAIT_S}s")
"""Helm's newer way to wait never ends after an update that leaves MPS supervisors alone."""


def install(where: layout.Layout, *flags: str, of: Path = helm.CHART) -> None:
    """Install or upgrade the release by a chart, and wait until its pods are ready.

    `flags` are helm's. Raises CommandFailedError with helm's words.
    """
    wanted = (f"--namespace={helm.NAMESPACE}", "--create-namespace", f"--values={VALUES}")
    run(where, "upgrade", "--install", helm.RELEASE, str(of), *wanted, *WAITING, *flags)


def run(where: layout.Layout, *arguments: str) -> str:
    """What helm printed, of this cluster. Raises CommandFailedError with its words."""
    environment = {**os.environ, "KUBECONFIG": str(where.kubeconfig)}
    return shell.run((str(helm.program()), *arguments), env=environment, timeout=2 * _WAIT_S)
