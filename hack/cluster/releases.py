"""Official release programs: the fast way where the projects' download sites can be reached."""

import hashlib
import http
import json
import platform
import shutil
import tarfile
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import urllib3

from hack.cluster import errors, progress, versions

_PROBE_S = 6.0
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


def _answers(address: str) -> bool:
    """Whether a GET of it is answered by what is there."""
    try:
        answer = _get(address, _PROBE)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == http.HTTPStatus.OK


def _download(address: str, checksum: str, to: Path, advance: progress.Advance) -> None:
    """Write what is at an address, if its SHA-256 is the one in the file at `checksum`.

    Raises ClusterError.
    """
    try:
        listed = _get(checksum, _FETCH)
        _expect_ok(checksum, listed)
        expected = checksum_of(listed.data.decode(), address.rpartition("/")[2])
        answer = _get(address, _FETCH, preload_content=False)
        _expect_ok(address, answer)
        found = _written(answer, to, address.rpartition("/")[2], advance)
    except urllib3.exceptions.HTTPError as error:
        raise errors.ClusterError(
            f"{address}: {error}: try again, or build it with RATION_PROGRAMS=build"
        ) from error
    if found != expected:
        raise errors.ClusterError(f"{address}: SHA-256 {found}, but {checksum} says {expected}")


def _get(
    address: str, timeout: urllib3.Timeout, *, preload_content: bool = True
) -> urllib3.BaseHTTPResponse:
    parts = urllib.parse.urlsplit(address)
    proxy = urllib.request.getproxies().get(parts.scheme)
    bypassed = bool(urllib.request.proxy_bypass(parts.hostname or ""))
    pool = urllib3.ProxyManager(proxy) if proxy and not bypassed else urllib3.PoolManager()
    # A site that is not there is found out at once: only redirects are followed.
    retries = urllib3.Retry(total=5, connect=0, read=0, status=0, other=0, redirect=5)
    return pool.request(
        "GET", address, timeout=timeout, retries=retries, preload_content=preload_content
    )


def _expect_ok(address: str, answer: urllib3.BaseHTTPResponse) -> None:
    if answer.status != http.HTTPStatus.OK:
        raise errors.ClusterError(f"{address}: HTTP {answer.status}")


def _written(
    answer: urllib3.BaseHTTPResponse, to: Path, name: str, advance: progress.Advance
) -> str:
    """The SHA-256 of the body, which is written."""
    digest, there = hashlib.sha256(), 0
    size = int(answer.headers.get("Content-Length", 0))
    with to.open("wb") as file:
        for chunk in answer.stream(1 << 20):
            digest.update(chunk)
            file.write(chunk)
            there += len(chunk)
            told = f"{name}, {there >> 20}" + (f" of {size >> 20} MiB" if size else " MiB")
            advance(there / size if size else 0.0, told)
    if size and there != size:
        raise urllib3.exceptions.HTTPError(f"{there} of {size} bytes came")
    return digest.hexdigest()


def answering(sets: Sequence[versions.ToolSet], within_s: float = _PROBE_S) -> frozenset[str]:
    """Names of those sets whose release site answers within so many seconds.

    All are asked at once, and one that hangs, in a look-up of its name too, is left behind.
    """
    answered: set[str] = set()

    def ask(tools: versions.ToolSet) -> None:
        address = tools.address(tools.checksum, architecture(), next(iter(tools.binaries)))
        if _answers(address):
            answered.add(tools.name)

    asked = [
        threading.Thread(target=ask, args=(tools,), name=f"ask {tools.name}", daemon=True)
        for tools in sets
        if tools.release is not None
    ]
    for thread in asked:
        thread.start()
    ends = time.monotonic() + within_s
    for thread in asked:
        thread.join(max(ends - time.monotonic(), 0.0))
    return frozenset(answered)


def fetch(tools: versions.ToolSet, out: Path, advance: progress.Advance) -> None:
    """Download a set's programs, each held against its published checksum.

    Raises ClusterError where something is not there, breaks off, or is not what it should be.
    """
    if tools.release is None:
        raise errors.ClusterError(f"{tools.name}: publishes no programs")
    arch = architecture()
    if "{binary}" in tools.release:
        for name in tools.binaries:
            address = tools.address(tools.release, arch, name)
            checksum = tools.address(tools.checksum, arch, name)
            _download(address, checksum, out / name, advance)
    else:
        with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
            packed = Path(scratch) / "archive"
            address, checksum = (
                tools.address(template, arch) for template in (tools.release, tools.checksum)
            )
            _download(address, checksum, packed, advance)
            unpack(packed, frozenset(tools.binaries), out)
    for name in tools.binaries:
        (out / name).chmod(0o755)


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
