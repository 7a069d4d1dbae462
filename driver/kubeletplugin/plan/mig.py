"""A MIG instance for one claim: MIG enabled, an instance created at the face's placement (D11).

Steps name placements, never the instance on them; the created instance is in the facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from driver import ids
from driver.devices import faces, mig, model
from driver.kubeletplugin.plan import steps

ON, OFF_AGAIN = "mig-on", "mig-off-again"
OFF, ON_AGAIN = "mig-off", "mig-on-again"
MAKE, DESTROY = "mig-make", "mig-destroy"
"""The acts, each with its undo."""
UUID, GPU_INSTANCE, COMPUTE_INSTANCE = "uuid", "gpu_instance", "compute_instance"
"""The facts of a created instance."""
_RESETLESS = "resetless"


def outlives_boot(plan_steps: Iterable[steps.Step]) -> bool:
    """Return whether a step changes what the next boot of the machine would find: the MIG mode.

    A GPU that changes it without a reset (Hopper and newer) starts with MIG off. Instances, shares,
    time slices and daemons end with the machine.
    """
    return any(step.act in {ON, OFF} and _RESETLESS not in step.arguments for step in plan_steps)


def mode_step(act: str, undo: str, gpu: model.Gpu) -> steps.Step:
    """Return a step that changes a GPU's MIG mode."""
    resetless = gpu.mig is not None and gpu.mig.resetless
    return steps.Step(act, undo, gpu.uuid, {_RESETLESS: 1} if resetless else {})


def plan_instance(
    grant: steps.Grant, face: faces.MigFace, cdi_id: str, *, on_for_us: bool
) -> steps.GrantPlan:
    """Plan the face's instance.

    `on_for_us`: MIG is on because of another claim of this node; the last one turns it off. An
    existing instance, foreign or under admin access, is used as it is.
    """
    existing = face.existing if grant.admin_access else face.instance
    uuid = existing.uuid if existing else None
    ref = mig.InstanceRef(face.gpu.uuid, face.profile.id, face.placement, uuid)
    device = steps.plan_device(grant, cdi_id, steps.Edits((face.gpu.uuid,), ref))
    if existing is not None:
        return steps.GrantPlan(device)
    make = steps.Step(MAKE, DESTROY, ref.gpu, instance_arguments(ref))
    enabled = face.gpu.mig is not None and face.gpu.mig.enabled
    turn_on = mode_step(ON, OFF_AGAIN, face.gpu)
    return steps.GrantPlan(device, (make,) if enabled and not on_for_us else (turn_on, make))


def instance_arguments(ref: mig.InstanceRef) -> dict[str, str | int]:
    """Return an instance reference as a step's arguments, which `step_instance` reads."""
    placement = ref.placement
    arguments: dict[str, str | int] = {
        "profile": ref.profile_id,
        "start": placement.start,
        "size": placement.size,
    }
    return arguments if ref.uuid is None else {**arguments, UUID: str(ref.uuid)}


def step_instance(step: steps.Step) -> mig.InstanceRef:
    """Return the instance of a step, with its UUID if known."""
    arguments = step.arguments
    placement = mig.Placement(int(arguments["start"]), int(arguments["size"]))
    uuid = ids.MigUuid(str(arguments[UUID])) if UUID in arguments else None
    return mig.InstanceRef(step.gpu, int(arguments["profile"]), placement, uuid)


def instance_facts(instance: mig.Instance) -> Mapping[str, str]:
    """Return the facts of a created instance."""
    return {
        UUID: str(instance.uuid),
        GPU_INSTANCE: str(instance.gpu_instance),
        COMPUTE_INSTANCE: str(instance.compute_instance),
    }


def created_instance(step: steps.Step) -> mig.Instance | None:
    """Return the created instance of a step; None if its facts are not known."""
    ref, arguments = step_instance(step), step.arguments
    if not {UUID, GPU_INSTANCE, COMPUTE_INSTANCE} <= arguments.keys():
        return None
    numbers = int(arguments[GPU_INSTANCE]), int(arguments[COMPUTE_INSTANCE])
    return mig.Instance(numbers[0], ref.profile_id, ref.placement, numbers[1], ref.uuid)


def planned_instances(
    planned: Sequence[steps.Step], facts: Sequence[Mapping[str, str]]
) -> Iterator[mig.InstanceRef]:
    """Yield the instances a claim's steps create, with their facts if known."""
    for index, step in enumerate(planned):
        if step.act == MAKE:
            step_facts = facts[index] if index < len(facts) else {}
            yield step_instance(
                steps.Step(MAKE, DESTROY, step.gpu, {**step.arguments, **step_facts})
            )


def enabled_gpus(planned: Iterable[steps.Step]) -> Iterator[ids.GpuUuid]:
    """Yield the GPUs that a claim's steps enable MIG on."""
    return (step.gpu for step in planned if step.act == ON)
