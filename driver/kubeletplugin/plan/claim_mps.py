"""Claims whose containers share their devices under an MPS daemon of the claim's own.

NVIDIA's `mpsConfig` on whole GPUs and on a MIG device (D10). The daemon addresses devices by their
index in the claim's sorted UUIDs, and so do its clients' limits (NV-12). Pure.
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
"""Step arguments: UUIDs and bytes, as lists with commas; a MIG device is given by its placement
instead.
"""
_ALL = 100


def claim_daemon(
    granted: Iterable[tuple[steps.Grant, v1alpha1.Config]],
) -> claim_mps.ClaimMpsServer | None:
    """Return the daemon that a claim's configuration requests; None if none.

    Raises:
        BadInput: the request cannot be met by the claim's devices.
    """
    devices = [
        (_daemon_device(grant.face), requested)
        for grant, config in granted
        if (requested := _mps_config(grant, config))
    ]
    return claim_mps.claim_mps_server(devices)


def step_arguments(daemon: claim_mps.ClaimMpsServer) -> steps.Arguments:
    """Return the arguments of the step that runs the daemon; no limit means all of the device."""
    sizes = (daemon.limits.get(index, size) for index, size in enumerate(daemon.sizes))
    return {
        MEMORY: ",".join(str(size) for size in sizes),
        mps.PERCENT: daemon.settings.activeThreadPercentage or _ALL,
        mps.MULTI_USER: int(daemon.multi_user),
    }


def add_daemon(
    parts: Sequence[steps.GrantPlan],
    granted: Sequence[tuple[steps.Grant, v1alpha1.Config]],
    claim: str,
) -> tuple[steps.GrantPlan, ...]:
    """Return the claim's plans, those with MPS configured using its own daemon.

    Raises BadInput as `claim_daemon`.
    """
    daemon = claim_daemon(granted)
    if daemon is None:
        return tuple(parts)
    indices = [index for index, pair in enumerate(granted) if _mps_config(*pair)]
    changed = list(parts)
    for index in indices:
        changed[index] = _use_daemon(parts[index], daemon, claim)
    last = changed[indices[-1]]
    changed[indices[-1]] = replace(
        last, steps=(*last.steps, _serve_step(last.device, daemon, claim))
    )
    return tuple(changed)


def desired_daemon(step: steps.Step, devices: Sequence[str]) -> daemons.Desired:
    """Return the daemon of a step, over these devices."""
    arguments = step.arguments
    return daemons.Desired(
        key=str(arguments[mps.CLAIM]),
        devices=tuple(devices),
        pinned_memory=tuple(int(size) for size in str(arguments[MEMORY]).split(",")),
        active_thread_percentage=int(arguments[mps.PERCENT]),
        multi_user=bool(arguments[mps.MULTI_USER]),
        shm_bytes=mps.SHM_BYTES,
    )


def step_instance(step: steps.Step) -> partition.InstanceRef | None:
    """Return the MIG device of a step; None for whole GPUs."""
    return None if DEVICES in step.arguments else mig.step_instance(step)


def step_devices(step: steps.Step) -> tuple[str, ...]:
    """Return the UUIDs of a step's whole GPUs, in the daemon's order."""
    return tuple(str(step.arguments[DEVICES]).split(","))


def _mps_config(grant: steps.Grant, config: v1alpha1.Config) -> v1alpha1.Mps | None:
    """Return the MPS configuration; None for admin access, and for GPUs shared by claims."""
    eligible = isinstance(grant.face, faces.WholeFace | faces.MigFace) and not grant.admin_access
    served = config.sharing if isinstance(config.sharing, v1alpha1.MpsSharing) else None
    return served.mps if eligible and served else None


def _use_daemon(
    part: steps.GrantPlan, daemon: claim_mps.ClaimMpsServer, claim: str
) -> steps.GrantPlan:
    edits = replace(part.device.edits, environment=daemon.environment, daemon=claim)
    device = replace(part.device, edits=edits)
    if edits.instance is not None:
        return steps.GrantPlan(device, part.steps)
    # As with shares: a process that misses the server is refused, and does not run beside it (3.2).
    exclusive = steps.Step(mps.EXCLUSIVE, mps.SHARED_AGAIN, device.gpu, {mps.CLAIM: claim})
    return steps.GrantPlan(device, (*part.steps, exclusive))


def _serve_step(
    device: steps.PlannedDevice, daemon: claim_mps.ClaimMpsServer, claim: str
) -> steps.Step:
    """Return the last step of its devices; a MIG device's UUID is known only then."""
    instance = device.edits.instance
    target = mig.instance_arguments(instance) if instance else {DEVICES: ",".join(daemon.devices)}
    return steps.Step(
        SERVE, LEAVE, device.gpu, {mps.CLAIM: claim, **step_arguments(daemon), **target}
    )


def _daemon_device(face: faces.Face) -> claim_mps.Device:
    is_mig = isinstance(face, faces.MigFace)
    return claim_mps.Device(
        name=face.name,
        uuid=_device_uuid(face),
        size=_device_bytes(face),
        is_mig=is_mig,
        server=multi_user.MpsServer(
            multi_user.major(face.gpu.driver_version), face.gpu.cuda_capability
        ),
    )


def _device_uuid(face: faces.Face) -> str:
    """Return the UUID; for a MIG device to be created its name, which no limit can match."""
    if isinstance(face, faces.MigFace):
        return str(face.instance.uuid) if face.instance else face.name
    return face.gpu.uuid


def _device_bytes(face: faces.Face) -> int:
    """Return the size in bytes; 0 if the device does not report it."""
    if isinstance(face, faces.MigFace):
        return face.profile.memory_bytes
    return face.gpu.memory_bytes or 0
