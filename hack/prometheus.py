"""Debian's Prometheus: `promtool` for the alerts' tests, `prometheus` for the proof on a cluster.

The package is unpacked into the cache and not installed: an installed one may start a daemon.
"""

import os
import shutil
import tempfile
from pathlib import Path

from hack.cluster import errors, shell, toolchain

PACKAGE = "prometheus"
_DOWNLOAD_S = 120.0


def program(name: str) -> Path:
    """`prometheus` or `promtool`: the machine's own, else the package's.

    Raises ClusterError where it cannot be had.
    """
    own = shutil.which(name)
    if own is not None:
        return Path(own)
    kept = toolchain.cache_root() / "debian" / PACKAGE
    if not (kept / "usr/bin" / name).exists():
        _unpack(kept)
    return kept / "usr/bin" / name


def _unpack(to: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise errors.ClusterError(
            f"this machine lacks Prometheus, and apt-get to fetch Debian's package {PACKAGE}"
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as work:
        _download(Path(work))
        (archive,) = Path(work).glob(f"{PACKAGE}_*.deb")
        made = Path(work) / "made"
        shell.run(("dpkg-deb", "--extract", str(archive), str(made)))
        shutil.rmtree(to, ignore_errors=True)
        made.rename(to)


def _download(work: Path) -> None:
    command = ("apt-get", "download", "-qq", PACKAGE)
    try:
        shell.run(command, cwd=work, timeout=_DOWNLOAD_S)
    except errors.CommandFailedError:
        if os.geteuid() != 0:
            raise
        shell.run(("apt-get", "update", "-qq"), timeout=_DOWNLOAD_S)
        shell.run(command, cwd=work, timeout=_DOWNLOAD_S)
