"""`nvidia-smi mig`: list, create and destroy GPU instances and compute instances."""

from collections.abc import Callable, Iterator, Sequence

from simulator import client, codes, mig_calls
from simulator.smi import arguments, mig_parts, mig_tables, refusal, selection
from simulator.smi.arguments import Option, Takes
from simulator.smi.selection import Nvml, Target

OPTIONS = (
    arguments.ID,
    Option("gi", ("-gi", "--gpu-instance-id"), Takes.VALUE),
    Option("ci", ("-ci", "--compute-instance-id"), Takes.VALUE),
    Option("lgip", ("-lgip", "--list-gpu-instance-profiles")),
    Option("lgipp", ("-lgipp", "--list-gpu-instance-possible-placements")),
    Option("lgi", ("-lgi", "--list-gpu-instances")),
    Option("cgi", ("-cgi", "--create-gpu-instance"), Takes.VALUE),
    Option("default", ("-C", "--default-compute-instance")),
    Option("dgi", ("-dgi", "--destroy-gpu-instance")),
    Option("lcip", ("-lcip", "--list-compute-instance-profiles")),
    Option("lci", ("-lci", "--list-compute-instances")),
    Option("cci", ("-cci", "--create-compute-instance"), Takes.PERHAPS),
    Option("dci", ("-dci", "--destroy-compute-instance")),
)

Given = dict[str, str]
"""Options by name."""


def run(nvml: Nvml, argv: Sequence[str], ids: str | None) -> Iterator[str]:
    """The output of one command. Raises RefusedError."""
    given = arguments.parse(argv, OPTIONS)
    found = _with_mig(nvml, given.get("id", ids))
    for name, carry_out in _COMMANDS.items():
        if name in given:
            return carry_out(nvml, found, given)
    raise refusal.usage("mig takes a command.")


def _with_mig(nvml: Nvml, ids: str | None) -> list[Target]:
    """The GPUs with MIG on."""
    found = []
    for target in selection.targets(nvml, ids):
        modes = selection.answer(nvml.device_get_mig_mode, target.handle)
        if modes and modes[0]:
            found.append(target)
    if not found:
        raise refusal.RefusedError("No MIG-enabled devices found.\n", codes.Return.NOT_FOUND)
    return found


def _create(nvml: Nvml, found: list[Target], given: Given) -> Iterator[str]:
    for target in found:
        for word in given["cgi"].split(","):
            profile, _, start = word.partition(":")
            info = _profile(nvml, target, profile)
            try:
                handle = _make(nvml, target, info.id, start)
            except codes.NvmlError as e:
                what = f"a GPU instance on GPU {target.index:>2} using profile {info.id}"
                raise _cannot("create", what, "GPU instances", e) from e
            made = mig_parts.Instance(
                handle, nvml.gpu_instance_get_info(handle), mig_parts.bare(info.name)
            )
            yield (
                f"Successfully created GPU instance ID {made.info.id:>2} on GPU {target.index:>2}"
                f" using profile MIG {made.name} (ID {info.id:>2})\n"
            )
            if "default" in given:
                whole = mig_parts.whole_profile(nvml, handle)
                yield from _make_compute(nvml, target, made, whole.id)


def _make(nvml: Nvml, target: Target, profile: int, start: str) -> client.Handle:
    if not start:
        return nvml.device_create_gpu_instance(target.handle, profile)
    places = nvml.device_get_gpu_instance_possible_placements(target.handle, profile)
    return nvml.device_create_gpu_instance_with_placement(
        target.handle, profile, int(start) if start.isdigit() else -1, places[0].size
    )


def _profile(nvml: Nvml, target: Target, word: str) -> mig_calls.GpuInstanceProfileInfo:
    """By id or name."""
    for info in mig_parts.profiles(nvml, target.handle):
        if word in {str(info.id), mig_parts.bare(info.name), info.name}:
            return info
    what = f"Unable to find profile {word} on GPU {target.index:>2}"
    raise mig_parts.refused(what, codes.Return.INVALID_ARGUMENT)


def _create_compute(nvml: Nvml, found: list[Target], given: Given) -> Iterator[str]:
    words = given["cci"].split(",")
    for target in found:
        for made in mig_parts.instances(nvml, target, given.get("gi")):
            for profile in [_compute_profile(nvml, made, word) for word in words]:
                yield from _make_compute(nvml, target, made, profile)


