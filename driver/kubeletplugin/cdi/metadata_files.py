"""Files of `device_metadata`: one folder per claim, by UID, under one of the kubelet's.

Like specs they need not outlive the machine's boot, so there is no fsync.
"""

from collections.abc import Mapping
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
        return self._folder(uid) / f"{request}{_SUFFIX}"

    def write(self, uid: ids.ClaimUid, files: Mapping[str, bytes]) -> None:
        """Write a claim's files, by request."""
        for request, data in files.items():
            atomic.replace(self.path(uid, request), data, _MODE, self._watch, synced=False)

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Return whether the claim has files."""
        return self._folder(uid).is_dir()

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's files; succeeds if there are none."""
        folder = self._folder(uid)
        try:
            for path in folder.iterdir():
                atomic.remove(path, self._watch, synced=False)
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as e:
            raise errors.NodeFault("remove", str(folder), str(e)) from e

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims with a folder."""
        names = atomic.list_names(self.directory)
        return tuple(ids.ClaimUid(name) for name in names if checkpoint.is_uid(name))

    def _folder(self, uid: ids.ClaimUid) -> Path:
        return self.directory / checkpoint.require_uid(uid)
