"""The tables of `nvidia-smi mig`: profiles, placements and instances.

Layout: listings of an RTX PRO 6000 under 580, of H100 and of A100 in public repositories.
"""

from collections.abc import Iterator

from simulator import codes, mig_calls
from simulator.smi import mig_parts
from simulator.smi.selection import Nvml, Target

_PROFILES = (
    "| GPU instance profiles:                                                        |",
    "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |",
    "|                                Free/Total   GiB              CE    JPEG  OFA  |",
)
_INSTANCES = (
    "| GPU instances:                                          |",
    "| GPU   Name               Profile  Instance   Placement  |",
    "|                            ID       ID       Start:Size |",
)
_COMPUTE_PROFILES = (
    "| Compute instance profiles:                                                           |",
    "| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |",
    "|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |",
    "|         ID                                                          CE    JPEG       |",
)
_COMPUTE_INSTANCES = (
    "| Compute instances:                                                 |",
    "| GPU     GPU       Name             Profile   Instance   Placement  |",
    "|       Instance                       ID        ID       Start:Size |",
    "|         ID                                                         |",
)


def profiles(nvml: Nvml, targets: list[Target]) -> Iterator[str]:
    """`-lgip`."""
    yield from _head(_PROFILES)
    for target in targets:
        for info in mig_parts.profiles(nvml, target.handle):
            free = nvml.device_get_gpu_instance_remaining_capacity(target.handle, info.id)
            yield from _profile(target.index, info, free)
            yield _rule(_PROFILES)


def _profile(gpu: int, has: mig_calls.GpuInstanceProfileInfo, free: int) -> Iterator[str]:
    name, count, p2p = mig_parts.bare(has.name), f"{free}/{has.instance_count}", "No"
    gib = has.memory_size_mb / 1024
    yield (
        f"| {gpu:>3}  MIG {name:<15}{has.id:>3}     {count:<3}        {gib:>5.2f}      {p2p}"
        f"     {has.multiprocessor_count:<3}   {has.decoder_count:>2}    {has.encoder_count:>2}   "
        "|\n"
    )
    yield (
        f"|{'':<61}{has.copy_engine_count:>3}    {has.jpeg_count:>2}    {has.ofa_count:>2}   |\n"
    )


def placements(nvml: Nvml, targets: list[Target]) -> Iterator[str]:
    """`-lgipp`."""
    for target in targets:
        for info in mig_parts.profiles(nvml, target.handle):
            places = nvml.device_get_gpu_instance_possible_placements(target.handle, info.id)
            starts = ",".join(str(at.start) for at in places)
            title = "Placements:" if len(places) > 1 else "Placement :"
            yield (
                f"GPU {target.index:>2} Profile ID {info.id:>2} {title}"
                f" {{{starts}}}:{places[0].size}\n"
            )


def instances(nvml: Nvml, targets: list[Target]) -> Iterator[str]:
    """`-lgi`."""
    rows = []
    for target in targets:
        for made in mig_parts.instances(nvml, target):
            at = made.info.placement
            rows.append(
                f"| {target.index:>3}  MIG {made.name:<16} {made.info.profile_id:>3}"
                f"       {made.info.id:>2}          {at.start}:{at.size:<3}   |\n"
            )
    yield from _found(_INSTANCES, rows, "GPU instances")


def compute_profiles(nvml: Nvml, targets: list[Target], gi: str | None) -> Iterator[str]:
    """`-lcip`; a star stands at the profile of the whole GPU instance."""
    rows = []
    for target in targets:
        for made in mig_parts.instances(nvml, target, gi):
            whole = mig_parts.whole_profile(nvml, made.handle)
            rows += [
                "".join(_compute_profile(nvml, target.index, made, info, whole.id))
                for info in mig_parts.compute_profiles(nvml, made.handle)
            ]
    yield from _found(_COMPUTE_PROFILES, rows, "GPU instances")


def _compute_profile(
    nvml: Nvml,
    gpu: int,
    made: mig_parts.Instance,
    has: mig_calls.ComputeInstanceProfileInfo,
    whole: int,
) -> Iterator[str]:
    free = nvml.gpu_instance_get_compute_instance_remaining_capacity(made.handle, has.id)
    number = f"{has.id}{'*' if has.id == whole else ' '}"
    count = f"{free}/{has.instance_count}"
    yield (
        f"| {gpu:>3}     {made.info.id:>2}       MIG {mig_parts.bare(has.name):<14} {number:>4}"
        f"     {count:<3}          {has.multiprocessor_count:>3}    "
        f"   {has.shared_decoder_count:>2}    {has.shared_encoder_count:>2}    "
        f"{has.shared_ofa_count:>2}   |\n"
    )
    yield f"|{'':<68}{has.shared_copy_engine_count:>3}    {has.shared_jpeg_count:>2}         |\n"


def compute_instances(nvml: Nvml, targets: list[Target], gi: str | None) -> Iterator[str]:
    """`-lci`."""
    rows = []
    for target in targets:
        for made in mig_parts.instances(nvml, target, gi):
            for compute in mig_parts.compute_instances(nvml, made):
                at = compute.info.placement
                rows.append(
                    f"| {target.index:>3}     {made.info.id:>2}       MIG {compute.name:<14}"
                    f" {compute.info.profile_id:>3}        {compute.info.id:>2}"
                    f"          {at.start}:{at.size:<3}   |\n"
                )
    yield from _found(_COMPUTE_INSTANCES, rows, "compute instances")


def _found(head: tuple[str, ...], rows: list[str], what: str) -> Iterator[str]:
    if not rows:
        raise mig_parts.refused(f"No {what} found", codes.Return.NOT_FOUND)
    yield from _head(head)
    for row in rows:
        yield row
        yield _rule(head)


def _head(lines: tuple[str, ...]) -> Iterator[str]:
    yield _rule(lines)
    yield from (f"{line}\n" for line in lines)
    yield f"|{'=' * (len(lines[0]) - 2)}|\n"


def _rule(lines: tuple[str, ...]) -> str:
    return f"+{'-' * (len(lines[0]) - 2)}+\n"
