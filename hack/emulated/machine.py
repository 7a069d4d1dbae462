"""A processor emulated for one folder: qemu runs its programs in namespaces of their own.

The kernel starts the emulator for each foreign program (binfmt_misc). It is told so inside a user
namespace alone, which takes Linux 6.7: nothing of the machine changes, and all ends with the
command.
The emulator shows programs of arm64 on this machine's kernel: what a kernel of arm64, its page size
or its devices do differently is not tried.
"""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hack import debian
from hack.cluster import errors, releases, shell, toolchain

ARCHITECTURE: Final = "arm64"
_SUITE: Final = "bookworm"
_PACKAGE: Final = "qemu-user-static"
_PROGRAM: Final = "usr/bin/qemu-aarch64-static"
_TOOLS: Final = ("unshare", "mount", "chroot")
_NAMESPACES: Final = (
    "unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child",
)  # fmt: skip
_HANDLERS: Final = "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc"
_MAGIC: Final = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
"""The head of a program (ELF) of 64 bits, little-endian, machine 183 (AArch64)."""
_MASK: Final = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
_ENTER: Final = f"""set -e
root=$1 emulator=$2
shift 2
{_HANDLERS}
printf %s ":{ARCHITECTURE}:M::{_MAGIC}:{_MASK}:$emulator:F" > /proc/sys/fs/binfmt_misc/register
mkdir -p "$root/dev" "$root/proc"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def emulator() -> Path:
    """Have the emulator in the cache. Raises ClusterError, whose text says why it cannot be had."""
    lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if lacking:
        raise errors.ClusterError(f"this machine has no {' and no '.join(lacking)}")
    try:
        shell.run((*_NAMESPACES, "sh", "-c", _HANDLERS))
    except errors.CommandFailedError as error:
        raise errors.ClusterError(
            "this kernel lets no user namespace name an emulator, which takes Linux 6.7 and user "
            f"namespaces: {error.output.strip()}"
        ) from error
    folder = toolchain.cache_root() / "emulator" / f"qemu-{_SUITE}"
    return toolchain.keep(folder, functools.partial(_fetch, releases.architecture())) / _PROGRAM


def _fetch(architecture: str, to: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ration-debian-") as work:
        release = debian.Release(_SUITE, architecture, present=("binfmt-support",))
        for file in debian.Archive(release, Path(work)).closure((_PACKAGE,)):
            debian.unpack(file, to)


def run(
    root: Path, command: Sequence[str], environment: Mapping[str, str], *, silent: bool = False
) -> int:
    """Run a program of `root`, as root of its own namespace; its exit code.

    It writes to this terminal; a silent one has its errors alone written there.
    """
    inside = ("sh", "-c", _ENTER, "sh", str(root), str(emulator()), *command)
    variables = {**environment, "PATH": _PATH}
    output = subprocess.DEVNULL if silent else None
    done = subprocess.run((*_NAMESPACES, *inside), env=variables, check=False, stdout=output)
    return done.returncode
