"""Builds the image for arm64 from nothing and tries it on an emulator: python -m hack.emulated.

Its programs start, every module of the driver is imported, and a part of the tests runs over the
driver that lies in the image, the simulated NVML as compiled for arm64 among them. Exit code 0:
all of it passed, or no emulator can be had here, which is said in a line; 1: something failed.
"""

import sys
import tempfile
from pathlib import Path

from hack.cluster import errors
from hack.emulated import machine, suite
from hack.image import archive, build, trial

_PYTHON = "/usr/local/bin/python"
_LINE = "\n"


def main() -> int:
    """Try the image."""
    try:
        machine.emulator()
    except errors.ClusterError as error:
        print(f"{machine.ARCHITECTURE}: not tried, no emulator can be had here: {error}")
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="ration-emulated-") as scratch:
            return _try(Path(scratch))
    except errors.ClusterError as error:
        print(f"{machine.ARCHITECTURE}: {error}", file=sys.stderr)
        return 1


def _try(scratch: Path) -> int:
    image, root = scratch / "image.tar", scratch / "root"
    digest = build.write(image, "ration:emulated", architecture=machine.ARCHITECTURE)
    print(f"image for {machine.ARCHITECTURE}: {image.stat().st_size / 1e6:.0f} MB, {digest}")
    archive.unpack(image, root)
    environment = archive.environment(image)
    commands = [
        ("-c", "import platform; print(platform.machine(), platform.python_version())"),
        ("-m", "driver.cli", "version"),
        *(("-m", program, "--help") for program in trial.PROGRAMS),
        ("-c", trial.IMPORTS),
    ]
    for words in commands:
        print(f"$ python {' '.join(words).partition(_LINE)[0]}", flush=True)
        silent = words[-1] == "--help"
        if machine.run(root, (_PYTHON, *words), environment, silent=silent):
            return 1
    suite.furnish(root)
    environment |= suite.ENVIRONMENT
    return machine.run(root, (_PYTHON, *suite.COMMAND), environment) and 1


sys.exit(main())
