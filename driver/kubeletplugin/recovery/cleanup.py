"""Removes an uninstalled plugin's files from a node: `python -m` this module.

Files of claims with a record stay, and the record too: their pods may run, and the next plugin ends
them. Everything else is removed: the other records, locks, dead sockets, CDI specs, MPS files.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driver import errors, ids, names
from driver.kubeletplugin.cdi import metadata_files, model, store
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import atomic, mounts

_CLAIMS, _MPS, _TOLD = "claims", "mps", "dra-device-metadata"


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The driver, and its folders on the node, as the plugin's flags name them."""

    driver: str
    kubelet_root: Path
    cdi_root: Path
    state_dir: Path

    @property
    def plugin(self) -> Path:
        """Return the driver's own kubelet folder."""
        return self.kubelet_root / "plugins" / self.driver


def clear_node(node_paths: NodePaths) -> tuple[ids.ClaimUid, ...]:
    """Clear the node; the claims of which everything stays.

    Raises:
        NodeFault: a plugin of the driver runs here, or something cannot be removed.
    """
    listening = (node_paths.plugin, node_paths.kubelet_root / "plugins_registry")
    socket_files = [
        path for folder in listening for path in _driver_sockets(folder, node_paths.driver)
    ]
    for path in socket_files:
        sockets.refuse_if_served(path)
    retained = _recorded_claims(node_paths.state_dir / _CLAIMS)
    specs = store.SpecStore(node_paths.cdi_root, model.cdi_kind(node_paths.driver))
    metadata = metadata_files.MetadataFiles(node_paths.plugin / _TOLD)
    for uid in set(specs.uids()) - set(retained):
        specs.remove(uid)
    for uid in set(metadata.uids()) - set(retained):
        metadata.remove(uid)
    for path in socket_files:
        _remove(path)
    if not retained:
        _unmount_below(node_paths.state_dir / _MPS)
    _empty_folder(node_paths.state_dir, {_CLAIMS, _MPS} if retained else set())
    _empty_folder(node_paths.plugin, {_TOLD} if retained else set())
    if not retained:
        _remove(node_paths.plugin)
    return retained


def _recorded_claims(records: Path) -> tuple[ids.ClaimUid, ...]:
    """Return the claims with a record, even damaged: their changes are not known."""
    stems = (atomic.target_name(path.name).partition(".json")[0] for path in _entries(records))
    return tuple(sorted({ids.ClaimUid(stem) for stem in stems if checkpoint.is_uid(stem)}))


def _driver_sockets(folder: Path, driver: str) -> Iterator[Path]:
    """Yield the sockets of any instance, as named by `sockets.socket_paths`."""
    for path in _entries(folder):
        is_ours = folder.name == driver or path.name.startswith(f"{driver}-")
        if is_ours and path.is_socket():
            yield path


def _empty_folder(folder: Path, excluded: set[str]) -> None:
    for path in _entries(folder):
        if path.name not in excluded:
            _remove(path)


def _entries(folder: Path) -> list[Path]:
    return [folder / name for name in atomic.list_names(folder)]


def _unmount_below(folder: Path) -> None:
    """Unmount the file systems that clients of MPS daemons wrote to, without walking them."""
    try:
        for path in mounts.mounts_below(folder.resolve()):
            mounts.unmount(path)
    except OSError as e:
        raise errors.NodeFault("unmount", str(folder), str(e)) from e


def _remove(path: Path) -> None:
    """Remove a file or a folder with its content; succeeds if missing."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as e:
        raise errors.NodeFault("remove", str(path), str(e)) from e


def main(arguments: Sequence[str]) -> int:
    """Clear the node that the flags describe; the exit code."""
    parser = argparse.ArgumentParser(prog="ration-clearing", description=clear_node.__doc__)
    parser.add_argument("--driver-name", default=names.DRIVER)
    for flag in ("--kubelet-root", "--cdi-root", "--state-dir"):
        parser.add_argument(flag, type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        retained = clear_node(
            NodePaths(
                options.driver_name, options.kubelet_root, options.cdi_root, options.state_dir
            )
        )
    except errors.RationError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    summary = f"what claims {', '.join(retained)} have stays" if retained else "nothing stays"
    sys.stdout.write(f"cleared: {summary}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
