"""Two container images made here: pause (a C program that sleeps) and a workload.

The workload is busybox, and `simclient` for what a CUDA program would see.
"""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hack.cluster import configs, releases, shell, toolchain, versions
from simulator import compiler

BUSYBOX = Path("/bin/busybox")
PAUSE_SOURCE = """\
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first process of a pod: reap what is orphaned, end when told. */
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0) {} }
static void stop(int number) { (void)number; _exit(0); }

int main(void) {
    signal(SIGCHLD, reap);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    for (;;) pause();
}
"""
_ACCOUNTS = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
File = bytes | str


def ensure() -> tuple[Path, ...]:
    """The archives of both images, from the cache or made now."""
    key = versions.cache_key(
        [
            PAUSE_SOURCE.encode(),
            BUSYBOX.read_bytes(),
            Path(__file__).read_bytes(),
            releases.architecture().encode(),
            _simclient(),
        ]
    )
    folder = toolchain.cache_root() / "images" / key
    with toolchain.lock(toolchain.cache_root() / "images.lock"):
        if not folder.is_dir():
            _make(folder)
    return (folder / "pause.tar", folder / "workload.tar")


def _make(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".images-") as name:
        part = Path(name) / "done"
        part.mkdir()
        arch = releases.architecture()
        pause = {"pause": _compile(Path(name))}
        image = archive(configs.PAUSE_IMAGE, arch, pause, ("/pause",))
        (part / "pause.tar").write_bytes(image)
        image = archive(configs.WORKLOAD_IMAGE, arch, _workload(), ("/bin/sh",))
        (part / "workload.tar").write_bytes(image)
        part.rename(folder)


def _compile(scratch: Path) -> bytes:
    source = scratch / "pause.c"
    source.write_text(PAUSE_SOURCE)
    program = scratch / "pause"
    shell.run(("gcc", "-static", "-Os", "-s", "-o", str(program), str(source)))
    return program.read_bytes()


def _workload() -> dict[str, File]:
    applets = shell.run((str(BUSYBOX), "--list")).split()
    links: dict[str, File] = {f"bin/{name}": "busybox" for name in applets}
    return {
        **links,
        "bin/busybox": BUSYBOX.read_bytes(),
        "bin/simclient": _simclient(),
        "etc/passwd": _ACCOUNTS,
        "tmp/": b"",
        "usr/bin/env": "/bin/busybox",
    }


def _simclient() -> bytes:
    """What stands for a CUDA program: static, so that it needs the driver's mounts only."""
    return (compiler.programs() / "simclient").read_bytes()


def archive(name: str, arch: str, files: Mapping[str, File], command: tuple[str, ...]) -> bytes:
    """An OCI image archive with one layer. Pure: the same files give the same bytes.

    A file's content is bytes, or the target of a symbolic link as text; a path that ends with a
    slash is a folder.
    """
    layer = _tar(files)
    config = _json(
        {
            "architecture": arch,
            "os": "linux",
            "config": {"Cmd": list(command), "Env": ["PATH=/usr/bin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
        }
    )
    entry = {
        **_descriptor("application/vnd.oci.image.manifest.v1+json", manifest),
        "annotations": {"io.containerd.image.name": name},
        "platform": {"architecture": arch, "os": "linux"},
    }
    blobs = {f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (layer, config, manifest)}
    index = _json({"schemaVersion": 2, "manifests": [entry]})
    return _tar(
        {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index, **blobs}
    )


def _tar(files: Mapping[str, File]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as packed:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.mode = 0o755
            if name.endswith("/"):
                entry.type, entry.mode = tarfile.DIRTYPE, 0o777
                packed.addfile(entry)
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                packed.addfile(entry)
            else:
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}
