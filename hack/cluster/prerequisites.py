"""What the machine must have: checked first, each missing thing named, packages installed."""

import dataclasses
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hack.cluster import errors, images, progress, shell, supply


@dataclasses.dataclass(frozen=True, slots=True)
class Missing:
    """Something the machine lacks, and the package that brings it (none: a person must act)."""

    what: str
    package: str | None = None


# program -> the Debian or Ubuntu package that holds it
PROGRAMS = {
    "gcc": "gcc",
    "ip": "iproute2",
    "make": "make",
    "mount": "mount",
    "nft": "nftables",
    "runc": "runc",
}
STATIC_C = "libc6-dev"


def ensure(steps: progress.Steps, choices: Sequence[supply.Choice]) -> None:
    """Install what the distribution has; name the rest in one error.

    `choices` are of the tool sets that are not in the cache: what one cannot be had for is named.
    """
    lacking = check(choices)
    packages = sorted({item.package for item in lacking if item.package is not None})
    if packages and _can_install():
        with steps.step(f"Install {', '.join(packages)}", 30):
            _install(packages)
        lacking = check(choices)
    if lacking:
        lines = "\n".join(f"  - {_describe(item)}" for item in lacking)
        raise errors.ClusterError(f"this machine lacks:\n{lines}")


def require(program: str, package: str, steps: progress.Steps) -> None:
    """Install a program's package where it is missing; an error names both."""
    if shutil.which(program) is None and _can_install():
        with steps.step(f"Install {package}", 10):
            _install([package])
    if shutil.which(program) is None:
        raise errors.ClusterError(f"this machine lacks {program}: apt-get install {package}")


def check(choices: Sequence[supply.Choice]) -> tuple[Missing, ...]:
    """Everything that is missing now."""
    return (
        *_system(),
        *(
            Missing(f"the program {program}", package)
            for program, package in PROGRAMS.items()
            if shutil.which(program) is None
        ),
        *_static(),
        *_kernel(),
        *(Missing(choice.refusal) for choice in choices if choice.refusal),
    )


def _describe(item: Missing) -> str:
    return item.what if item.package is None else f"{item.what} (package {item.package})"


def _system() -> tuple[Missing, ...]:
    found = []
    if platform.system() != "Linux":
        found.append(Missing(f"Linux (this is {platform.system()})"))
    if os.geteuid() != 0:
        found.append(Missing("root rights: run it as root or with sudo -E"))
    if shutil.which("umount") is None:
        found.append(Missing("the program umount", "mount"))
    return tuple(found)


def _static() -> tuple[Missing, ...]:
    found = []
    if not images.BUSYBOX.exists() or not is_static(images.BUSYBOX.read_bytes()[:4096]):
        found.append(Missing(f"a static {images.BUSYBOX}", "busybox-static"))
    if shutil.which("gcc") and not _has_static_c():
        found.append(Missing("the C library for static programs", STATIC_C))
    return tuple(found)


def is_static(head: bytes) -> bool:
    """Whether a program's first bytes name no dynamic loader."""
    return head.startswith(b"\x7fELF") and b"/ld-" not in head


def _has_static_c() -> bool:
    answer = shell.run(("gcc", "-print-file-name=libc.a"))
    return Path(answer.strip()).is_absolute()


def _kernel() -> tuple[Missing, ...]:
    found = []
    if not _filesystem("overlay"):
        found.append(Missing("the overlay filesystem in the kernel (modprobe overlay)"))
    if "cgroup" not in Path("/proc/self/mountinfo").read_text():
        found.append(Missing("mounted control groups"))
    return tuple(found)


def _filesystem(name: str) -> bool:
    table = Path("/proc/filesystems")
    if name not in table.read_text().split() and shutil.which("modprobe"):
        subprocess.run(["modprobe", name], check=False, capture_output=True)
    return name in table.read_text().split()


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(packages: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    shell.run(("apt-get", "update", "-qq"), env=environment)
    command = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
    shell.run(command, env=environment)
