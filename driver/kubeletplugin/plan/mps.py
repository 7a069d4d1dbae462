"""A GPU whose processes run side by side under one MPS daemon (D10)."""

from collections.abc import Iterable

from driver import ids
from driver.api import v1alpha1
from driver.devices import faces
from driver.devices import mps_files as daemons
from driver.kubeletplugin.plan import steps, time_slicing
from driver.resources.sharing import compatibility

SERVE, UNSERVE = "mps-serve", "mps-leave"
EXCLUSIVE, SHARED_AGAIN = "compute-exclusive", "compute-default"
CLAIM, MEMORY, PERCENT, MULTI_USER = "claim", "memory", "percent", "multi_user"
SHM_BYTES = 4 << 30
"""Size of a daemon's /dev/shm, allocated on use: it holds the page-locked memory of all its
clients, and 64 MiB, a container's default, is too little (NV-11).
"""


def plan_share(
    grant: steps.Grant,
    face: faces.ShareFace,
    cdi_id: str,
    claim: str,
    config: v1alpha1.Config,
) -> steps.GrantPlan:
    """Plan the claim's share: its own limits for its processes, one daemon for all."""
    terms = grant.share_terms()
    environment = {
        **compatibility.share_environment(face.name, terms),
        **compatibility.mps_environment(terms, config),
    }
    edits = steps.Edits((face.gpu.uuid,), environment=environment, daemon=face.gpu.uuid)
    arguments: steps.Arguments = {
        CLAIM: claim,
        MEMORY: terms.memory_bytes,
        PERCENT: terms.compute_percent,
        MULTI_USER: int(terms.multi_user),
    }
    return steps.GrantPlan(
        steps.plan_device(grant, cdi_id, edits),
        (
            *time_slicing.disable_mig(face),
            # The server is the only process of an exclusive GPU: any other is refused (3.2).
            steps.Step(EXCLUSIVE, SHARED_AGAIN, face.gpu.uuid, {CLAIM: claim}),
            steps.Step(SERVE, UNSERVE, face.gpu.uuid, arguments),
        ),
    )


def desired_daemon(gpu: ids.GpuUuid, steps_served: Iterable[steps.Step]) -> daemons.Desired | None:
    """Return the daemon of a GPU for these claims' steps; None without any.

    Its own limits are those of the largest share: a ceiling for clients that drop theirs.
    """
    arguments = [step.arguments for step in steps_served]
    if not arguments:
        return None
    most = max(int(step[MEMORY]) for step in arguments)
    return daemons.Desired(
        key=gpu,
        devices=(gpu,),
        pinned_memory=(max(most // daemons.MIB, 1) * daemons.MIB,),
        active_thread_percentage=max(1, *(int(step[PERCENT]) for step in arguments)),
        multi_user=any(int(step[MULTI_USER]) for step in arguments),
        shm_bytes=SHM_BYTES,
    )