def _compute_profile(nvml: Nvml, made: mig_parts.Instance, word: str) -> int:
    """By id or name; nothing is the whole GPU instance."""
    if not word:
        return mig_parts.whole_profile(nvml, made.handle).id
    for info in mig_parts.compute_profiles(nvml, made.handle):
        if word in {str(info.id), mig_parts.bare(info.name), info.name}:
            return info.id
    what = f"Unable to find compute profile {word} in GPU instance ID {made.info.id:>2}"
    raise mig_parts.refused(what, codes.Return.INVALID_ARGUMENT)


def _make_compute(
    nvml: Nvml, target: Target, made: mig_parts.Instance, profile: int
) -> Iterator[str]:
    where = f"on GPU {target.index:>2} GPU instance ID {made.info.id:>2}"
    try:
        handle = nvml.gpu_instance_create_compute_instance(made.handle, profile)
    except codes.NvmlError as e:
        what = f"a compute instance {where} using profile {profile}"
        raise _cannot("create", what, "compute instances", e) from e
    number = nvml.compute_instance_get_info(handle).id
    names = {
        info.id: mig_parts.bare(info.name) for info in mig_parts.compute_profiles(nvml, made.handle)
    }
    yield (
        f"Successfully created compute instance ID {number:>2} {where}"
        f" using profile MIG {names[profile]} (ID {profile:>2})\n"
    )


def _destroy(nvml: Nvml, found: list[Target], given: Given) -> Iterator[str]:
    doomed = [
        (target, made)
        for target in found
        for made in mig_parts.instances(nvml, target, given.get("gi"))
    ]
    if not doomed:
        raise mig_parts.refused("No GPU instances found", codes.Return.NOT_FOUND)
    for target, made in doomed:
        what = f"GPU instance ID {made.info.id:>2} from GPU {target.index:>2}"
        try:
            nvml.gpu_instance_destroy(made.handle)
        except codes.NvmlError as e:
            raise _cannot("destroy", what, "GPU instances", e) from e
        yield f"Successfully destroyed {what}\n"


def _destroy_compute(nvml: Nvml, found: list[Target], given: Given) -> Iterator[str]:
    wanted = given["ci"].split(",") if "ci" in given else None
    doomed = [
        (target, made, compute)
        for target in found
        for made in mig_parts.instances(nvml, target, given.get("gi"))
        for compute in mig_parts.compute_instances(nvml, made)
        if wanted is None or str(compute.info.id) in wanted
    ]
    if not doomed:
        raise mig_parts.refused("No compute instances found", codes.Return.NOT_FOUND)
    for target, made, compute in doomed:
        yield _destroy_one(nvml, target, made, compute)


def _destroy_one(
    nvml: Nvml, target: Target, made: mig_parts.Instance, compute: mig_parts.Compute
) -> str:
    what = (
        f"compute instance ID {compute.info.id:>2} from GPU {target.index:>2}"
        f" GPU instance ID {made.info.id:>2}"
    )
    try:
        nvml.compute_instance_destroy(compute.handle)
    except codes.NvmlError as e:
        raise _cannot("destroy", what, "compute instances", e) from e
    return f"Successfully destroyed {what}\n"


def _cannot(verb: str, what: str, kind: str, error: codes.NvmlError) -> refusal.RefusedError:
    why = refusal.words(error.code)
    said = f"Unable to {verb} {what}: {why}\nFailed to {verb} {kind}: {why}\n"
    return refusal.RefusedError(said, error.code)


_COMMANDS: dict[str, Callable[[Nvml, list[Target], Given], Iterator[str]]] = {
    "lgip": lambda nvml, found, _: mig_tables.profiles(nvml, found),
    "lgipp": lambda nvml, found, _: mig_tables.placements(nvml, found),
    "lgi": lambda nvml, found, _: mig_tables.instances(nvml, found),
    "lcip": lambda nvml, found, given: mig_tables.compute_profiles(nvml, found, given.get("gi")),
    "lci": lambda nvml, found, given: mig_tables.compute_instances(nvml, found, given.get("gi")),
    "cgi": _create,
    "cci": _create_compute,
    "dci": _destroy_compute,
    "dgi": _destroy,
}
