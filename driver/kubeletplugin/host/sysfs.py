"""Attributes of a PCI device in sysfs, under a host root."""

import contextlib
import re
from pathlib import Path

from driver import ids

_ROOT = re.compile(r"(?:^|/)(pci[0-9a-f]{4}:[0-9a-f]{2})(?:/|$)")


def pcie_root(host_root: Path, pci: ids.PciAddress) -> str | None:
    """Return `pci0000:50`, the root complex in the path of the device's link."""
    with contextlib.suppress(OSError):
        match = _ROOT.search(str(_entry(host_root, pci).readlink()))
        return match[1] if match else None
    return None


def numa_node(host_root: Path, pci: ids.PciAddress) -> int | None:
    """Return the NUMA node; None if the machine has none (sysfs: -1)."""
    with contextlib.suppress(OSError, ValueError):
        node = int((_entry(host_root, pci) / "numa_node").read_text())
        return node if node >= 0 else None
    return None


def _entry(host_root: Path, pci: ids.PciAddress) -> Path:
    return host_root / "sys/bus/pci/devices" / pci
