"""Two container images made here: pause (a C program that sleeps) and a workload.

The workload is busybox, and `simclient` for what a CUDA program would see.
"""

import tempfile
from pathlib import Path

from hack.cluster import configs, releases, shell, toolchain, versions
from hack.image import oci
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


def ensure() -> tuple[Path, ...]:
    """The archives of both images, from the cache or made now."""
    key = versions.cache_key(
        [
            PAUSE_SOURCE.encode(),
            BUSYBOX.read_bytes(),
            Path(__file__).read_bytes(),
            Path(oci.__file__).read_bytes(),
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
        pause = oci.Image(configs.PAUSE_IMAGE, arch, ("/pause",))
        oci.write(part / "pause.tar", pause, [oci.Entry("pause", pause_program(Path(name)))])
        workload = oci.Image(configs.WORKLOAD_IMAGE, arch, ("/bin/sh",))
        oci.write(part / "workload.tar", workload, _workload())
        part.rename(folder)


def pause_program(scratch: Path) -> bytes:
    """The first process of a pod, compiled in a folder that may hold anything."""
    source = scratch / "pause.c"
    source.write_text(PAUSE_SOURCE)
    program = scratch / "pause"
    shell.run(("gcc", "-static", "-Os", "-s", "-o", str(program), str(source)))
    return program.read_bytes()


def _workload() -> list[oci.Entry]:
    return [
        *busybox(),
        oci.Entry("bin/simclient", _simclient()),
        oci.Entry("etc/passwd", _ACCOUNTS),
        oci.Entry("tmp/", mode=0o777),
        oci.Entry("usr/bin/env", "/bin/busybox"),
    ]


def busybox() -> list[oci.Entry]:
    """A shell and its programs, as one file and links to it."""
    applets = shell.run((str(BUSYBOX), "--list")).split()
    return [
        *(oci.Entry(f"bin/{name}", "busybox") for name in applets if name != "busybox"),
        oci.Entry("bin/busybox", BUSYBOX),
    ]


def _simclient() -> bytes:
    """What stands for a CUDA program: static, so that it needs the driver's mounts only."""
    return (compiler.programs() / "simclient").read_bytes()
