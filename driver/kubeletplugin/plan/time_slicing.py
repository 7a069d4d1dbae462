"""A GPU whose processes take turns: one time slice for all of them (NV-13)."""

from driver.api import v1alpha1
from driver.devices import faces
from driver.kubeletplugin.plan import mig, steps
from driver.resources.sharing import compatibility

SLICE, UNSLICE = "time-slice", "time-slice-default"
KEEP = "keep"
"""Undoes nothing: other claims on the GPU need the setting."""
INTERVAL, CLAIM, MODE = "interval", "claim", "mode"
"""Arguments of a step; MODE, a fact of it, is the compute mode before time slicing."""


def plan_share(
    grant: steps.Grant, face: faces.ShareFace, cdi_id: str, claim: str
) -> steps.GrantPlan:
    """Plan the claim's turn on the GPU; the last claim to leave resets the time slice."""
    terms = grant.share_terms()
    edits = steps.Edits(
        (face.gpu.uuid,), environment=compatibility.share_environment(face.name, terms)
    )
    arguments: steps.Arguments = {INTERVAL: terms.interval, CLAIM: claim}
    slicing = steps.Step(SLICE, UNSLICE, face.gpu.uuid, arguments)
    return steps.GrantPlan(steps.plan_device(grant, cdi_id, edits), (*disable_mig(face), slicing))


def with_time_slicing(
    part: steps.GrantPlan, claim: str, config: v1alpha1.Config
) -> steps.GrantPlan:
    """Add time slicing to a whole GPU, if its claim's configuration requests it."""
    taken = not part.device.admin_access
    if not taken or not isinstance(config.sharing, v1alpha1.TimeSlicingSharing):
        return part
    arguments = {INTERVAL: config.sharing.timeSlicing.interval, CLAIM: claim}
    slicing = steps.Step(SLICE, UNSLICE, part.device.gpu, arguments)
    return steps.GrantPlan(part.device, (*part.steps, slicing))


def disable_mig(face: faces.ShareFace) -> tuple[steps.Step, ...]:
    """Return the step that disables MIG if it is on; MIG stays off, for other claims."""
    if face.gpu.mig is None or not face.gpu.mig.enabled:
        return ()
    return (mig.mode_step(mig.OFF, KEEP, face.gpu),)
