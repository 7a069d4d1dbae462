"""CDI spec files: one a claim, `<vendor>-<class>_<claim uid>.json`, whole or not there at all.

They need not outlive the machine's boot, so there is no fsync: a record of another boot has its
spec written anew, a spec without a record is removed (recovery), and the usual folder is a tmpfs.
"""

import os
from pathlib import Path

from driver import errors, ids
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import atomic, failpoints

_MODE = 0o644
_SUFFIX = ".json"


class SpecStore:
    """The spec files of `kind` in `directory`, which is made when missing. Raises NodeFault."""

    def __init__(
        self, directory: Path, kind: str, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self._directory = directory
        self._prefix = f"{kind.replace('/', '-')}_"
        self._watch = watch

    def path(self, uid: ids.ClaimUid) -> Path:
        """Where the claim's spec is. Raises BadInput for a UID that is no file name."""
        return self._directory / f"{self._prefix}{checkpoint.require_uid(uid)}{_SUFFIX}"

    def write(self, uid: ids.ClaimUid, data: bytes) -> None:
        """Put the claim's spec there."""
        atomic.replace(self.path(uid), data, _MODE, self._watch, synced=False)

    def probe(self) -> None:
        """Look whether a spec could be written, without writing: a full disk is not seen."""
        there = next(one for one in (self._directory, *self._directory.parents) if one.exists())
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            raise errors.NodeFault("write to", str(there), "is no folder that can be written to")

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Whether the claim's spec is there."""
        return self.path(uid).is_file()

    def read(self, uid: ids.ClaimUid) -> bytes | None:
        """The claim's spec as it stands; None when there is none."""
        return atomic.read(self.path(uid))

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's spec; none to remove is fine."""
        atomic.remove(self.path(uid), self._watch, synced=False)

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Claims with a spec of ours, a temporary one included."""
        names = {atomic.target_name(name) for name in atomic.list_names(self._directory)}
        stems = (
            name.removeprefix(self._prefix).removesuffix(_SUFFIX)
            for name in names
            if name.startswith(self._prefix) and name.endswith(_SUFFIX)
        )
        return tuple(sorted(ids.ClaimUid(stem) for stem in stems if checkpoint.is_uid(stem)))
