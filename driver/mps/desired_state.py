"""Reads the desired files, each only when it has changed."""

import os
from collections.abc import Mapping
from pathlib import Path

from driver import errors
from driver.devices import mps_files
from driver.mps.daemon import reconcile_policy

MOST_FILES = 256
"""More than any machine has GPUs and instances."""
MOST_BYTES = 64 * 1024

_Stamp = tuple[int, int, int]


class DesiredFiles:
    """Goals by key. `misnamed` are files not named `<key>.json`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.misnamed: tuple[str, ...] = ()
        self._cached: dict[str, tuple[_Stamp, reconcile_policy.Goal]] = {}

    def read(self) -> Mapping[str, reconcile_policy.Goal]:
        """Return every file's goal; a file that cannot be read has one too.

        Raises:
            NodeFault: the folder cannot be listed, which says nothing about the goals.
            BadInput: there are too many files, so that some would be taken for absent.
        """
        visible = sorted(name for name in self._names() if not name.startswith("."))
        names = [name for name in visible if _is_key_file(name)]
        self.misnamed = tuple(name for name in visible if name not in names)
        if len(names) > MOST_FILES:
            expected = f"at most {MOST_FILES}"
            raise errors.BadInput(str(self._folder), f"has {len(names)} files", expected)
        entries: dict[str, tuple[_Stamp, reconcile_policy.Goal]] = {}
        for name in names:
            entry = self._read_file(name)
            if entry is not None:
                entries[name.removesuffix(mps_files.SUFFIX)] = entry
        self._cached = entries
        return {key: goal for key, (_, goal) in entries.items()}

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._folder)  # noqa: PTH208 - twenty times a second
        except OSError as e:
            raise errors.NodeFault("list", str(self._folder), str(e)) from e

    def _read_file(self, name: str) -> tuple[_Stamp, reconcile_policy.Goal] | None:
        path = self._folder / name
        try:
            stat = path.stat()
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            cached = self._cached.get(path.stem)
            if cached is not None and cached[0] == stamp:
                return cached
            return stamp, _parse_goal(path)
        except FileNotFoundError:
            return None
        except OSError as e:
            return (0, 0, 0), reconcile_policy.UnreadableFile(f"{path} cannot be read: {e}")


def _parse_goal(path: Path) -> reconcile_policy.Goal:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return reconcile_policy.UnreadableFile(
            f"{path} is too long; expected at most {MOST_BYTES} bytes"
        )
    try:
        desired = mps_files.Desired.parse(data, str(path))
    except errors.BadInput as e:
        return reconcile_policy.UnreadableFile(str(e))
    if desired.key != path.stem:
        return reconcile_policy.UnreadableFile(
            f"{path}.key: is {desired.key!r}; expected {path.stem!r}"
        )
    return reconcile_policy.DesiredDaemon(desired, mps_files.digest(data))


def _is_key_file(name: str) -> bool:
    return name.endswith(mps_files.SUFFIX) and mps_files.is_key(name.removesuffix(mps_files.SUFFIX))
