"""The wall clock of some processes, which is stepped while they run: a small library before libc.

Only the wall clock: what is monotonic goes on as it is, as it does when a machine's clock is set.
libfaketime does more, and Python cannot sleep under it: its clock_nanosleep (0.9.10) answers EINVAL
to an absolute time of a clock that it is to leave alone.
"""

import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")


def library(folder: Path) -> Path:
    """Built into a folder."""
    path = folder / "clock.so"
    words = ("-O2", "-Wall", "-Werror", "-shared", "-fPIC")
    subprocess.run(["gcc", *words, "-o", str(path), str(_SOURCE)], check=True)
    return path


class Faked:
    """A clock in a file, for all processes that are started with `variables`."""

    def __init__(self, file: Path, library: Path) -> None:
        self._file = file
        self._library = library
        self._file.write_bytes(struct.pack("=q", 0))

    def step(self, seconds: int) -> None:
        """The clock is so much ahead of the machine's from now on."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))

    def variables(self) -> dict[str, str]:
        """Return the environment variables of a process that uses this clock."""
        return {"LD_PRELOAD": str(self._library), "RATION_CLOCK": str(self._file)}
