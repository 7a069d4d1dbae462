"""NVIDIA's own `nvidia-ctk` and `nvidia-cdi-hook`, built from the pinned module beside this file.

The programs are cached with those of the local cluster, named by its pins.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hack.cluster import shell, toolchain, versions
from simulator import layout

MODULE = Path(__file__).parent / "tools/nvidia-ctk"
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
    environment = {**os.environ, "CGO_ENABLED": "1", "CGO_CFLAGS": "-O2 -w"}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".nvidia-ctk-") as made:
        out = Path(made) / "bin"
        command = ("go", "build", *FLAGS, "-o", f"{out}/", "tool")
        shell.run(command, cwd=MODULE, env=environment)
        out.rename(folder)


def generate(base: Path) -> Any:
    """The CDI spec it writes for the machine in `base`.

    It reads proc where the kernel has it, so the machine's is laid over the real one, in a mount
    namespace that ends with the program. Takes root.
    """
    at = layout.Layout(base)
    command = (
        *(program(), "cdi", "generate", "--mode=nvml", "--format=json"),
        f"--driver-root={at.driver_root}",
    )
    overlay = 'mount --bind "$0" /proc/driver && exec "$@"'
    unshare = ("unshare", "--mount", "sh", "-c", overlay)
    return json.loads(shell.run((*unshare, str(at.host_root / "proc/driver"), *map(str, command))))
