"""A part of a GPU for one claim: MIG turned on, an instance made at the place of its face (D11).

Steps name places, never what lies on them; what was made is in the facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from driver import ids
from driver.devices import faces, mig
from driver.kubeletplugin.plan import steps

ON, OFF_AGAIN = "mig-on", "mig-off-again"
OFF, ON_AGAIN = "mig-off", "mig-on-again"
MAKE, DESTROY = "mig-make", "mig-destroy"
"""The acts, each with what takes it back."""
UUID, GPU_INSTANCE, COMPUTE_INSTANCE = "uuid", "gpu_instance", "compute_instance"
"""The facts of an instance that was made."""


def plan_instance(
    grant: steps.Grant, face: faces.MigFace, cdi_id: str, *, on_for_us: bool
) -> steps.GrantPlan:
    """The part of the GPU that the face is.

    `on_for_us`: MIG is on because of another claim of this node; the last one turns it off.
    An instance that somebody else made is taken as it is, and so is any that an administrator
    looks at.
    """
    there = face.existing if grant.admin_access else face.instance
    uuid = there.uuid if there else None
    place = mig.InstanceRef(face.gpu.uuid, face.profile.id, face.placement, uuid)
    device = steps.plan_device(grant, cdi_id, steps.Edits((face.gpu.uuid,), place))
    if there is not None:
        return steps.GrantPlan(device)
    make = steps.Step(MAKE, DESTROY, place.gpu, instance_arguments(place))
    enabled = face.gpu.mig is not None and face.gpu.mig.enabled
    turn_on = steps.Step(ON, OFF_AGAIN, place.gpu)
    return steps.GrantPlan(device, (make,) if enabled and not on_for_us else (turn_on, make))


def instance_arguments(place: mig.InstanceRef) -> dict[str, str | int]:
    """A place as a step has it: what `place` reads."""
    at = place.placement
    found: dict[str, str | int] = {"profile": place.profile_id, "start": at.start, "size": at.size}
    return found if place.uuid is None else {**found, UUID: str(place.uuid)}


def step_instance(step: steps.Step) -> mig.InstanceRef:
    """Where the instance of a step lies or is to lie, and which one if that is known."""
    known = step.arguments
    at = mig.Placement(int(known["start"]), int(known["size"]))
    uuid = ids.MigUuid(str(known[UUID])) if UUID in known else None
    return mig.InstanceRef(step.gpu, int(known["profile"]), at, uuid)


def instance_facts(made: mig.Instance) -> Mapping[str, str]:
    """What an instance turned out to be."""
    return {
        UUID: str(made.uuid),
        GPU_INSTANCE: str(made.gpu_instance),
        COMPUTE_INSTANCE: str(made.compute_instance),
    }


def planned_instances(
    planned: Sequence[steps.Step], known: Sequence[Mapping[str, str]]
) -> Iterator[mig.InstanceRef]:
    """Where a claim's steps make instances; with the facts, as far as there are any, which."""
    for number, step in enumerate(planned):
        if step.act == MAKE:
            found = known[number] if number < len(known) else {}
            yield step_instance(steps.Step(MAKE, DESTROY, step.gpu, {**step.arguments, **found}))


def enabled_gpus(planned: Iterable[steps.Step]) -> Iterator[ids.GpuUuid]:
    """The GPUs that a claim's steps turn MIG on for."""
    return (step.gpu for step in planned if step.act == ON)
