"""Samples of a process, from /proc."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from tests.soak import verdict

_STATE, _INODE = 3, 9
"""Columns of /proc/net/tcp (proc_net_tcp.rst)."""
_LISTEN = "0A"


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
        files, connections = _open_files(path)
        return verdict.Sample(at_s, cycles, pid, rss, files, connections, int(words["Threads"]))
    return None


def _open_files(process: Path) -> tuple[int, int]:
    """Count open files, and apart from them TCP connections."""
    names = []
    for entry in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            names.append(str(entry.readlink()))
    rows = (line.split() for line in (process / "net" / "tcp").read_text().splitlines()[1:])
    tcp = {f"socket:[{row[_INODE]}]" for row in rows if row[_STATE] != _LISTEN}
    connections = sum(name in tcp for name in names)
    return len(names) - connections, connections


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
        opened = f"{item.fds} files {item.connections} connections"
        return f"{item.rss_mib:.1f} MiB {opened} {item.threads} threads"

    def growths(self) -> list[verdict.Growth]:
        """Return what became of each process."""
        return [
            growth for name, taken in self.taken.items() for growth in verdict.growths(name, taken)
        ]
