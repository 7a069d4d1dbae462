"""The wall clock of some processes, which is stepped while they run: libfaketime.

Only the wall clock: what is monotonic goes on as it is, as it does when a machine's clock is set.
"""

from pathlib import Path

from hack.cluster import errors

PACKAGE = "libfaketime"
_LIBRARY = "faketime/libfaketimeMT.so.1"


def library() -> Path:
    """Where the distribution has it. Raises ClusterError."""
    found = sorted(Path("/usr/lib").glob(f"*/{_LIBRARY}"))
    if not found:
        raise errors.ClusterError(f"this machine lacks {_LIBRARY} (package {PACKAGE})")
    return found[0]


class Faked:
    """A clock in a file, for all processes that are started with `variables`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.step(0)

    def step(self, seconds: int) -> None:
        """The clock is so much ahead of the machine's from now on, as of a second at most."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{seconds:+d}\n")
        part.replace(self._file)

    def variables(self) -> dict[str, str]:
        """Of the environment of a process that goes by it."""
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
        }
