"""CDI spec files: one per claim, `<vendor>-<class>_<claim uid>.json`, written atomically.

They need not outlive the machine's boot, so there is no fsync: a record of another boot has its
spec rewritten, a spec without a record is removed (recovery), and the usual folder is a tmpfs.
"""

import os
from pathlib import Path

from driver import errors, ids
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import atomic, failpoints

_MODE = 0o644
_SUFFIX = ".json"


class SpecStore:
    """The spec files of `kind` in `directory`, created if missing. Raises NodeFault."""

    def __init__(
        self, directory: Path, kind: str, watch: failpoints.Observer = failpoints.NO_OBSERVER
    ) -> None:
        self._directory = directory
        self._prefix = f"{kind.replace('/', '-')}_"
        self._watch = watch

    def path(self, uid: ids.ClaimUid) -> Path:
        """Return the path of the claim's spec. Raises BadInput for a UID that is no file name."""
        return self._directory / f"{self._prefix}{checkpoint.require_uid(uid)}{_SUFFIX}"

    def write(self, uid: ids.ClaimUid, data: bytes) -> None:
        """Write the claim's spec."""
        atomic.replace(self.path(uid), data, _MODE, self._watch, synced=False)

    def probe(self) -> None:
        """Check that a spec could be written, without writing: a full disk is not detected."""
        ancestor = next(
            path for path in (self._directory, *self._directory.parents) if path.exists()
        )
        if not (ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)):
            raise errors.NodeFault("write to", str(ancestor), "is no folder that can be written to")

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Return whether the claim's spec exists."""
        return self.path(uid).is_file()

    def read(self, uid: ids.ClaimUid) -> bytes | None:
        """Return the claim's spec; None if there is none."""
        return atomic.read(self.path(uid))

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's spec; succeeds if there is none."""
        atomic.remove(self.path(uid), self._watch, synced=False)

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims with a spec of ours, a temporary one included."""
        names = {atomic.target_name(name) for name in atomic.list_names(self._directory)}
        stems = (
            name.removeprefix(self._prefix).removesuffix(_SUFFIX)
            for name in names
            if name.startswith(self._prefix) and name.endswith(_SUFFIX)
        )
        return tuple(sorted(ids.ClaimUid(stem) for stem in stems if checkpoint.is_uid(stem)))
