from pathlib import Path

import pytest

from driver import ids
from driver.kubeletplugin.host import sysfs

PCI = ids.PciAddress("0000:53:00.0")


@pytest.fixture
def host(tmp_path: Path) -> Path:
    path = tmp_path / "sys/devices/pci0000:50/0000:50:01.0/0000:53:00.0"
    path.mkdir(parents=True)
    (path / "numa_node").write_text("1\n")
    links = tmp_path / "sys/bus/pci/devices"
    links.mkdir(parents=True)
    (links / PCI).symlink_to("../../../devices/pci0000:50/0000:50:01.0/0000:53:00.0")
    return tmp_path


def test_root_and_numa_node_are_read_through_the_link(host: Path) -> None:
    assert sysfs.pcie_root(host, PCI) == "pci0000:50"
    assert sysfs.numa_node(host, PCI) == 1


def test_minus_one_is_no_numa_node(host: Path) -> None:
    (host / "sys/bus/pci/devices" / PCI / "numa_node").write_text("-1\n")
    assert sysfs.numa_node(host, PCI) is None


def test_a_device_that_sysfs_does_not_have_is_unknown(tmp_path: Path) -> None:
    assert sysfs.pcie_root(tmp_path, PCI) is None
    assert sysfs.numa_node(tmp_path, PCI) is None
