"""Control devices that a machine lacks after its boot, made for real."""

import os
import stat
from pathlib import Path

import pytest

from driver.kubeletplugin.host import control_nodes, driver_root
from tests.fakes import gpunode

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are root's")


#
def test_the_host_has_them_from_then_on(tmp_path: Path) -> None:
    root, host = tmp_path / "host/run/nvidia/driver", tmp_path / "host"
    (host / "dev").mkdir(parents=True)
    gpunode.write(host / "proc/devices", "Character devices:\n195 nvidia\n507 nvidia-uvm\n")
    driver = driver_root.DriverRoot(root, host=host)
    first = tuple(control_nodes.read_nodes(driver, host))
    stat_results = {path.name: path.stat() for path in (host / "dev").iterdir()}
    assert {
        name: (os.major(node.st_rdev), os.minor(node.st_rdev))
        for name, node in stat_results.items()
    } == {
        "nvidiactl": (195, 255),
        "nvidia-uvm": (507, 0),
        "nvidia-uvm-tools": (507, 1),
    }
    assert {stat.S_IMODE(node.st_mode) for node in stat_results.values()} == {0o666}
    assert tuple(control_nodes.read_nodes(driver, host)) == first
