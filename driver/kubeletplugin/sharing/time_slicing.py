"""A GPU whose processes take turns: one time slice for all who have it (NV-13)."""

from driver.api import v1alpha1
from driver.devices import faces
from driver.kubeletplugin import steps
from driver.kubeletplugin.sharing import mig
from driver.sharing import terms

SLICE, UNSLICE = "time-slice", "time-slice-default"
KEEP = "keep"
"""Takes nothing back: what others on the GPU need stays."""
INTERVAL, CLAIM, MODE = "interval", "claim", "mode"
"""Arguments of a step; MODE, a fact of it, is the compute mode before anybody took turns."""


def part(grant: steps.Grant, face: faces.ShareFace, cdi_id: str, claim: str) -> steps.Part:
    """The claim's turn on the GPU; the last one to leave puts the time slice back."""
    given = grant.of_share()
    edits = steps.Edits((face.gpu.uuid,), environment=terms.share_environment(face.name, given))
    arguments: steps.Arguments = {INTERVAL: given.interval, CLAIM: claim}
    slicing = steps.Step(SLICE, UNSLICE, face.gpu.uuid, arguments)
    return steps.Part(steps.planned(grant, cdi_id, edits), (*undivided(face), slicing))


def alone(part: steps.Part, claim: str, config: v1alpha1.Config) -> steps.Part:
    """A whole GPU whose claim's own containers take turns, where its configuration says so."""
    taken = not part.device.admin_access
    if not taken or not isinstance(config.sharing, v1alpha1.TimeSlicingSharing):
        return part
    arguments = {INTERVAL: config.sharing.timeSlicing.interval, CLAIM: claim}
    slicing = steps.Step(SLICE, UNSLICE, part.device.gpu, arguments)
    return steps.Part(part.device, (*part.steps, slicing))


def undivided(face: faces.ShareFace) -> tuple[steps.Step, ...]:
    """MIG off, where it is on: it stays off, as others may have come meanwhile."""
    if face.gpu.mig is None or not face.gpu.mig.enabled:
        return ()
    return (steps.Step(mig.OFF, KEEP, face.gpu.uuid),)
