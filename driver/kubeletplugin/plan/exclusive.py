"""A whole GPU for one claim: its device node; the only setup is to disable MIG."""

from driver.devices import faces
from driver.kubeletplugin.plan import mig, steps


def plan_whole(
    grant: steps.Grant, face: faces.WholeFace | faces.MonitorFace, cdi_id: str
) -> steps.GrantPlan:
    """Plan the whole GPU; MIG is off while it is held and restored afterwards."""
    device = steps.plan_device(grant, cdi_id, steps.Edits((face.gpu.uuid,)))
    partitioned = face.gpu.mig is not None and face.gpu.mig.enabled
    if not partitioned or grant.admin_access:
        return steps.GrantPlan(device)
    return steps.GrantPlan(device, (mig.mode_step(mig.OFF, mig.ON_AGAIN, face.gpu),))
