"""Which pod a process of the host is of, asked of proc."""

import contextlib
from pathlib import Path

from driver import ids
from driver.kubeletplugin.host import cgroups


class ProcessOwners:
    """`ports.PodsOf` under a host root; NVML and proc must count pids alike (hostPID)."""

    def __init__(self, host_root: Path) -> None:
        self._proc = host_root / "proc"

    def __call__(self, pid: int) -> tuple[ids.PodUid, ...]:
        """The pods that it may be of; () for a process that is gone, or of no pod."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return cgroups.parse_pod_uids((self._proc / str(pid) / "cgroup").read_text())
        return ()
