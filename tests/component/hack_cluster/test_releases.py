"""Official files, from a site on this machine."""

import contextlib
import hashlib
import http.server
import io
import socket
import tarfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hack.cluster import errors, releases, versions

BODY = b"\x7fELF etcd" * 1000
SUMS = f"{hashlib.sha256(BODY).hexdigest()}  etcd\n".encode()


def archive() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as packed:
        entry = tarfile.TarInfo("etcd-v3.7.0/etcd")
        entry.size = len(BODY)
        packed.addfile(entry, io.BytesIO(BODY))
    return written.getvalue()


@contextlib.contextmanager
def site(files: Mapping[str, bytes], shorter: int = 0) -> Iterator[str]:
    """A site's URL; each answer breaks off `shorter` bytes early."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """A file, or that there is none."""
            body = files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - shorter] if self.path == "/etcd" else body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def a_set(release: str, checksum: str, name: str = "etcd") -> versions.ToolSet:
    return versions.ToolSet(
        name=name,
        module="example.test/etcd",
        version="v3.7.0",
        binaries={"etcd": ""},
        release=release,
        checksum=checksum,
        build_seconds=1,
    )


def fetch(tools: versions.ToolSet, out: Path) -> list[str]:
    """Return what was reported on the way."""
    messages: list[str] = []
    releases.fetch(tools, out, lambda _, text: messages.append(text))
    return messages


def test_a_program_is_fetched_and_may_be_run(tmp_path: Path) -> None:
    with site({"/etcd": BODY, "/sums": SUMS}) as url:
        messages = fetch(a_set(f"{url}/{{binary}}", f"{url}/sums"), tmp_path)
    assert (tmp_path / "etcd").read_bytes() == BODY
    assert (tmp_path / "etcd").stat().st_mode & 0o777 == 0o755
    assert messages == ["etcd, 0 of 0 MiB"]


def test_a_program_is_taken_out_of_an_archive(tmp_path: Path) -> None:
    packed = archive()
    sums = f"{hashlib.sha256(packed).hexdigest()} *etcd-v3.7.0.tgz\n".encode()
    with site({"/etcd-v3.7.0.tgz": packed, "/sums": sums}) as url:
        fetch(a_set(f"{url}/etcd-{{version}}.tgz", f"{url}/sums"), tmp_path)
    assert (tmp_path / "etcd").read_bytes() == BODY


def test_a_file_with_another_checksum_is_refused(tmp_path: Path) -> None:
    with (
        site({"/etcd": BODY + b"more", "/sums": SUMS}) as url,
        pytest.raises(errors.ClusterError, match="SHA-256"),
    ):
        fetch(a_set(f"{url}/{{binary}}", f"{url}/sums"), tmp_path)


@pytest.mark.parametrize("present", [{"/sums": SUMS}, {"/etcd": BODY}])
def test_missing_files_are_named(tmp_path: Path, present: Mapping[str, bytes]) -> None:
    with site(present) as url, pytest.raises(errors.ClusterError, match=f"{url}/.*: HTTP 404"):
        fetch(a_set(f"{url}/{{binary}}", f"{url}/sums"), tmp_path)


def test_a_download_that_breaks_off_says_what_to_do(tmp_path: Path) -> None:
    with (
        site({"/etcd": BODY, "/sums": SUMS}, shorter=10) as url,
        pytest.raises(errors.ClusterError, match="RATION_PROGRAMS=build"),
    ):
        fetch(a_set(f"{url}/{{binary}}", f"{url}/sums"), tmp_path)


def test_sites_that_answer_are_told_from_those_that_refuse_or_have_nothing() -> None:
    with site({"/sums": SUMS}) as url, socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        sets = (
            a_set(f"{url}/x", f"{url}/sums", "there"),
            a_set(f"{url}/x", f"{url}/none", "empty"),
            a_set(f"{nobody}/x", f"{nobody}/sums", "refuses"),
            a_set(f"{url}/x", f"{url}/sums").model_copy(update={"name": "none", "release": None}),
        )
        assert releases.answering(sets) == {"there"}


def test_sites_that_hang_are_left_behind_together() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, site({"/sums": SUMS}) as url:
        hangs = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sets = [a_set(f"{hangs}/x", f"{hangs}/sums", f"hangs-{count}") for count in range(8)]
        answered = releases.answering((*sets, a_set(f"{url}/x", f"{url}/sums")), within_s=1.0)
        # All that hang still do: nobody waited for them to be given up.
        left = [thread for thread in threading.enumerate() if thread.name.startswith("ask hangs-")]
    assert answered == frozenset({"etcd"})
    assert len(left) == 8
