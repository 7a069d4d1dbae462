"""The machine that figures are measured on."""

import os
from dataclasses import dataclass
from pathlib import Path

_MODEL, _MEMORY = "model name", "MemTotal"


@dataclass(frozen=True, slots=True)
class Machine:
    """`load`: the load average of the last 15 minutes; None: not noted."""

    cpus: int
    model: str
    memory_gib: float
    load: float | None

    @property
    def words(self) -> str:
        """For people."""
        load = "not noted" if self.load is None else f"{self.load:.1f}"
        return f"{self.cpus} x {self.model}, {self.memory_gib:.0f} GiB, load {load}"


def here() -> Machine:
    """This one, now."""
    memory = int(_told("/proc/meminfo", _MEMORY).split()[0]) / 2**20
    load = round(os.getloadavg()[2], 2)
    return Machine(os.cpu_count() or 0, _told("/proc/cpuinfo", _MODEL), round(memory, 1), load)


def _told(path: str, key: str) -> str:
    lines = Path(path).read_text().splitlines()
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(key))
    return next(found, "unknown 0" if key == _MODEL else "0")
