"""A plugin's process, and the machine below it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driver.kube import gvr
from driver.runtime.files import driver_search
from tests.fakes import kubelet as fake_kubelet
from tests.fakes.apiserver import server as api_server

if TYPE_CHECKING:
    import subprocess

NODE = "node-a"


@dataclass(frozen=True)
class Host:
    """A driver's places; `fault` lets a program on the first GPU write to an unmapped address."""

    driver_root: driver_search.Setting
    root: Path
    fault: Callable[[], object]


@dataclass(frozen=True)
class Running:
    """A plugin that is registered; `published_s` is from its start to a slice."""

    process: "subprocess.Popen[bytes]"
    plugin: fake_kubelet.Plugin
    api: api_server.ApiServer
    cdi: Path
    published_s: float

    def devices(self) -> dict[str, dict[str, Any]]:
        """The published devices by name."""
        return {
            device["name"]: device
            for published in self.api.all(gvr.RESOURCE_SLICES)
            for device in published["spec"].get("devices", ())
        }

    def is_whole(self) -> bool:
        """Return whether the pool has as many slices as each says."""
        slices = self.api.all(gvr.RESOURCE_SLICES)
        counts = {published["spec"]["pool"]["resourceSliceCount"] for published in slices}
        return counts == {len(slices)}

    def resident_mib(self) -> float:
        """Resident memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def cpu_s(self) -> float:
        """Processor time so far: fields 14 and 15 of proc_pid_stat(5)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


Start = Callable[..., Running]
