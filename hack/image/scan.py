"""Checks of an image's files that take no database.

Rights that a file should not have; programs that the image is to be without; keys; bytecode that is
not its source's, which Python would run unseen; files of packages that no package brought, or
brought otherwise; packages that the lock does not name, or names in another version.
"""

import base64
import csv
import hashlib
import importlib.util
import posixpath
import re
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hack.image import archive

Content = Callable[[], bytes]
"""Reads a file when it is asked for."""
_SHELLS: Final = frozenset(
    ("apt", "apt-get", "ash", "bash", "busybox", "dash", "dpkg", "pip", "pip3", "sh", "su", "sudo")
)
_PROGRAMS: Final = re.compile(r"(usr/)?(local/)?s?bin/([^/]+)")
_CACHES: Final = re.compile(r"(^|/)(\.cache|\.git|\.pytest_cache|\.mypy_cache)/|^(root|var/cache)/")
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{32}")
_PACKAGES: Final = re.compile(r"^usr/local/lib/python[0-9.]+/(site|dist)-packages/")
_UNCHECKED: Final = 0b01
"""Flags of bytecode that names its source by a hash and is never held against it (PEP 552)."""
_PIN: Final = re.compile(r"^([A-Za-z0-9][^\\\n]*?) *\\?$", re.MULTILINE)


def problems(image: Path, lock: str) -> list[str]:
    """Judge an image's archive by itself and by the text of the lock; a line for each problem."""
    with archive.layer(image) as files:
        members = files.getmembers()
        contents = {member.name: _reader(files, member) for member in members if member.isreg()}
        links = {member.name: _target(member) for member in members if member.issym()}
        sources = contents | {
            name: contents[target] for name, target in links.items() if target in contents
        }
        return [
            *(line for member in members for line in rights(member)),
            *(line for member in members for line in unwanted(member.name)),
            *(f"{name}: holds a private key" for name in contents if _KEY.search(contents[name]())),
            *bytecode(sources),
            *records(contents),
            *versions(contents, lock),
        ]


def rights(member: tarfile.TarInfo) -> Iterator[str]:
    """Judge owner, mode and kind of a file."""
    if member.uid or member.gid:
        yield f"{member.name}: owned by {member.uid}:{member.gid}, expected root"
    if member.mode & (stat.S_ISUID | stat.S_ISGID):
        yield f"{member.name}: runs with the rights of its owner (setuid, setgid)"
    writable = member.mode & stat.S_IWOTH and not member.issym()
    if writable and not (member.isdir() and member.mode & stat.S_ISVTX):
        yield f"{member.name}: everybody may write it"
    if not (member.isreg() or member.isdir() or member.issym()):
        yield f"{member.name}: neither a file nor a folder nor a link"


def unwanted(name: str) -> Iterator[str]:
    """Judge a file by its path."""
    program = _PROGRAMS.fullmatch(name)
    if program and program[3] in _SHELLS:
        yield f"{name}: a shell or a package manager"
    if _CACHES.search(name):
        yield f"{name}: a cache, or the files of a person"


def bytecode(contents: Mapping[str, Content]) -> Iterator[str]:
    """Hold every module's bytecode against the source beside it."""
    for name, content in contents.items():
        path = PurePosixPath(name)
        if path.suffix != ".pyc":
            continue
        source = contents.get(str(path.parent.parent / f"{path.name.partition('.')[0]}.py"))
        head = content()[:16]
        if source is None or path.parent.name != "__pycache__":
            yield f"{name}: bytecode without its source"
        elif int.from_bytes(head[4:8], "little") != _UNCHECKED:
            yield f"{name}: bytecode that depends on a date or is checked at each start"
        elif head[8:16] != importlib.util.source_hash(source()):
            yield f"{name}: bytecode of another source"


def records(contents: Mapping[str, Content]) -> Iterator[str]:
    """Hold every file of a package against what its wheel recorded (PEP 376, RECORD)."""
    digests: dict[str, str] = {}
    for name, content in contents.items():
        if name.endswith(".dist-info/RECORD"):
            root = PurePosixPath(name).parent.parent
            rows = csv.reader(content().decode().splitlines())
            digests |= {str(root / row[0]): row[1] for row in rows}
    for name, content in contents.items():
        if not _PACKAGES.match(name) or name.endswith(".pyc"):
            continue
        if name not in digests:
            yield f"{name}: no package brought it"
        elif digests[name] and digests[name] != _digest(content()):
            yield f"{name}: not as its package brought it"


def versions(contents: Mapping[str, Content], lock: str) -> Iterator[str]:
    """Hold the packages against the lock, both ways; the driver itself has no line there."""
    present = dict(packages(contents))
    present.pop("ration", None)
    locked = dict(pinned(lock))
    for name in sorted(present.keys() | locked.keys()):
        installed, pin = present.get(name), locked.get(name)
        if installed != pin:
            yield f"{name}: {installed or 'not'} in the image, {pin or 'not'} in the lock"


def packages(contents: Mapping[str, Content]) -> Iterator[tuple[str, str]]:
    """Name and version of every package, as its own metadata has them."""
    for name, content in contents.items():
        if _PACKAGES.match(name) and name.endswith(".dist-info/METADATA"):
            head = content().decode().partition("\n\n")[0]
            fields = dict(line.partition(": ")[::2] for line in head.splitlines())
            yield canonicalize_name(fields["Name"]), fields["Version"]


def pinned(lock: str) -> Iterator[tuple[str, str]]:
    """Name and version of every pin of a lock whose marker holds for this system."""
    for match in _PIN.finditer(lock):
        requirement = Requirement(match[1])
        if requirement.marker is None or requirement.marker.evaluate():
            (specifier,) = requirement.specifier
            yield canonicalize_name(requirement.name), specifier.version


def _target(link: tarfile.TarInfo) -> str:
    """Name the file that a link leads to."""
    path = posixpath.join("/", posixpath.dirname(link.name), link.linkname)
    return posixpath.normpath(path).lstrip("/")


def _reader(files: tarfile.TarFile, member: tarfile.TarInfo) -> Content:
    def read() -> bytes:
        file = files.extractfile(member)
        return file.read() if file is not None else b""

    return read


def _digest(content: bytes) -> str:
    raw = hashlib.sha256(content).digest()
    return f"sha256={base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"
