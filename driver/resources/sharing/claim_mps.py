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
        """Return the environment that limits clients, where the configuration sets limits.

        The daemon has the memory limits too. Clients get those of one device alone: of several a
        process may see a part, and a limit for a device that it does not see leaves it no memory.
        """
        result = compatibility.client_environment(self.settings)
        if self.limits and len(self.devices) == 1:
            result["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={self.limits[0] // daemons.MIB}M"
        if self.settings.activeThreadPercentage is not None:
            percent = str(self.settings.activeThreadPercentage)
            result["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = percent
        return result


def claim_mps_server(result: Sequence[tuple[Device, v1alpha1.Mps]]) -> ClaimMpsServer | None:
    """The daemon that is asked for these devices; None for no device.

    Raises:
        BadInput: what cannot be had of them.
    """
    if not result:
        return None
    (first, settings), *others = result
    for device, other in others:
        if other != settings:
            problem = f"{first.name} and {device.name} are to have different settings"
            raise errors.BadInput("MPS", problem, "the same: one daemon serves the claim")
        if first.is_mig or device.is_mig:
            problem = f"{first.name} and {device.name} are to be under one daemon"
            raise errors.BadInput("MPS", problem, "a MIG device alone: CUDA sees no more than one")
    sizes = {device.uuid: device.size for device, _ in result}
    devices = tuple(sorted(sizes))
    limits = _limits(settings, devices, sizes)
    for path, uuid in enumerate(devices):
        if not sizes[uuid] and path not in limits:
            raise errors.BadInput("MPS", f"{uuid} does not tell its memory", "a limit for it")
    whole = tuple(sizes[uuid] // daemons.MIB * daemons.MIB for uuid in devices)
    return ClaimMpsServer(devices, whole, limits, settings, _multi_user(settings, result))


def _limits(
    settings: v1alpha1.Mps, devices: Sequence[str], sizes: Mapping[str, int]
) -> dict[int, int]:
    entries: dict[int, int] = {}
    if settings.pinnedMemory is not None:
        every = settings.pinnedMemory
        entries = {path: _limit(every, uuid, sizes[uuid]) for path, uuid in enumerate(devices)}
    named: dict[int, str] = {}
    for path, key in _places(settings.pinnedMemoryPerDevice, devices):
        if path in named:
            problem = f"{named[path]} and {key} are one device"
            raise errors.BadInput("MPS memory limits", problem, "each device once")
        named[path] = key
        uuid = devices[path]
        entries[path] = _limit(settings.pinnedMemoryPerDevice[key], uuid, sizes[uuid])
    return entries


def _places(keys: Iterable[str], devices: Sequence[str]) -> Iterator[tuple[int, str]]:
    devices_known = {
        **{str(path): path for path in range(len(devices))},
        **{u: a for a, u in enumerate(devices)},
    }
    for key in keys:
        if key not in devices_known:
            problem = f"{key} is no device of the claim"
            raise errors.BadInput(
                "MPS memory limits", problem, f"one of {', '.join(devices_known)}"
            )
        yield devices_known[key], key


def _limit(amount: str, device: str, size: int) -> int:
    """In whole MiB, cut off, as the daemon takes it."""
    requested = quantities.parse(amount).units // daemons.MIB * daemons.MIB
    if not requested or (size and requested > size):
        most = f", {size // daemons.MIB}Mi at most" if size else ""
        raise errors.BadInput(
            f"MPS memory limit of {device}", f"is {amount}", f"1Mi at least{most}"
        )
    return requested


def _multi_user(settings: v1alpha1.Mps, devices: Iterable[tuple[Device, v1alpha1.Mps]]) -> bool:
    """Return whether the daemon serves several users at once: it runs for nobody else yet."""
    servers = [(device.name, device.server) for device, _ in devices]
    for name, server in servers:
        if settings.multiUser and server.missing_support:
            raise errors.BadInput("MPS multiUser", f"{name} has {server.missing_support}")
    return all(server.serves_several(settings.multiUser) for _, server in servers)
