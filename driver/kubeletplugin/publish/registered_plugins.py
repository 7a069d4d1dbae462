"""Finds other drivers' plugins that are registered with this node's kubelet under our name.

The kubelet treats plugins of one name as one driver in an update, and calls the newest. A socket's
file name does not tell its owner: ours are named as Kubernetes' own driver library names its. But
our plugins hold a locked file beside the service's socket (sockets.py), and take it before they
answer at a registration socket.
"""

from collections.abc import Iterator
from pathlib import Path

from driver import errors
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.rpc import registration

_ASK_S = 1.0


def find_foreign_plugins(kubelet_root: Path, driver: str, own_socket: Path) -> tuple[str, ...]:
    """Return other drivers' registration sockets under our name; `own_socket` is this process's.

    Raises NodeFault.
    """
    registry = kubelet_root / "plugins_registry"
    try:
        paths = sorted(registry.iterdir()) if registry.is_dir() else []
    except OSError as e:
        raise errors.NodeFault("list", str(registry), str(e)) from e
    return tuple(
        str(path)
        for path in _candidate_sockets(paths, driver)
        if path != own_socket and _is_foreign(path, driver)
    )


def _candidate_sockets(paths: list[Path], driver: str) -> Iterator[Path]:
    """Yield the sockets that may be a driver's of that name, so that no other is queried.

    kubeletplugin/draplugin.go: `<driver>[-<...>]-reg.sock`; `dra-<hash>-reg.sock` for long names.
    """
    return (path for path in paths if path.name.startswith((f"{driver}-", "dra-")))


def _is_foreign(path: Path, driver: str) -> bool:
    identity = registration.query_plugin(path, _ASK_S)
    return (
        identity is not None
        and identity.driver == driver
        and not sockets.is_held(identity.endpoint)
    )
