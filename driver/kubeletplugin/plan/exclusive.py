"""The whole GPU for one claim: its device node, and nothing to set up but to end MIG."""

from driver.devices import faces
from driver.kubeletplugin.plan import mig, steps


def part(grant: steps.Grant, face: faces.WholeFace | faces.MonitorFace, cdi_id: str) -> steps.Part:
    """The GPU as it is; its holder gets it without MIG, which is on again afterwards."""
    device = steps.planned(grant, cdi_id, steps.Edits((face.gpu.uuid,)))
    partitioned = face.gpu.mig is not None and face.gpu.mig.enabled
    if not partitioned or grant.admin_access:
        return steps.Part(device)
    return steps.Part(device, (steps.Step(mig.OFF, mig.ON_AGAIN, face.gpu.uuid),))
