"""Hook programs: such as only say their version, and such as are not even run."""

import subprocess
from pathlib import Path

from driver import errors

NEWEST = "NVIDIA CDI Hook version 1.20.0\ncommit: 0123456\n"


def ask(root: Path, path: str) -> str:
    """Same as `toolkit.run_version`, of a file: what stands in it, or else a version that has all.

    A file that begins with "fail" is a program that does.
    """
    text = (root / path.lstrip("/")).read_text()
    if text.startswith("fail"):
        raise errors.NodeFault("run", path, text)
    return text or NEWEST


def install(path: Path, version: str) -> None:
    """Put a program at `path` that prints a version, and needs no other file to run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    source = (
        f'int puts(const char *);\nint main(void) {{ puts("NVIDIA CDI Hook version {version}"); }}'
    )
    command = ("cc", "-static", "-x", "c", "-", "-o", str(new))
    subprocess.run(command, input=source, text=True, check=True)
    new.replace(path)
