"""Control devices that CUDA needs in every container; missing ones are created.

nvidiactl and those of nvidia-uvm are created by the first CUDA program, through nvidia-modprobe: a
machine on which only NVML ran since its boot has none. Majors are the kernel's (/proc/devices),
minors the driver's contract (nvidia-modprobe-utils.h of nvidia-modprobe).
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import structlog

from driver.kubeletplugin.host import device_node, driver_root

_log = structlog.get_logger(__name__)
_NEEDED = {
    "nvidiactl": (("nvidia", "nvidiactl", "nvidia-frontend"), 255),
    "nvidia-uvm": (("nvidia-uvm",), 0),
    "nvidia-uvm-tools": (("nvidia-uvm",), 1),
}
"""By device name: its driver's names in /proc/devices, and its minor."""
_OPTIONAL = ("nvidia-modeset",)
_MODE = 0o666


def read_nodes(root: driver_root.DriverRoot, host: Path) -> Iterator[device_node.DeviceNode]:
    """Yield the devices with their numbers, creating missing ones; `host` has /proc.

    Raises DriverNotReady if a kernel module is not loaded.
    """
    for name, (drivers, minor) in _NEEDED.items():
        yield root.node(name) or _make_node(root, name, _major(host, drivers), minor)
    for name in _OPTIONAL:
        if (node := root.node(name)) is not None:
            yield node


def _major(host: Path, drivers: tuple[str, ...]) -> int:
    path = host / "proc/devices"
    try:
        text = path.read_text(errors="replace")
    except OSError as e:
        raise driver_root.DriverNotReady("read", str(path), str(e)) from e
    characters = text.partition("Block devices")[0]
    lines = (line.split() for line in characters.splitlines())
    majors = {
        fields[1]: int(fields[0]) for fields in lines if len(fields) > 1 and fields[0].isdigit()
    }
    major = next((majors[driver] for driver in drivers if driver in majors), None)
    if major is None:
        text = (
            f"{drivers[0]} is not loaded; expected the kernel module, as by modprobe {drivers[0]}"
        )
        raise driver_root.DriverNotReady("use", str(path), text)
    return major


def _make_node(
    root: driver_root.DriverRoot, name: str, major: int, minor: int
) -> device_node.DeviceNode:
    """Create the device, as a node on the host too: pods with user namespaces get that node.

    Other containers get the numbers, so a read-only /dev is no failure.
    """
    path = (root.host or root.path) / "dev" / name
    try:
        os.mknod(path, stat.S_IFCHR | _MODE, os.makedev(major, minor))
        path.chmod(_MODE)  # whatever the umask
        _log.info("device node made", path=str(path), major=major, minor=minor)
    except OSError as e:
        _log.debug("device node not made", path=str(path), problem=str(e))
    return device_node.DeviceNode(f"/dev/{name}", str(path), major, minor)
