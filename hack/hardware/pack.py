"""Packs this tool, the driver's code and the wheels that they need into one file to carry.

The file is a Python zip application. It unpacks itself into a temporary folder, since compiled
packages cannot be imported from within a zip file, and runs from there.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipapp
from pathlib import Path

from driver import errors

ROOT = Path(__file__).parents[2]
_CODE = ("driver", "hack")
_EVIDENCE = "docs/explanation/hardware-evidence.md"
LEFT_OUT = frozenset({"aiohttp", "cel-expr-python", "cryptography", "grpcio"})
"""Large packages of the driver's that no step imports; with them the file has 72 MB."""
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_MAIN = """\
import atexit, os, shutil, sys, tempfile, zipfile

here = os.path.abspath(sys.argv[0])
folder = os.environ.get("RATION_HARDWARE_FOLDER")
if folder is None:
    folder = tempfile.mkdtemp(prefix="ration-hardware-")
    atexit.register(shutil.rmtree, folder, True)
    zipfile.ZipFile(here).extractall(folder)
    os.environ["RATION_HARDWARE_FOLDER"] = folder
    os.environ["RATION_HARDWARE_FILE"] = here
sys.path[:] = [folder, *(path for path in sys.path if os.path.abspath(path) != here)]
from hack.hardware.__main__ import main

sys.exit(main())
"""


def write(path: Path, python: str) -> int:
    """Write the file for a version of Python on x86-64; its size in bytes. Raises NodeFault."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "content"
        folder.mkdir()
        lock = Path(name) / "requirements.txt"
        lock.write_text(carried((ROOT / "requirements" / "runtime.lock").read_text()))
        _install(folder, lock, python)
        for part in _CODE:
            shutil.copytree(
                ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        (folder / _EVIDENCE).parent.mkdir(parents=True)
        shutil.copy(ROOT / _EVIDENCE, folder / _EVIDENCE)
        (folder / "__main__.py").write_text(_MAIN)
        zipapp.create_archive(folder, path, interpreter="/usr/bin/env python3", compressed=True)
    return path.stat().st_size


def carried(lock: str) -> str:
    """Return a file of hashed requirements without those that are left out."""
    entries = re.split(r"\n(?=\S)", lock)
    return "\n".join(entry for entry in entries if entry.partition("==")[0] not in LEFT_OUT)


def _install(folder: Path, lock: Path, python: str) -> None:
    """Put hashed requirements into a folder."""
    platforms = (word for platform in _PLATFORMS for word in ("--platform", platform))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
            *("--disable-pip-version-check", "--require-hashes", "--only-binary=:all:"),
            *("--python-version", python, "--target", str(folder), *platforms),
            *("-r", str(lock)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise errors.NodeFault("install", "the packages to carry", done.stderr.strip()[-500:])
