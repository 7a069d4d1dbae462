"""Debian's packages, had by the machine's package manager without touching the machine.

Lists, caches and states lie in a folder of the caller's: nothing of the machine's settings or
packages is changed. Where the mirror lies the machine says.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.cluster import errors, shell

TUPLES: Final = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
"""What Debian calls the folders of libraries of a processor."""
RECORDS: Final = Path("var/lib/dpkg/status.d")
"""A file for each package, where scanners of images without a package manager look."""
RELEASE: Final = Path("usr/lib/os-release")
_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_TOOLS: Final = ("apt-get", "dpkg-deb")
_DOWNLOAD_S: Final = 300.0
_FIELDS: Final = (
    "Package: ${Package}\\nVersion: ${Version}\\nArchitecture: ${Architecture}\\n"
    "Source: ${source:Package} (${source:Version})\\n\\n"
)
_MAIN, _SECURITY = "Debian", "Debian-Security"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Debian for one processor, as the package manager is to see it."""

    suite: str
    architecture: str
    components: str = "main"
    present: Sequence[str] = ()
    """Packages that count as installed: neither they nor what they alone need is fetched."""


class Archive:
    """A release's packages, by lists that lie in `work`.

    Raises ClusterError, whose text says why not, where they cannot be had.
    """

    def __init__(self, release: Release, work: Path) -> None:
        lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if lacking:
            raise errors.ClusterError(f"this machine has no {' and no '.join(lacking)}")
        self._work = work
        self._options = tuple(_options(release, work))
        self._apt("update", "-qq")

    def download(self, name: str, version: str) -> Path:
        """Fetch one package of that version; its file."""
        self._apt("download", "-qq", f"{name}={version}")
        (file,) = self._work.glob(f"{name}_*.deb")
        return file

    def closure(self, names: Sequence[str]) -> list[Path]:
        """Fetch the newest of packages and of all that they need; their files, by name."""
        flags = ("--download-only", "--no-install-recommends", "--yes", "-qq")
        self._apt("install", *flags, *names)
        return sorted((self._work / "cache" / "archives").glob("*.deb"))

    def newest(self, names: Sequence[str]) -> dict[str, str]:
        """Read the newest version of each package that the lists have, security updates too."""
        command = ("apt-cache", *self._options, "policy", *names)
        text = shell.run(command, cwd=self._work)
        candidates = re.findall(r"^(\S+):\n(?:.*\n)  Candidate: (\S+)$", text, re.MULTILINE)
        return {name: version for name, version in candidates if version != "(none)"}

    def _apt(self, *words: str) -> None:
        command = ("apt-get", *self._options, *words)
        shell.run(command, cwd=self._work, timeout=_DOWNLOAD_S)


def unpack(file: Path, root: Path) -> None:
    """Lay out the files of a package below `root`; none of its scripts is run."""
    shell.run(("dpkg-deb", "--extract", str(file), str(root)))


def control(file: Path) -> str:
    """Read the fields of a package."""
    return shell.run(("dpkg-deb", "--field", str(file)))


def is_older(version: str, other: str) -> bool:
    """Compare two versions as the package manager does."""
    command = ("dpkg", "--compare-versions", version, "lt", other)
    return subprocess.run(command, check=False).returncode == 0


def owners(files: Sequence[Path]) -> dict[str, str]:
    """Read which of this machine's packages own these files, and fields of each, by name.

    Empty on a machine that is not Debian's.
    """
    if shutil.which("dpkg-query") is None:
        return {}
    # A system whose /lib is a link still names some files by it, and others by what it leads to.
    patterns = {str(path) for file in files for path in (file, file.resolve(), _merged(file))}
    text = shell.run(("dpkg-query", "--search", *sorted(patterns)), ends=(0, 1))
    names = sorted({line.partition(": ")[0] for line in text.splitlines() if line})
    if not names:
        return {}
    stanzas = shell.run(("dpkg-query", "--show", f"--showformat={_FIELDS}", *names))
    return {
        stanza.partition("\n")[0].removeprefix("Package: "): f"{stanza}\n"
        for stanza in stanzas.strip().split("\n\n")
    }


def _merged(file: Path) -> Path:
    return Path("/usr") / file.relative_to("/")


def _options(release: Release, work: Path) -> Iterator[str]:
    """Yield those of apt: all that it reads or writes is below `work`."""
    listed, status = work / "sources.list", work / "status"
    listed.write_text("".join(_sources(release)))
    status.write_text("".join(_installed(name, release.architecture) for name in release.present))
    for part in ("lists/partial", "cache/archives/partial"):
        (work / part).mkdir(parents=True)
    settings = {
        "APT::Architecture": release.architecture,
        "APT::Architectures::": release.architecture,
        "Dir::Etc::SourceList": listed,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": work,
        "Dir::State::Lists": work / "lists",
        "Dir::State::status": status,
        "Dir::Cache": work / "cache",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    yield from (f"--option={name}={value}" for name, value in settings.items())


def _sources(release: Release) -> Iterator[str]:
    mirrors = _mirrors()
    if _MAIN not in mirrors:
        raise errors.ClusterError("this machine's package manager has no mirror of Debian")
    yield f"deb [signed-by={_KEYS}] {mirrors[_MAIN]} {release.suite} {release.components}\n"
    if _SECURITY in mirrors:
        suite = f"{release.suite}-security"
        yield f"deb [signed-by={_KEYS}] {mirrors[_SECURITY]} {suite} {release.components}\n"


def _mirrors() -> dict[str, str]:
    """The machine's own, by their labels."""
    words = "$(REPO_URI) $(ORIGIN) $(LABEL)"
    text = shell.run(("apt-get", "indextargets", "--format", words, "Created-By: Packages"))
    rows = [line.split(maxsplit=2) for line in text.splitlines()]
    return {row[2]: row[0] for row in reversed(rows) if row[1:2] == [_MAIN]}


def _installed(name: str, architecture: str) -> str:
    return (
        f"Package: {name}\nStatus: install ok installed\nArchitecture: {architecture}\n"
        "Multi-Arch: foreign\nVersion: 9999\nMaintainer: nobody\nDescription: none\n\n"
    )
