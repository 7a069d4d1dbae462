"""A GPU whose processes run side by side under one MPS daemon (D10)."""

from collections.abc import Iterable

from driver import ids
from driver.api import v1alpha1
from driver.devices import faces
from driver.devices import mps as daemons
from driver.kubeletplugin import steps
from driver.kubeletplugin.sharing import time_slicing
from driver.sharing import terms

SERVE, UNSERVE = "mps-serve", "mps-leave"
EXCLUSIVE, SHARED_AGAIN = "compute-exclusive", "compute-default"
CLAIM, MEMORY, PERCENT, MULTI_USER = "claim", "memory", "percent", "multi_user"
SHM_BYTES = 4 << 30
"""Of a daemon's /dev/shm, taken as it is used: page-locked memory of all its clients is in it, and
64 MiB, a container's default, is too little (NV-11)."""


def part(
    grant: steps.Grant,
    face: faces.ShareFace,
    cdi_id: str,
    claim: str,
    config: v1alpha1.Config,
) -> steps.Part:
    """The claim's share of the GPU: its own limits for its processes, the daemon for all."""
    given = grant.of_share()
    environment = {
        **terms.share_environment(face.name, given),
        **terms.mps_environment(given, config),
    }
    edits = steps.Edits((face.gpu.uuid,), environment=environment, daemon=face.gpu.uuid)
    arguments: steps.Arguments = {
        CLAIM: claim,
        MEMORY: given.memory_bytes,
        PERCENT: given.compute_percent,
        MULTI_USER: int(given.multi_user),
    }
    return steps.Part(
        steps.planned(grant, cdi_id, edits),
        (
            *time_slicing.undivided(face),
            # The server is the one process of an exclusive GPU: what misses it is refused (3.2).
            steps.Step(EXCLUSIVE, SHARED_AGAIN, face.gpu.uuid, {CLAIM: claim}),
            steps.Step(SERVE, UNSERVE, face.gpu.uuid, arguments),
        ),
    )


def wanted(gpu: ids.GpuUuid, served: Iterable[steps.Step]) -> daemons.Desired | None:
    """The daemon of a GPU for these claims' steps; None where there is none of them.

    Its own limits are those of the largest share: a ceiling for clients that drop theirs.
    """
    known = [one.arguments for one in served]
    if not known:
        return None
    most = max(int(one[MEMORY]) for one in known)
    return daemons.Desired(
        key=gpu,
        devices=(gpu,),
        pinned_memory=(max(most // daemons.MIB, 1) * daemons.MIB,),
        active_thread_percentage=max(1, *(int(one[PERCENT]) for one in known)),
        multi_user=any(int(one[MULTI_USER]) for one in known),
        shm_bytes=SHM_BYTES,
    )
