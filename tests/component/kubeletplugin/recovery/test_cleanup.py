"""Clearing a node on which file systems of MPS daemons are still mounted."""

import os
import subprocess
from pathlib import Path

import pytest

from driver.kubeletplugin.recovery import cleanup
from driver.runtime.files import mounts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")


def test_directories_shared_with_tenants_are_unmounted_and_not_walked(tmp_path: Path) -> None:
    node_paths = cleanup.NodePaths(
        "gpu.ration.dev", tmp_path / "kubelet", tmp_path / "cdi", tmp_path / "state"
    )
    mounted = [node_paths.state_dir / "mps/run/k/pipe", node_paths.state_dir / "mps/shm/k 1/shm"]
    for path in mounted:
        mounts.mount_tmpfs(path, 1 << 24)
    deep = "/".join(["d"] * 1_500)
    command = ("mkdir", "--parents", deep)
    subprocess.run(command, cwd=mounted[1], check=True)
    try:
        cleanup.clear_node(node_paths)
        assert list(node_paths.state_dir.iterdir()) == []
    finally:
        for path in mounted:
            mounts.unmount(path)
