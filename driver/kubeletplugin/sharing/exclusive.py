"""The whole GPU for one claim: its device node, and nothing to set up."""

from driver.kubeletplugin import steps


def part(grant: steps.Grant, cdi_id: str) -> steps.Part:
    """The GPU as it is."""
    return steps.Part(
        steps.PlannedDevice(
            request=grant.request,
            pool=grant.pool,
            device=grant.device,
            gpu=grant.gpu,
            cdi_id=cdi_id,
            edits=steps.Edits(gpus=(grant.gpu,)),
            admin_access=grant.admin_access,
            share_id=grant.share_id,
        )
    )
