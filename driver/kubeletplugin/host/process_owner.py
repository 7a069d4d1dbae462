"""Pods of a host process, read from proc."""

import contextlib
from pathlib import Path

from driver import ids
from driver.kubeletplugin.host import cgroups


class ProcessOwners:
    """Implements `ports.ProcessPods` under a host root; NVML and proc must share pids (hostPID)."""

    def __init__(self, host_root: Path) -> None:
        self._proc = host_root / "proc"

    def __call__(self, pid: int) -> tuple[ids.PodUid, ...]:
        """Return the candidate pods; () for a process that is gone, or of no pod."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return cgroups.parse_pod_uids((self._proc / str(pid) / "cgroup").read_text())
        return ()
