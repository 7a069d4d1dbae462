"""SHA256SUMS over the files of a release, and its signature by a key of SSH."""

import hashlib
from pathlib import Path

from hack.cluster import shell

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"
NAMESPACE = "file"
"""Namespace of SSH signatures (ssh-keygen(1), -Y): verification has to name the same."""


def sha256(path: Path) -> str:
    """Return the digest of a file, as hexadecimal digits."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def write(folder: Path) -> None:
    """Write SHA256SUMS over all other files of the folder, as `sha256sum --check` reads it."""
    paths = (path for path in sorted(folder.iterdir()) if path.name not in (SUMS, SIGNATURE))
    (folder / SUMS).write_text("".join(f"{sha256(path)}  {path.name}\n" for path in paths))


def sign(folder: Path, key: Path) -> None:
    """Sign SHA256SUMS with a private key of SSH; SHA256SUMS.sig comes to lie beside it.

    Raises CommandFailedError where ssh-keygen refuses the key.
    """
    (folder / SIGNATURE).unlink(missing_ok=True)
    sums = str(folder / SUMS)
    shell.run(("ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), sums))
