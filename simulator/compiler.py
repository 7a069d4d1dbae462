"""The C programs, compiled once for each state of their sources and kept outside the checkout."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from simulator import exports

SOURCES = Path(__file__).parent / "c"

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE")
_SHARED = ("-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs", "-pthread")
_ALONE = ("-static", "-pthread")
"""Runs in any container."""
_PROGRAM = ("-pthread",)
"""As NVIDIA's: takes the loader and the libc of the root that it lies in."""
_WIRE = ("client.c", "connection.c", "line.c")
_SESSION = ("session.c", *_WIRE, "root_program.c")

NVML = "libnvidia-ml.so"
_LIBRARY = (
    *(*_SHARED, "-Wl,-soname,libnvidia-ml.so.1"),
    *("nvml.c", "versions.c", "mig.c", "health.c", "board.c", "monitor.c"),
    *(*_WIRE, "root_library.c"),
)
PROGRAMS = {
    "libcuda.so": (*_SHARED, "-Wl,-soname,libcuda.so.1", "cuda.c"),
    "nvidia-smi": (*_ALONE, "smi.c", "nvml.c", *_WIRE, "root_program.c"),
    "nvidia-cuda-mps-control": (*_PROGRAM, "mps_control.c", "mps_daemon.c", *_SESSION),
    "nvidia-cuda-mps-server": (*_PROGRAM, "mps_server.c", *_SESSION),
    "simclient": (*_ALONE, "simclient.c", *_SESSION),
}

LINKED = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
"""Those that are not linked statically: no container has them."""

BINARIES = ("nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "simclient")
"""Those that lie in the driver root's usr/bin. `simclient` is no file of the driver: it stands for
a CUDA program, and lies there to find its driver root when it is started on the host."""


class CompilerError(Exception):
    """No C compiler, or sources it refuses; the text is the compiler's."""


def programs() -> Path:
    """The folder that holds every name of `PROGRAMS`, compiled now if it is not there yet."""
    return _cached(_key(repr(PROGRAMS)), _make_programs)


def library(driver_major: int) -> Path:
    """NVML's library as drivers of that major version export it; compiled as the programs are."""
    script, stubs = exports.version_script(driver_major), exports.stubs()

    def make(folder: Path) -> None:
        (folder / "stubs.c").write_text(stubs)
        (folder / "exports.map").write_text(script)
        chosen = (f"-I{SOURCES}", f"-Wl,--version-script={folder / 'exports.map'}")
        _compile(folder / NVML, (*_LIBRARY, *chosen, str(folder / "stubs.c")))

    return _cached(_key(repr(_LIBRARY) + script + stubs), make) / NVML


def static(program: str, folder: Path) -> Path:
    """Compile one of PROGRAMS for a container without a C library; the file, in `folder`."""
    _compile(folder / program, ("-static", *PROGRAMS[program]))
    return folder / program


def _make_programs(folder: Path) -> None:
    for name, arguments in PROGRAMS.items():
        _compile(folder / name, arguments)


def _cached(key: str, make: Callable[[Path], None]) -> Path:
    """The folder of that key; `make` fills it when it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ration" / "simulator" / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        work = Path(made) / "programs"
        work.mkdir()
        make(work)
        try:
            work.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was first, with the same bytes
                raise
    return folder


@functools.cache
def system() -> tuple[Path, ...]:
    """The loader and the libraries of this machine that `LINKED` take, by their usual paths."""
    program = programs() / LINKED[0]
    text = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
    return tuple(Path(path) for path in re.findall(r"/\S+", text))


def _key(arguments: str) -> str:
    digest = hashlib.sha256(repr(_FLAGS).encode() + arguments.encode())
    for source in sorted(SOURCES.glob("*.[ch]")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def _compile(output: Path, arguments: tuple[str, ...]) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise CompilerError("no C compiler: install gcc and the C library's headers")
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(output), *arguments],
        cwd=SOURCES,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CompilerError(f"{compiler} cannot make {output.name}:\n{done.stderr}")
