"""The files that `device_metadata` makes: a folder a claim, by UID, under one of the kubelet's.

As specs they need not outlive the machine's boot, so there is no fsync.
"""

from collections.abc import Mapping
from pathlib import Path

from driver import errors, ids
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import atomic, failpoints

_MODE = 0o644
_SUFFIX = ".json"


class MetadataFiles:
    """In `directory`, which is made when missing; a path of the host's too. Raises NodeFault."""

    def __init__(
        self, directory: Path, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self.directory = directory
        self._watch = watch

    def path(self, uid: ids.ClaimUid, request: str) -> Path:
        """Where the file of a request is. Raises BadInput for a UID that is no file name."""
        return self._folder(uid) / f"{request}{_SUFFIX}"

    def write(self, uid: ids.ClaimUid, files: Mapping[str, bytes]) -> None:
        """Put a claim's files there, by request."""
        for request, data in files.items():
            atomic.replace(self.path(uid, request), data, _MODE, self._watch, synced=False)

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Whether the claim has files."""
        return self._folder(uid).is_dir()

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's files; none to remove is fine."""
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
        """Claims with a folder."""
        found = atomic.list_names(self.directory)
        return tuple(ids.ClaimUid(name) for name in found if checkpoint.is_uid(name))

    def _folder(self, uid: ids.ClaimUid) -> Path:
        return self.directory / checkpoint.require_uid(uid)
