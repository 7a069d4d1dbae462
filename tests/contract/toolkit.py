"""NVIDIA's own `nvidia-ctk` and `nvidia-cdi-hook`, built from the pinned module beside this file.

Of the hook there are older versions too, as hosts have them, each pinned by its module's sum.

The programs are cached with those of the local cluster, named by its pins.
"""

import functools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hack.cluster import shell, toolchain, versions
from simulator import layout

MODULE = Path(__file__).parent / "tools/nvidia-ctk"
OLDER = {
    "1.16.2": "h1:udrrtB8JrAs2KkKQ4njgSb/anUOC1b9tP5LjUtbjE+k=",
    "1.17.8": "h1:ndE23TKvQBicsZT88mzZudygn6JNOe6+UsIgqk6gGvw=",
    "1.18.0": "h1:bXoKq9C1WHU5fF6VqXvX3RkMzpp4ihTUgBPrh66vTf0=",
}
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w")


def program(name: str = "nvidia-ctk") -> Path:
    """One of them, built now if it is not in the cache; it takes Go and a C compiler."""
    pins = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    key = versions.cache_key([*pins, " ".join(FLAGS).encode()])
    folder = toolchain.cache_root() / "tools" / f"nvidia-ctk-{key}"
    with toolchain.lock(folder.parent / "nvidia-ctk.lock"):
        if not folder.is_dir():
            _build(folder)
    return folder / name


def _build(folder: Path) -> None:
    with tempfile.TemporaryDirectory(
        dir=folder.parent, prefix=".nvidia-ctk-"
    ) as temporary_directory:
        out = Path(temporary_directory) / "bin"
        command = ("go", "build", *FLAGS, "-o", f"{out}/", "tool")
        shell.run(command, cwd=MODULE, env=environment(Path(temporary_directory)))
        out.rename(folder)


def environment(folder: Path) -> dict[str, str]:
    """Return what Go builds a program with C in it with; `folder` has what is temporary.

    cgo compiles a file that lies there, which takes a header beside it, be it some other program's
    nvml.h, before the module's own.
    """
    own = folder / "tmp"
    own.mkdir()
    return {**os.environ, "CGO_ENABLED": "1", "CGO_CFLAGS": "-O2 -w", "TMPDIR": str(own)}


def hook_of(version: str) -> Path:
    """The nvidia-cdi-hook of a version of OLDER, that says so. Raises CommandFailedError."""
    key = versions.cache_key([OLDER[version].encode(), " ".join(FLAGS).encode()])
    folder = toolchain.cache_root() / "tools" / f"nvidia-cdi-hook-{version}-{key}"
    return toolchain.keep(folder, functools.partial(_build_older, version)) / "nvidia-cdi-hook"


def _build_older(version: str, out: Path) -> None:
    module = "github.com/NVIDIA/nvidia-container-toolkit"
    text = shell.run(("go", "mod", "download", "-json", f"{module}@v{version}"), cwd=Path("/"))
    document = json.loads(text)
    assert document["Sum"] == OLDER[version], f"{module}@v{version} is {document['Sum']}"
    with tempfile.TemporaryDirectory(
        dir=out.parent, prefix=".nvidia-cdi-hook-"
    ) as temporary_directory:
        building = {**environment(Path(temporary_directory)), "GOFLAGS": "-mod=mod"}
        source = Path(temporary_directory) / "source"  # its own vendor folder is not in the module
        leave = shutil.ignore_patterns("vendor")
        shutil.copytree(document["Dir"], source, ignore=leave, copy_function=shutil.copyfile)
        for folder in (source, *(path for path in source.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        stamp = f"-s -w -X {module}/internal/info.version={version}"
        command = ("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp)
        shell.run((*command, "-o", f"{out}/", "./cmd/nvidia-cdi-hook"), cwd=source, env=building)


def generate(base: Path) -> Any:
    """The CDI spec it writes for the machine in `base`.

    It reads proc where the kernel has it, so the machine's is laid over the real one, in a mount
    namespace that ends with the program. Takes root.
    """
    position = layout.Layout(base)
    command = (
        *(program(), "cdi", "generate", "--mode=nvml", "--format=json"),
        f"--driver-root={position.driver_root}",
    )
    overlay = 'mount --bind "$0" /proc/driver && exec "$@"'
    unshare = ("unshare", "--mount", "sh", "-c", overlay)
    return json.loads(
        shell.run((*unshare, str(position.host_root / "proc/driver"), *map(str, command)))
    )
