"""kubectl with the administrator's rights of a kind cluster."""

import shutil

from hack.cluster import errors, shell, toolchain, versions
from hack.kind import layout

_ASK_S = 120.0


def program() -> str:
    """The kubectl on PATH, or the one that the default line of Kubernetes was built with."""
    path = shutil.which("kubectl")
    catalogue = versions.load()
    own = toolchain.folder(catalogue.kubernetes[catalogue.default]) / "kubectl"
    if path is None and not own.exists():
        raise errors.ClusterError(
            "kubectl is neither on PATH nor built: python -m hack.cluster build"
        )
    return path or str(own)


def run(where: layout.Layout, *words: str, standard_input: str | None = None) -> str:
    """What kubectl printed; CommandFailedError with its words if it failed."""
    command = (program(), f"--kubeconfig={where.kubeconfig}", *words)
    return shell.run(command, standard_input=standard_input, timeout=_ASK_S)


def answers(where: layout.Layout) -> bool:
    """Whether the API server is ready."""
    return run(where, "get", "--raw=/readyz") == "ok"


def is_ready(where: layout.Layout) -> bool:
    """Whether every node is Ready."""
    path = '{.items[*].status.conditions[?(@.type=="Ready")].status}'
    states = run(where, "get", "nodes", f"--output=jsonpath={path}").split()
    return bool(states) and set(states) == {"True"}
