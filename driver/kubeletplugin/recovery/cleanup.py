"""Removes from a node what an uninstalled plugin left: `python -m` this module.

What belongs to claims with a record stays, the record too: their pods may run, and the next plugin
ends them. All else goes: the other records, locks, dead sockets, CDI specs, MPS files.
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
        """What the kubelet gives the driver for itself."""
        return self.kubelet_root / "plugins" / self.driver


def clear_node(place: NodePaths) -> tuple[ids.ClaimUid, ...]:
    """Clear the node; the claims of which everything stays.

    Raises:
        NodeFault: a plugin of the driver runs here, or something cannot be removed.
    """
    listening = (place.plugin, place.kubelet_root / "plugins_registry")
    found = [path for folder in listening for path in _driver_sockets(folder, place.driver)]
    for path in found:
        sockets.refuse_if_served(path)
    kept = _recorded_claims(place.state_dir / _CLAIMS)
    specs = store.SpecStore(place.cdi_root, model.cdi_kind(place.driver))
    told = metadata_files.MetadataFiles(place.plugin / _TOLD)
    for uid in set(specs.uids()) - set(kept):
        specs.remove(uid)
    for uid in set(told.uids()) - set(kept):
        told.remove(uid)
    for path in found:
        _remove(path)
    if not kept:
        _unmount_below(place.state_dir / _MPS)
    _empty_folder(place.state_dir, {_CLAIMS, _MPS} if kept else set())
    _empty_folder(place.plugin, {_TOLD} if kept else set())
    if not kept:
        _remove(place.plugin)
    return kept


def _recorded_claims(records: Path) -> tuple[ids.ClaimUid, ...]:
    """Claims with a record, be it damaged: what was done for those is not known."""
    stems = (atomic.target_name(path.name).partition(".json")[0] for path in _entries(records))
    return tuple(sorted({ids.ClaimUid(stem) for stem in stems if checkpoint.is_uid(stem)}))


def _driver_sockets(folder: Path, driver: str) -> Iterator[Path]:
    """Those of any instance, under the names that `sockets.paths` gives them."""
    for path in _entries(folder):
        ours = folder.name == driver or path.name.startswith(f"{driver}-")
        if ours and path.is_socket():
            yield path


def _empty_folder(folder: Path, but: set[str]) -> None:
    for path in _entries(folder):
        if path.name not in but:
            _remove(path)


def _entries(folder: Path) -> list[Path]:
    return [folder / name for name in atomic.list_names(folder)]


def _unmount_below(folder: Path) -> None:
    """Take off what clients of MPS daemons wrote to; nobody walks it."""
    try:
        for path in mounts.mounts_below(folder.resolve()):
            mounts.unmount(path)
    except OSError as e:
        raise errors.NodeFault("unmount", str(folder), str(e)) from e


def _remove(path: Path) -> None:
    """Remove a file or a folder with all in it; nothing there is fine."""
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
    given = parser.parse_args(arguments)
    try:
        kept = clear_node(
            NodePaths(given.driver_name, given.kubelet_root, given.cdi_root, given.state_dir)
        )
    except errors.RationError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    words = f"what claims {', '.join(kept)} have stays" if kept else "nothing stays"
    sys.stdout.write(f"cleared: {words}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
