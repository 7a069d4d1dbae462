"""Other drivers' plugins that are registered with this node's kubelet under our name.

The kubelet takes several plugins of one name for one driver at an update, and calls the newest.
Files do not tell whose a socket is: ours are named as Kubernetes' own library for drivers names
its. But a plugin of ours holds a locked file beside its service's socket (sockets.py), and one that
answers at a registration socket holds it already.
"""

from collections.abc import Iterator
from pathlib import Path

from driver import errors
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.rpc import registration

_ASK_S = 1.0


def find_foreign_plugins(kubelet_root: Path, driver: str, own: Path) -> tuple[str, ...]:
    """The registration sockets of others that answer to our name; `own` is this process's.

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
        if path != own and _is_foreign(path, driver)
    )


def _candidate_sockets(paths: list[Path], driver: str) -> Iterator[Path]:
    """Those that may be a driver's of that name, so that no other plugin is asked for nothing.

    kubeletplugin/draplugin.go: `<driver>[-<...>]-reg.sock`; `dra-<hash>-reg.sock` for long names.
    """
    return (path for path in paths if path.name.startswith((f"{driver}-", "dra-")))


def _is_foreign(path: Path, driver: str) -> bool:
    told = registration.query_plugin(path, _ASK_S)
    return told is not None and told.driver == driver and not sockets.is_held(told.endpoint)
