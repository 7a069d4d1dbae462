"""Samples of a process, from /proc."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from tests.soak import verdict


def sample(pid: int, at_s: float, cycles: int) -> verdict.Sample | None:
    """A process now; None where it has gone."""
    path = Path(f"/proc/{pid}")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        words = dict(
            line.split(":", 1) for line in (path / "status").read_text().splitlines() if ":" in line
        )
        if "VmRSS" not in words:  # it has ended, and nobody has waited for it
            return None
        rss = int(words["VmRSS"].split()[0]) / 1024
        files = len(list((path / "fd").iterdir()))
        return verdict.Sample(at_s, cycles, pid, rss, files, int(words["Threads"]))
    return None


class Sampler:
    """The samples of some processes, each by what it is called."""

    def __init__(self, pids: dict[str, Callable[[], int]]) -> None:
        self._pids = pids
        self.taken: dict[str, list[verdict.Sample]] = {name: [] for name in pids}

    def look(self, at_s: float, cycles: int) -> None:
        """Take one of each."""
        for name, pid in self._pids.items():
            result = sample(pid(), at_s, cycles)
            if result is not None:
                self.taken[name].append(result)

    def last(self, name: str) -> str:
        """The newest, for people."""
        if not self.taken[name]:
            return "-"
        item = self.taken[name][-1]
        return f"{item.rss_mib:.1f} MiB {item.fds} files {item.threads} threads"

    def growths(self) -> list[verdict.Growth]:
        """Return what became of each process."""
        return [
            growth for name, taken in self.taken.items() for growth in verdict.growths(name, taken)
        ]
