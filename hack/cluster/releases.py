"""Official release programs: the fast way where the projects' download sites can be reached."""

import hashlib
import http
import json
import platform
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO

import urllib3

from hack.cluster import errors, versions

_PROBE = urllib3.Timeout(connect=3.0, read=5.0)
_FETCH = urllib3.Timeout(connect=5.0, read=60.0)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def architecture() -> str:
    """This machine in Go's words."""
    try:
        return _MACHINES[platform.machine()]
    except KeyError as error:
        raise errors.ClusterError(
            f"processor {platform.machine()}: expected one of {', '.join(_MACHINES)}"
        ) from error


def json_field(text: str, name: str) -> str:
    """One string of a JSON object."""
    return str(json.loads(text)[name])


def checksum_of(text: str, filename: str) -> str | None:
    """The SHA-256 of a file in a checksum file: `HASH  NAME` lines, or one bare hash."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    if len(rows) == 1 and len(rows[0]) == 1:
        return rows[0][0]
    names = {row[-1].lstrip("*").rpartition("/")[2]: row[0] for row in rows}
    return names.get(filename)


def fetch(tools: versions.ToolSet, out: Path) -> bool:
    """Download a set's programs; False where there is no site, or it cannot be reached."""
    if tools.release is None:
        return False
    arch = architecture()
    with urllib3.PoolManager(retries=False) as pool:
        first = tools.address(tools.checksum, arch, next(iter(tools.binaries)))
        if not _answers(pool, first):
            return False
        if "{binary}" in tools.release:
            for name in tools.binaries:
                address = tools.address(tools.release, arch, name)
                _download(pool, address, tools.address(tools.checksum, arch, name), out / name)
        else:
            _download_archive(pool, tools, tools.release, out)
    for name in tools.binaries:
        (out / name).chmod(0o755)
    return True


def _answers(pool: urllib3.PoolManager, address: str) -> bool:
    try:
        answer = pool.request("GET", address, timeout=_PROBE, redirect=True, retries=3)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == http.HTTPStatus.OK


def _download_archive(
    pool: urllib3.PoolManager, tools: versions.ToolSet, release: str, out: Path
) -> None:
    arch = architecture()
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        packed = Path(scratch) / "archive"
        checksum = tools.address(tools.checksum, arch)
        _download(pool, tools.address(release, arch), checksum, packed)
        unpack(packed, frozenset(tools.binaries), out)


def unpack(archive: Path, wanted: frozenset[str], out: Path) -> None:
    """Take the wanted programs out of an archive, wherever in it they are."""
    found = set()
    with tarfile.open(archive) as packed:
        for member in packed:
            name = member.name.rpartition("/")[2]
            content = packed.extractfile(member) if name in wanted else None
            if content is not None:
                _store(content, out / name)
                found.add(name)
    if wanted - found:
        raise errors.ClusterError(f"{archive.name}: lacks {', '.join(sorted(wanted - found))}")


def _store(content: IO[bytes], to: Path) -> None:
    with to.open("wb") as file:
        shutil.copyfileobj(content, file)


def _download(pool: urllib3.PoolManager, address: str, checksum: str, to: Path) -> None:
    listed = pool.request("GET", checksum, timeout=_PROBE, retries=3)
    expected = checksum_of(listed.data.decode(), address.rpartition("/")[2])
    digest = hashlib.sha256()
    answer = pool.request("GET", address, timeout=_FETCH, retries=3, preload_content=False)
    with to.open("wb") as file:
        for chunk in answer.stream(1 << 20):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != expected:
        raise errors.ClusterError(
            f"{address}: SHA-256 {digest.hexdigest()}, but {checksum} says {expected}"
        )
