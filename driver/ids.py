"""Names of types that would otherwise all be `str`."""

from typing import NewType

ClaimUid = NewType("ClaimUid", str)
PodUid = NewType("PodUid", str)
NodeName = NewType("NodeName", str)
GpuUuid = NewType("GpuUuid", str)
"""`GPU-` and a UUID, as NVML gives it (nvmlDeviceGetUUID)."""
PciAddress = NewType("PciAddress", str)
"""Lower case, four-digit domain: `0000:18:00.0`, as sysfs names it."""
DeviceName = NewType("DeviceName", str)
"""A device's name in its pool: `gpu-0000-18-00-0`."""
Key = NewType("Key", str)
"""`namespace/name`, or `name` for what has no namespace."""
