"""Devices of one claim, whose containers run side by side under an MPS daemon of the claim's own.

NVIDIA's `mpsConfig` on whole GPUs and on a MIG device (D10). The daemon knows its devices by their
place among the claim's UUIDs, sorted, and so do the limits of its clients (NV-12). Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from driver.api import v1alpha1
from driver.devices import faces
from driver.devices import mig as partition
from driver.devices import mps_files as daemons
from driver.kubeletplugin.plan import mig, mps, steps
from driver.resources.sharing import claim_mps, multi_user

SERVE, LEAVE = "mps-serve-claim", "mps-leave-claim"
DEVICES, MEMORY = "devices", "memory"
"""Of a step: UUIDs and bytes, as lists with commas; a MIG device is named by its place instead."""
_ALL = 100


def claim_daemon(granted: Iterable[tuple[steps.Grant, v1alpha1.Config]]) -> claim_mps.Own | None:
    """The daemon that a claim's configuration asks for; None where it asks for none.

    Raises:
        BadInput: what cannot be had of the devices that the claim got.
    """
    found = [
        (_daemon_device(grant.face), asked)
        for grant, config in granted
        if (asked := _mps_config(grant, config))
    ]
    return claim_mps.of_devices(found)


def step_arguments(own: claim_mps.Own) -> steps.Arguments:
    """Of the step that has the daemon; what has no limit may take all of its device."""
    sizes = (own.limits.get(at, size) for at, size in enumerate(own.sizes))
    return {
        MEMORY: ",".join(str(size) for size in sizes),
        mps.PERCENT: own.settings.activeThreadPercentage or _ALL,
        mps.MULTI_USER: int(own.multi_user),
    }


def add_daemon(
    parts: Sequence[steps.GrantPlan],
    granted: Sequence[tuple[steps.Grant, v1alpha1.Config]],
    claim: str,
) -> tuple[steps.GrantPlan, ...]:
    """The parts of a claim, those that its configuration says so for under its own daemon.

    Raises BadInput as `of_claim`.
    """
    own = claim_daemon(granted)
    if own is None:
        return tuple(parts)
    under = [number for number, one in enumerate(granted) if _mps_config(*one)]
    changed = list(parts)
    for number in under:
        changed[number] = _use_daemon(parts[number], own, claim)
    last = changed[under[-1]]
    changed[under[-1]] = replace(last, steps=(*last.steps, _serve_step(last.device, own, claim)))
    return tuple(changed)


def desired_daemon(step: steps.Step, devices: Sequence[str]) -> daemons.Desired:
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


def step_instance(step: steps.Step) -> partition.InstanceRef | None:
    """Where the MIG device of a step is; None for whole GPUs."""
    return None if DEVICES in step.arguments else mig.step_instance(step)


def step_devices(step: steps.Step) -> tuple[str, ...]:
    """The UUIDs of a step's whole GPUs, in the daemon's order."""
    return tuple(str(step.arguments[DEVICES]).split(","))


def _mps_config(grant: steps.Grant, config: v1alpha1.Config) -> v1alpha1.Mps | None:
    """Who only looks changes nothing; a GPU that claims share has a daemon for all of them."""
    alone = isinstance(grant.face, faces.WholeFace | faces.MigFace) and not grant.admin_access
    served = config.sharing if isinstance(config.sharing, v1alpha1.MpsSharing) else None
    return served.mps if alone and served else None


def _use_daemon(part: steps.GrantPlan, own: claim_mps.Own, claim: str) -> steps.GrantPlan:
    edits = replace(part.device.edits, environment=own.environment, daemon=claim)
    device = replace(part.device, edits=edits)
    if edits.instance is not None:
        return steps.GrantPlan(device, part.steps)
    # As with shares: whoever misses the server is refused, and does not run beside it (3.2).
    exclusive = steps.Step(mps.EXCLUSIVE, mps.SHARED_AGAIN, device.gpu, {mps.CLAIM: claim})
    return steps.GrantPlan(device, (*part.steps, exclusive))


def _serve_step(device: steps.PlannedDevice, own: claim_mps.Own, claim: str) -> steps.Step:
    """After everything else of its devices; a MIG device's UUID is known only then."""
    place = device.edits.instance
    on = mig.instance_arguments(place) if place else {DEVICES: ",".join(own.devices)}
    return steps.Step(SERVE, LEAVE, device.gpu, {mps.CLAIM: claim, **step_arguments(own), **on})


def _daemon_device(face: faces.Face) -> claim_mps.Device:
    parted = isinstance(face, faces.MigFace)
    return claim_mps.Device(
        name=face.name,
        uuid=_device_uuid(face),
        size=_device_bytes(face),
        is_mig=parted,
        server=multi_user.Server(
            multi_user.major(face.gpu.driver_version), face.gpu.cuda_capability
        ),
    )


def _device_uuid(face: faces.Face) -> str:
    """Of a MIG device that is still to be made: its name, which no limit can be for."""
    if isinstance(face, faces.MigFace):
        return str(face.instance.uuid) if face.instance else face.name
    return face.gpu.uuid


def _device_bytes(face: faces.Face) -> int:
    """In bytes; 0 where the device does not tell."""
    if isinstance(face, faces.MigFace):
        return face.profile.memory_bytes
    return face.gpu.memory_bytes or 0
