"""Limits of MPS: how they are written, and which one binds.

Sources: MPS documentation, "Legacy MPS v2 Interface" and "Environment Variables". How a limit is
shown again: captures of 535.261.03 and 550.163.01. That a limit under a UUID binds (from 580 on in
the daemon too), and that a client's for a GPU it does not see drops every limit: seen under
580.159.04 on an H100 and an H200; taken for true everywhere. The scaling of the number of
clients with MIG slices, and two connections being what a client counts for, are assumed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MIB = 1 << 20
GIB = 1 << 30
PRIORITIES = (0, 1)
"""Normal, and below normal."""

DEFAULT_CONNECTIONS = 2
"""CUDA_DEVICE_MAX_CONNECTIONS of an MPS client, from Volta on."""

_CLIENTS_SINCE = {590: 60, 0: 48}
"""Driver major to clients of a device, newest first."""

_SIZE = re.compile(r"(\d+)([GM])B?")
_PERCENTAGE = re.compile(r"\d{1,3}(\.\d+)?")


@dataclass(slots=True)
class Limits:
    """Of a server, or the defaults of a daemon. `memory` is in bytes by device as it was typed."""

    percentage: float = 100.0
    memory: dict[str, int] = field(default_factory=dict)
    priority: int = 0

    def copy(self) -> "Limits":
        """For a server that starts now."""
        return Limits(self.percentage, dict(self.memory), self.priority)


def parse_size(text: str) -> int | None:
    """Bytes of `10G` or `512M`; None for anything else."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    return int(found[1]) * (GIB if found[2] == "G" else MIB)


def render_size(limit: int) -> str:
    """As the daemon shows it: whole GiB from 1 GiB on, the rest cut off."""
    return f"{limit // GIB}G" if limit >= GIB else f"{limit // MIB}M"


def parse_percentage(text: str) -> float | None:
    """Above 0 and at most 100; None for anything else."""
    if _PERCENTAGE.fullmatch(text) is None or not 0 < float(text) <= 100:  # noqa: PLR2004
        return None
    return float(text)


def render_percentage(value: float) -> str:
    """With one decimal."""
    return f"{value:.1f}"


def parse_pinned(text: str) -> dict[str, int]:
    """CUDA_MPS_PINNED_DEVICE_MEM_LIMIT (`0=1G,1=512M`) in bytes, without what is malformed."""
    pairs = (item.strip().partition("=") for item in text.split(",") if item)
    sizes = {device: parse_size(size) for device, _, size in pairs}
    return {device: size for device, size in sizes.items() if size is not None}


def bound_memory(
    server: Mapping[str, int], asked: Mapping[str, int], devices: Sequence[tuple[int, str]]
) -> list[int | None]:
    """The limit that binds a client on each of the `devices` that it sees; None without one.

    `devices` are the server's index of each and its UUID, in the client's own order. The server's
    limits go by its index, and where that has none by UUID, the client's by its own number or by
    UUID; the smallest binds. A client that names a device which it does not see has no limit at
    all, not even the server's.
    """
    named = [{str(own), uuid} for own, (_, uuid) in enumerate(devices)]
    if not set(asked) <= set().union(*named):
        return [None] * len(devices)
    bound: list[int | None] = []
    for names, (index, uuid) in zip(named, devices, strict=True):
        limits = [asked[name] for name in names if name in asked]
        own = server.get(str(index), server.get(uuid))
        limits += [] if own is None else [own]
        bound.append(min(limits, default=None))
    return bound


def percentage_of(server: float, asked: str) -> float:
    """A client may only lower it; what cannot be read changes nothing."""
    wanted = parse_percentage(asked)
    return server if wanted is None else min(server, wanted)


def priority_of(server: int, asked: str) -> int:
    """A client's own, where it gives one of `PRIORITIES`."""
    return int(asked) if asked in map(str, PRIORITIES) else server


def connections_of(asked: str) -> int:
    """CUDA_DEVICE_MAX_CONNECTIONS, 1 to 32; the default for anything else."""
    known = asked.isdigit() and 1 <= int(asked) <= 32  # noqa: PLR2004 - CUDA's range
    return int(asked) if known else DEFAULT_CONNECTIONS


def most_clients(driver_major: int, slices: int = 1, of_slices: int = 1) -> int:
    """Of one device; a MIG device with so many slices of its GPU has its part."""
    whole = next(most for since, most in _CLIENTS_SINCE.items() if driver_major >= since)
    return whole * slices // of_slices
