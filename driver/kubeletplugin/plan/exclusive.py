"""The whole GPU for one claim: its device node, and nothing to set up but to end MIG."""

from driver.devices import faces
from driver.kubeletplugin.plan import mig, steps


def plan_whole(
    grant: steps.Grant, face: faces.WholeFace | faces.MonitorFace, cdi_id: str
) -> steps.GrantPlan:
    """The GPU as it is; its holder gets it without MIG, which is on again afterwards."""
    device = steps.plan_device(grant, cdi_id, steps.Edits((face.gpu.uuid,)))
    partitioned = face.gpu.mig is not None and face.gpu.mig.enabled
    if not partitioned or grant.admin_access:
        return steps.GrantPlan(device)
    return steps.GrantPlan(device, (steps.Step(mig.OFF, mig.ON_AGAIN, face.gpu.uuid),))
