"""What sysfs shows of a PCI device: its configuration space, its resources, its names.

Sources: PCI Local Bus Specification 3.0, 6.1 (the configuration header); Linux, "Accessing PCI
device resources through sysfs". Assumed: the sizes of BAR 0 and 3, and where the BARs lie.
"""

import struct

from simulator import machine

_NVIDIA, _CLASS_3D = 0x10DE, 0x030200
_CONFIGURATION_BYTES = 4096
_COMMAND, _STATUS = 0x0406, 0x0010
"""Memory, bus mastering, no INTx; a list of capabilities."""
_CAPABILITIES, _POINTER = 0x40, 0x34
_EXPRESS = 0x10
_MIB = 1 << 20
_REGISTERS_BYTES, _LAST_BAR_BYTES = 16 * _MIB, 32 * _MIB
_MEMORY, _PREFETCHED_64 = 0x00040200, 0x0014220C
_RESOURCES = 13


def texts(gpu: machine.Gpu) -> dict[str, str]:
    """The files of one line, and `resource`, without the last end of line."""
    ids = gpu.product.pci_ids
    device, subsystem = ids.device >> 16, ids.subsystem >> 16
    vendor = ids.subsystem & 0xFFFF
    return {
        "vendor": f"0x{_NVIDIA:04x}",
        "device": f"0x{device:04x}",
        "subsystem_vendor": f"0x{vendor:04x}",
        "subsystem_device": f"0x{subsystem:04x}",
        "class": f"0x{_CLASS_3D:06x}",
        "revision": "0xa1",
        "numa_node": str(gpu.slot.numa),
        "modalias": (f"pci:v{_NVIDIA:08X}d{device:08X}sv{vendor:08X}sd{subsystem:08X}bc03sc02i00"),
        "resource": _resources(gpu),
    }


def configuration(gpu: machine.Gpu) -> bytes:
    """The configuration space: a header of type 0, and PCI Express as its only capability."""
    ids = gpu.product.pci_ids
    space = bytearray(_CONFIGURATION_BYTES)
    class_and_revision = _CLASS_3D << 8 | 0xA1
    struct.pack_into(
        "<HHHHI", space, 0, _NVIDIA, ids.device >> 16, _COMMAND, _STATUS, class_and_revision
    )
    struct.pack_into("<HH", space, 0x2C, ids.subsystem & 0xFFFF, ids.subsystem >> 16)
    space[_POINTER], space[_CAPABILITIES] = _CAPABILITIES, _EXPRESS
    return bytes(space)


def _resources(gpu: machine.Gpu) -> str:
    """Start, end and flags of each resource: BAR 0 (registers), 1 (memory, 64 bits wide) and 3."""
    base = 0x2000_0000_0000 + (int(gpu.slot.pci[5:7], 16) << 40)
    bar1 = gpu.product.bar1_mib * _MIB
    ranges = {
        0: (0xA000_0000 + (int(gpu.slot.pci[5:7], 16) << 24), _REGISTERS_BYTES, _MEMORY),
        1: (base, bar1, _PREFETCHED_64),
        3: (base + bar1, _LAST_BAR_BYTES, _PREFETCHED_64),
    }
    rows = []
    for number in range(_RESOURCES):
        start, size, flags = ranges.get(number, (0, 0, 0))
        rows.append(f"0x{start:016x} 0x{start + size - 1 if size else 0:016x} 0x{flags:016x}")
    return "\n".join(rows)
