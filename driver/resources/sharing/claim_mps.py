"""Devices of one claim under an MPS daemon of the claim's own: what may be, and the limits (D10).

The daemon knows its devices by their place among the claim's UUIDs, sorted, and so do the limits of
its clients (NV-12).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver import errors
from driver.api import v1alpha1
from driver.devices import mps_files as daemons
from driver.resources import quantities
from driver.resources.sharing import compatibility
from driver.resources.sharing import multi_user as sharing_multi_user


@dataclass(frozen=True, slots=True)
class Device:
    """A device for the daemon: `size` in bytes, 0 where it does not tell.

    The `uuid` of a MIG device that is still to be made is its name, which no limit can be for.
    """

    name: str
    uuid: str
    size: int
    is_mig: bool
    server: sharing_multi_user.MpsServer = sharing_multi_user.ANY


@dataclass(frozen=True, slots=True)
class ClaimMpsServer:
    """A claim's own daemon: its devices in their order, and the limits that were asked, in bytes.

    `sizes` are of the devices; `limits` go by a device's place. `multi_user` is as `users` decides.
    """

    devices: tuple[str, ...]
    sizes: tuple[int, ...]
    limits: Mapping[int, int]
    settings: v1alpha1.Mps
    multi_user: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """What the clients are limited by, where the configuration says so.

        The daemon has the memory limits too. Clients are told them of one device alone: of several
        a process may see a part, and a limit for a device that it does not see takes all away.
        """
        found = compatibility.client_environment(self.settings)
        if self.limits and len(self.devices) == 1:
            found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={self.limits[0] // daemons.MIB}M"
        if self.settings.activeThreadPercentage is not None:
            percent = str(self.settings.activeThreadPercentage)
            found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = percent
        return found


def claim_mps_server(found: Sequence[tuple[Device, v1alpha1.Mps]]) -> ClaimMpsServer | None:
    """The daemon that is asked for these devices; None for no device.

    Raises:
        BadInput: what cannot be had of them.
    """
    if not found:
        return None
    (first, settings), *others = found
    for device, other in others:
        if other != settings:
            problem = f"{first.name} and {device.name} are to have different settings"
            raise errors.BadInput("MPS", problem, "the same: one daemon serves the claim")
        if first.is_mig or device.is_mig:
            problem = f"{first.name} and {device.name} are to be under one daemon"
            raise errors.BadInput("MPS", problem, "a MIG device alone: CUDA sees no more than one")
    sizes = {device.uuid: device.size for device, _ in found}
    devices = tuple(sorted(sizes))
    limits = _limits(settings, devices, sizes)
    for at, uuid in enumerate(devices):
        if not sizes[uuid] and at not in limits:
            raise errors.BadInput("MPS", f"{uuid} does not tell its memory", "a limit for it")
    whole = tuple(sizes[uuid] // daemons.MIB * daemons.MIB for uuid in devices)
    return ClaimMpsServer(devices, whole, limits, settings, _multi_user(settings, found))


def _limits(
    settings: v1alpha1.Mps, devices: Sequence[str], sizes: Mapping[str, int]
) -> dict[int, int]:
    found: dict[int, int] = {}
    if settings.pinnedMemory is not None:
        every = settings.pinnedMemory
        found = {at: _limit(every, uuid, sizes[uuid]) for at, uuid in enumerate(devices)}
    named: dict[int, str] = {}
    for at, key in _places(settings.pinnedMemoryPerDevice, devices):
        if at in named:
            problem = f"{named[at]} and {key} are one device"
            raise errors.BadInput("MPS memory limits", problem, "each device once")
        named[at] = key
        uuid = devices[at]
        found[at] = _limit(settings.pinnedMemoryPerDevice[key], uuid, sizes[uuid])
    return found


def _places(keys: Iterable[str], devices: Sequence[str]) -> Iterator[tuple[int, str]]:
    known = {**{str(at): at for at in range(len(devices))}, **{u: a for a, u in enumerate(devices)}}
    for key in keys:
        if key not in known:
            problem = f"{key} is no device of the claim"
            raise errors.BadInput("MPS memory limits", problem, f"one of {', '.join(known)}")
        yield known[key], key


def _limit(amount: str, device: str, size: int) -> int:
    """In whole MiB, cut off, as the daemon takes it."""
    asked = quantities.parse(amount).units // daemons.MIB * daemons.MIB
    if not asked or (size and asked > size):
        most = f", {size // daemons.MIB}Mi at most" if size else ""
        raise errors.BadInput(
            f"MPS memory limit of {device}", f"is {amount}", f"1Mi at least{most}"
        )
    return asked


def _multi_user(settings: v1alpha1.Mps, devices: Iterable[tuple[Device, v1alpha1.Mps]]) -> bool:
    """Whether the daemon serves several users at once: it runs for nobody else yet."""
    servers = [(device.name, device.server) for device, _ in devices]
    for name, server in servers:
        if settings.multiUser and server.missing_support:
            raise errors.BadInput("MPS multiUser", f"{name} has {server.missing_support}")
    return all(server.serves_several(settings.multiUser) for _, server in servers)
