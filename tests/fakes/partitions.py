"""MIG as the fake of NVML tells it, over the simulator's machine model."""

from collections.abc import Iterator

from driver import ids
from driver.devices import mig
from simulator import client, codes, geometry, library, machine


def of_gpu(ask: library.Library, gpu: machine.Gpu, handle: client.Handle) -> mig.Mig | None:
    try:
        enabled, _ = ask.device_get_mig_mode(handle)
    except codes.NvmlError:
        return None
    profiles = tuple(_profiles(ask, handle))
    devices = {
        instance.id: (compute.id, ids.MigUuid(compute.uuid))
        for instance, compute in ask.mig_devices(gpu)
        if geometry.COMPUTE_SLICES[compute.profile] == _slices(profiles, instance.profile)
    }
    instances = tuple(
        mig.Instance(
            instance.id,
            instance.profile,
            mig.Placement(instance.at.start, instance.at.size),
            *devices.get(instance.id, (None, None)),
        )
        for profile in profiles
        for instance in sorted(
            ask.machine.board(gpu).instances, key=lambda gpu_instance: gpu_instance.id
        )
        if instance.profile == profile.id
    )
    return mig.Mig(enabled, gpu.resetless, profiles, instances if enabled else ())


def _slices(profiles: tuple[mig.Profile, ...], profile_id: int) -> int:
    return next(profile.compute_slices for profile in profiles if profile.id == profile_id)


def _profiles(ask: library.Library, handle: client.Handle) -> Iterator[mig.Profile]:
    for enum in range(0x12):
        try:
            info = ask.device_get_gpu_instance_profile_info(handle, enum)
        except codes.NvmlError:
            continue
        places = ask.device_get_gpu_instance_possible_placements(handle, info.id)
        yield mig.Profile(
            id=info.id,
            name=info.name.removeprefix("MIG "),
            compute_slices=info.slice_count,
            memory_mib=info.memory_size_mb,
            instances=info.instance_count,
            placements=tuple(
                mig.Placement(placement.start, placement.size) for placement in places
            ),
            engines=mig.Engines(
                info.multiprocessor_count,
                info.copy_engine_count,
                info.decoder_count,
                info.encoder_count,
                info.jpeg_count,
                info.ofa_count,
            ),
        )
