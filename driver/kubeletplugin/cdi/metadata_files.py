"""Files of `device_metadata`: `<claim uid>.<request>.json`, in a folder of the kubelet's.

Like specs they need not outlive the machine's boot, so there is no fsync. A folder per claim, as
the previous version had it, costs more than the file itself; such folders are removed.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from driver import errors, ids
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import atomic, failpoints

_MODE = 0o644
_SUFFIX = ".json"


class MetadataFiles:
    """Files in `directory`, created if missing; the host has the same path. Raises NodeFault."""

    def __init__(
        self, directory: Path, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self.directory = directory
        self._watch = watch

    def path(self, uid: ids.ClaimUid, request: str) -> Path:
        """Return the path of a request's file. Raises BadInput for a UID that is no file name."""
        return self.directory / f"{checkpoint.require_uid(uid)}.{request}{_SUFFIX}"

    def write(self, uid: ids.ClaimUid, files: Mapping[str, bytes]) -> None:
        """Write a claim's files, by request."""
        for request, data in files.items():
            atomic.replace(self.path(uid, request), data, _MODE, self._watch, synced=False)

    def exists(self, uid: ids.ClaimUid, requests: Iterable[str]) -> bool:
        """Return whether the files of these requests exist."""
        return all(self.path(uid, request).is_file() for request in requests)

    def remove(self, uid: ids.ClaimUid, requests: Iterable[str] | None = None) -> None:
        """Remove the claim's files; succeeds if there are none.

        `requests` are those of the claim, if known; otherwise the folder is searched.
        """
        paths = (
            [self.directory / name for name in self._names() if name.startswith(f"{uid}.")]
            if requests is None
            else [self.path(uid, request) for request in requests]
        )
        for path in paths:
            atomic.remove(path, self._watch, synced=False)
        self._remove_folder(self.directory / checkpoint.require_uid(uid))

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims with a file, a temporary one included."""
        uids = {_claim_uid(name) for name in self._names()}
        return tuple(ids.ClaimUid(uid) for uid in sorted(uids) if checkpoint.is_uid(uid))

    def _names(self) -> set[str]:
        return {atomic.target_name(name) for name in atomic.list_names(self.directory)}

    def _remove_folder(self, folder: Path) -> None:
        """Remove a claim's folder of the previous version."""
        if not os.path.lexists(folder):
            return
        try:
            for path in folder.iterdir():
                atomic.remove(path, self._watch, synced=False)
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as e:
            raise errors.NodeFault("remove", str(folder), str(e)) from e


def _claim_uid(name: str) -> str:
    """Return the UID in a file's name: UIDs have no dot."""
    return name.partition(".")[0]
