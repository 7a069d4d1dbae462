"""Tests that run on the emulator, over the driver that lies in the image, and what they need."""

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from hack import debian
from hack.cluster import shell
from hack.emulated import machine
from hack.image import foreign
from hack.image.build import CHECKOUT

LOCK: Final = CHECKOUT / "requirements" / "dev.lock"
PACKAGES: Final = ("hypothesis", "iniconfig", "packaging", "pluggy", "pytest", "pytest-timeout",
                   "sortedcontainers")  # fmt: skip
"""Of the lock, what these tests import, and what that imports."""
_PROGRAMS: Final = ("bash", "coreutils", "gcc", "libc-bin", "libc6-dev")
"""Of Debian: the simulated NVML is compiled on the emulator, and simulated nodes ask `ldd`."""
_SOURCES: Final = ("hack", "simulator", "tests", "pyproject.toml")
"""Not the driver: the image has it."""
_TOOLS, _SOURCE = Path("opt/tools"), Path("src")
TESTS: Final = (
    "unit/api", "unit/cel", "unit/devices", "unit/kube", "unit/kubeletplugin/cdi",
    "unit/mps", "unit/resources", "unit/telemetry",
    "component/kubeletplugin/test_server.py", "component/kubeletplugin/test_health_stream.py",
    "component/kube/test_client.py",
    "contract/nvml", "contract/test_pynvml.py",
)  # fmt: skip
"""Selectors, decoding, pydantic's models, gRPC over the kubelet's socket, HTTP, NVML by ctypes."""
COMMAND: Final = (
    "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not gpu", "--timeout", "900",
    "--rootdir", f"/{_SOURCE}", "-c", f"/{_SOURCE}/pyproject.toml",
    *(f"/{_SOURCE}/tests/{name}" for name in TESTS),
)  # fmt: skip
ENVIRONMENT: Final = {"PYTHONPATH": f"/{_TOOLS}:/{_SOURCE}", "HOME": "/tmp"}  # noqa: S108


def furnish(root: Path) -> None:
    """Lay out tests, what they import and a C compiler beside the image's files.

    Raises ClusterError where a part cannot be had.
    """
    with tempfile.TemporaryDirectory(prefix="ration-debian-") as work:
        release = debian.Release(foreign.suite(), machine.ARCHITECTURE, present=foreign.PRESENT)
        for file in debian.Archive(release, Path(work)).closure(_PROGRAMS):
            debian.unpack(file, root)
        requirements = Path(work) / "requirements.txt"
        requirements.write_text(pins(LOCK.read_text()))
        uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps")
        target = (f"--target={root / _TOOLS}", *foreign.wheels(machine.ARCHITECTURE))
        shell.run((*uv, *target, "--require-hashes", f"--requirement={requirements}"))
    for name in _SOURCES:
        source, target_path = CHECKOUT / name, root / _SOURCE / name
        target_path.parent.mkdir(exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target_path, ignore=ignored)
        else:
            shutil.copyfile(source, target_path)


def pins(lock: str) -> str:
    """Take the lines of `PACKAGES` out of a lock, with their hashes."""
    blocks = re.finditer(r"^([a-z0-9._-]+)==.*\n(?: +.*\n)*", lock, re.MULTILINE)
    return "".join(block[0] for block in blocks if block[1] in PACKAGES)
