"""Named types for values that would otherwise all be `str`."""

from typing import NewType

ClaimUid = NewType("ClaimUid", str)
PodUid = NewType("PodUid", str)
NodeName = NewType("NodeName", str)
GpuUuid = NewType("GpuUuid", str)
"""`GPU-` and a UUID, as NVML gives it (nvmlDeviceGetUUID)."""
MigUuid = NewType("MigUuid", str)
"""`MIG-` and a UUID (since R470); a recreated instance has another."""
PciAddress = NewType("PciAddress", str)
"""Lower case, four-digit domain: `0000:18:00.0`, as sysfs names it."""
DeviceName = NewType("DeviceName", str)
"""A device's name in its pool: `gpu-0000-18-00-0`."""
Key = NewType("Key", str)
"""`namespace/name`, or `name` for objects without a namespace."""
