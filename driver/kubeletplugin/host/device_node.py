"""A device node of the host, as a CDI spec names it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A character device with its numbers: the runtime does not look up the host's node."""

    path: str
    host_path: str
    major: int
    minor: int
