"""Devices of one claim, whose containers run side by side under an MPS daemon of the claim's own.

NVIDIA's `mpsConfig` on whole GPUs and on a MIG device (D10). The daemon knows its devices by their
place among the claim's UUIDs, sorted, and so do the limits of its clients (node-layer §3.1). Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver import errors
from driver.api import v1alpha1
from driver.devices import faces
from driver.devices import mig as partition
from driver.devices import mps as daemons
from driver.kubeletplugin import steps
from driver.kubeletplugin.sharing import mig, mps, terms
from driver.resources import quantity

SERVE, LEAVE = "mps-serve-claim", "mps-leave-claim"
DEVICES, MEMORY = "devices", "memory"
"""Of a step: UUIDs and bytes, as lists with commas; a MIG device is named by its place instead."""
_ALL = 100
_VOLTA = (7, 0)


@dataclass(frozen=True, slots=True)
class Own:
    """A claim's own daemon: its devices in their order, and the limits that were asked, in bytes.

    `sizes` are of the devices; `limits` go by a device's place.
    """

    devices: tuple[str, ...]
    sizes: tuple[int, ...]
    limits: Mapping[int, int]
    settings: v1alpha1.Mps

    @property
    def environment(self) -> dict[str, str]:
        """What the clients are limited by, where the configuration says so."""
        found = terms.client_environment(self.settings)
        if self.limits:
            each = (f"{at}={size // daemons.MIB}M" for at, size in sorted(self.limits.items()))
            found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = ",".join(each)
        if self.settings.activeThreadPercentage is not None:
            percent = str(self.settings.activeThreadPercentage)
            found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = percent
        return found

    @property
    def arguments(self) -> steps.Arguments:
        """Of the step that has the daemon; what has no limit may take all of its device."""
        sizes = (self.limits.get(at, size) for at, size in enumerate(self.sizes))
        return {
            MEMORY: ",".join(str(size) for size in sizes),
            mps.PERCENT: self.settings.activeThreadPercentage or _ALL,
            mps.MULTI_USER: int(self.settings.multiUser),
        }


def of_claim(granted: Iterable[tuple[steps.Grant, v1alpha1.Config]]) -> Own | None:
    """The daemon that a claim's configuration asks for; None where it asks for none.

    Raises:
        BadInput: what cannot be had of the devices that the claim got.
    """
    found = [(grant.face, asked) for grant, config in granted if (asked := _asked(grant, config))]
    if not found:
        return None
    (first, settings), *others = found
    for face, other in others:
        if other != settings:
            problem = f"{first.name} and {face.name} are to have different settings"
            raise errors.BadInput("MPS", problem, "the same: one daemon serves the claim")
        if faces.MigFace in {type(first), type(face)}:
            problem = f"{first.name} and {face.name} are to be under one daemon"
            raise errors.BadInput("MPS", problem, "a MIG device alone: CUDA sees no more than one")
    sizes = {_uuid(face): _size(face) for face, _ in found}
    if settings.multiUser:
        _check_multi_user(face for face, _ in found)
    devices = tuple(sorted(sizes))
    limits = _limits(settings, devices, sizes)
    for at, uuid in enumerate(devices):
        if not sizes[uuid] and at not in limits:
            raise errors.BadInput("MPS", f"{uuid} does not tell its memory", "a limit for it")
    whole = tuple(sizes[uuid] // daemons.MIB * daemons.MIB for uuid in devices)
    return Own(devices, whole, limits, settings)


def served(
    parts: Sequence[steps.Part],
    granted: Sequence[tuple[steps.Grant, v1alpha1.Config]],
    claim: str,
) -> tuple[steps.Part, ...]:
    """The parts of a claim, those that its configuration says so for under its own daemon.

    Raises BadInput as `of_claim`.
    """
    own = of_claim(granted)
    if own is None:
        return tuple(parts)
    under = [number for number, one in enumerate(granted) if _asked(*one)]
    changed = list(parts)
    for number in under:
        changed[number] = _under(parts[number], own, claim)
    last = changed[under[-1]]
    changed[under[-1]] = replace(last, steps=(*last.steps, _serving(last.device, own, claim)))
    return tuple(changed)


def wanted(step: steps.Step, devices: Sequence[str]) -> daemons.Desired:
    """The daemon of a step, over these devices."""
    known = step.arguments
    return daemons.Desired(
        key=str(known[mps.CLAIM]),
        devices=tuple(devices),
        pinned_memory=tuple(int(one) for one in str(known[MEMORY]).split(",")),
        active_thread_percentage=int(known[mps.PERCENT]),
        multi_user=bool(known[mps.MULTI_USER]),
        shm_bytes=mps.SHM_BYTES,
    )


def place(step: steps.Step) -> partition.Place | None:
    """Where the MIG device of a step is; None for whole GPUs."""
    return None if DEVICES in step.arguments else mig.place(step)


def devices(step: steps.Step) -> tuple[str, ...]:
    """The UUIDs of a step's whole GPUs, in the daemon's order."""
    return tuple(str(step.arguments[DEVICES]).split(","))


def _asked(grant: steps.Grant, config: v1alpha1.Config) -> v1alpha1.Mps | None:
    """Who only looks changes nothing; a GPU that claims share has a daemon for all of them."""
    alone = isinstance(grant.face, faces.WholeFace | faces.MigFace) and not grant.admin_access
    served = config.sharing if isinstance(config.sharing, v1alpha1.MpsSharing) else None
    return served.mps if alone and served else None


def _under(part: steps.Part, own: Own, claim: str) -> steps.Part:
    edits = replace(part.device.edits, environment=own.environment, daemon=claim)
    device = replace(part.device, edits=edits)
    if edits.instance is not None:
        return steps.Part(device, part.steps)
    # As with shares: whoever misses the server is refused, and does not run beside it (3.2).
    exclusive = steps.Step(mps.EXCLUSIVE, mps.SHARED_AGAIN, device.gpu, {mps.CLAIM: claim})
    return steps.Part(device, (*part.steps, exclusive))


def _serving(device: steps.PlannedDevice, own: Own, claim: str) -> steps.Step:
    """After everything else of its devices; a MIG device's UUID is known only then."""
    place = device.edits.instance
    on = mig.arguments(place) if place else {DEVICES: ",".join(own.devices)}
    return steps.Step(SERVE, LEAVE, device.gpu, {mps.CLAIM: claim, **own.arguments, **on})


def _uuid(face: faces.Face) -> str:
    """Of a MIG device that is still to be made: its name, which no limit can be for."""
    if isinstance(face, faces.MigFace):
        return str(face.instance.uuid) if face.instance else face.name
    return face.gpu.uuid


def _size(face: faces.Face) -> int:
    """In bytes; 0 where the device does not tell."""
    if isinstance(face, faces.MigFace):
        return face.profile.memory_bytes
    return face.gpu.memory_bytes or 0


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
    asked = quantity.parse(amount).units // daemons.MIB * daemons.MIB
    if not asked or (size and asked > size):
        most = f", {size // daemons.MIB}Mi at most" if size else ""
        raise errors.BadInput(
            f"MPS memory limit of {device}", f"is {amount}", f"1Mi at least{most}"
        )
    return asked


def _check_multi_user(found: Iterable[faces.Face]) -> None:
    for face in found:
        if face.gpu.cuda_capability < _VOLTA:
            has = ".".join(str(part) for part in face.gpu.cuda_capability)
            problem = f"{face.name} has compute capability {has}"
            raise errors.BadInput("MPS multiUser", problem, "7.0 at least")
