"""NVML calls about MIG: modes, profiles, GPU instances, compute instances, MIG devices."""

from dataclasses import dataclass

from simulator import client, codes, geometry, machine, partition, state


@dataclass(frozen=True, slots=True)
class GpuInstanceProfileInfo:
    """`nvmlGpuInstanceProfileInfo_v3_t` with v2's `is_p2p_supported`; v1 ends before `name`."""

    id: int
    is_p2p_supported: int
    slice_count: int
    instance_count: int
    multiprocessor_count: int
    copy_engine_count: int
    decoder_count: int
    encoder_count: int
    jpeg_count: int
    ofa_count: int
    memory_size_mb: int
    name: str
    capabilities: int


@dataclass(frozen=True, slots=True)
class GpuInstanceInfo:
    """`nvmlGpuInstanceInfo_t`."""

    device: client.Handle
    id: int
    profile_id: int
    placement: geometry.Placement


@dataclass(frozen=True, slots=True)
class ComputeInstanceProfileInfo:
    """`nvmlComputeInstanceProfileInfo_v2_t`; v1 ends before `name`."""

    id: int
    slice_count: int
    instance_count: int
    multiprocessor_count: int
    shared_copy_engine_count: int
    shared_decoder_count: int
    shared_encoder_count: int
    shared_jpeg_count: int
    shared_ofa_count: int
    name: str


@dataclass(frozen=True, slots=True)
class ComputeInstanceInfo:
    """`nvmlComputeInstanceInfo_t`; `device` is the MIG device's handle."""

    device: client.Handle
    gpu_instance: client.Handle
    id: int
    profile_id: int
    placement: geometry.Placement


class MigCalls(client.Client):
    """Whatever changes or lists instances takes root and, in a container, the config capability."""

    @client.call
    def device_get_mig_mode(self, device: client.Handle) -> tuple[bool, bool]:
        """Current and pending; NOT_SUPPORTED where the product has no MIG."""
        gpu = self._gpu(device)
        if not gpu.product.mig:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        board = self.machine.board(gpu)
        return board.mig, board.mig_pending

    @client.call
    def device_set_mig_mode(self, device: client.Handle, mode: int) -> int:
        """The activation status: the call succeeds although the mode may not have changed."""
        gpu = self._gpu(device)
        if mode not in {0, 1}:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return self._configured(gpu).set_mode(enabled=bool(mode), others=self._others)

    @client.call
    def device_get_gpu_instance_profile_info(
        self, device: client.Handle, profile: int
    ) -> GpuInstanceProfileInfo:
        """`profile` is the enum, not the id it answers with; any MIG mode will do."""
        mig = partition.Partition(self.machine, self._gpu(device))
        if not 0 <= profile < geometry.PROFILE_COUNT:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        for offered in mig.profiles():
            if offered.shape.enum == profile:
                return _profile_info(offered, mig.instance_count(offered))
        raise codes.NvmlError(codes.Return.NOT_SUPPORTED)

    @client.call
    def device_get_gpu_instance_possible_placements(
        self, device: client.Handle, profile_id: int
    ) -> list[geometry.Placement]:
        """Every placement of the profile, taken or not; any MIG mode will do."""
        mig = partition.Partition(self.machine, self._gpu(device))
        return list(mig.profile(profile_id).shape.placements())

    @client.call
    def device_get_gpu_instance_remaining_capacity(
        self, device: client.Handle, profile_id: int
    ) -> int:
        """How many more instances of the profile can be made."""
        mig = self._active(self._gpu(device))
        return mig.remaining_capacity(mig.profile(profile_id))

    @client.call
    def device_create_gpu_instance(self, device: client.Handle, profile_id: int) -> client.Handle:
        """At the first free placement."""
        return self._create(device, profile_id, None)

    @client.call
    def device_create_gpu_instance_with_placement(
        self, device: client.Handle, profile_id: int, start: int, size: int
    ) -> client.Handle:
        """INSUFFICIENT_RESOURCES where something lies; INVALID_ARGUMENT where nothing can."""
        return self._create(device, profile_id, geometry.Placement(start, size))

    @client.call
    def device_get_gpu_instances(
        self, device: client.Handle, profile_id: int
    ) -> list[client.Handle]:
        """Those of one profile, by id."""
        gpu = self._gpu(device)
        self._active(gpu).profile(profile_id)
        instances = sorted(self.machine.board(gpu).instances, key=lambda one: one.id)
        return [self._part("gi", gpu, one) for one in instances if one.profile == profile_id]

    @client.call
    def device_get_gpu_instance_by_id(self, device: client.Handle, id_: int) -> client.Handle:
        """NOT_FOUND when no instance has that id."""
        gpu = self._gpu(device)
        self._active(gpu)
        for instance in self.machine.board(gpu).instances:
            if instance.id == id_:
                return self._part("gi", gpu, instance)
        raise codes.NvmlError(codes.Return.NOT_FOUND)

    @client.call
    def gpu_instance_get_info(self, instance: client.Handle) -> GpuInstanceInfo:
        """Where it lies."""
        gpu, made = self._gpu_instance(instance)
        return GpuInstanceInfo(self._handle(gpu), made.id, made.profile, made.at)

    @client.call
    def gpu_instance_destroy(self, instance: client.Handle) -> None:
        """IN_USE while compute instances or processes remain."""
        gpu, made = self._gpu_instance(instance)
        self._active(gpu).destroy(made)

    @client.call
    def gpu_instance_get_compute_instance_profile_info(
        self, instance: client.Handle, profile: int, engine: int
    ) -> ComputeInstanceProfileInfo:
        """`profile` is the enum; engine profile 0 (shared) is the only one."""
        gpu, made = self._gpu_instance(instance)
        mig = self._active(gpu)
        if not 0 <= profile < geometry.COMPUTE_PROFILE_COUNT or engine != 0:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        parent = mig.profile(made.profile)
        if profile not in geometry.COMPUTE_SLICES or not parent.compute_placements(profile):
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return _compute_profile_info(parent, profile)

    @client.call
    def gpu_instance_get_compute_instance_possible_placements(
        self, instance: client.Handle, profile_id: int
    ) -> list[geometry.Placement]:
        """In compute slices of the GPU instance, taken or not."""
        gpu, made = self._gpu_instance(instance)
        parent = self._active(gpu).profile(made.profile)
        return list(parent.compute_placements(_known(profile_id)))

    @client.call
    def gpu_instance_get_compute_instance_remaining_capacity(
        self, instance: client.Handle, profile_id: int
    ) -> int:
        """How many more compute instances of the profile can be made."""
        gpu, made = self._gpu_instance(instance)
        _known(profile_id)
        return len(self._active(gpu).compute_free(made, profile_id))

    @client.call
    def gpu_instance_create_compute_instance(
        self, instance: client.Handle, profile_id: int
    ) -> client.Handle:
        """At the first free compute slices."""
        gpu, made = self._gpu_instance(instance)
        _known(profile_id)
        return self._part("ci", gpu, self._active(gpu).create_compute(made, profile_id, None))

    @client.call
    def gpu_instance_create_compute_instance_with_placement(
        self, instance: client.Handle, profile_id: int, start: int, size: int
    ) -> client.Handle:
        """INSUFFICIENT_RESOURCES where something lies."""
        gpu, made = self._gpu_instance(instance)
        at = geometry.Placement(start, size)
        mig = self._active(gpu)
        if at not in mig.profile(made.profile).compute_placements(_known(profile_id)):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return self._part("ci", gpu, mig.create_compute(made, profile_id, at))

    @client.call
    def gpu_instance_get_compute_instances(
        self, instance: client.Handle, profile_id: int
    ) -> list[client.Handle]:
        """Those of one profile, by id."""
        gpu, made = self._gpu_instance(instance)
        _known(profile_id)
        found = sorted(made.compute, key=lambda one: one.id)
        return [self._part("ci", gpu, one) for one in found if one.profile == profile_id]

    @client.call
    def gpu_instance_get_compute_instance_by_id(
        self, instance: client.Handle, id_: int
    ) -> client.Handle:
        """NOT_FOUND when no compute instance has that id."""
        gpu, made = self._gpu_instance(instance)
        for compute in made.compute:
            if compute.id == id_:
                return self._part("ci", gpu, compute)
        raise codes.NvmlError(codes.Return.NOT_FOUND)

    @client.call
    def compute_instance_get_info(self, instance: client.Handle) -> ComputeInstanceInfo:
        """Its MIG device and where it lies."""
        gpu, parent, made = self._compute_instance(instance)
        return ComputeInstanceInfo(
            device=self._part("mig", gpu, made),
            gpu_instance=self._part("gi", gpu, parent),
            id=made.id,
            profile_id=made.profile,
            placement=made.at,
        )

    @client.call
    def compute_instance_destroy(self, instance: client.Handle) -> None:
        """IN_USE while a process runs on it."""
        gpu, parent, made = self._compute_instance(instance)
        self._active(gpu).destroy_compute(parent, made)

    def _create(
        self, device: client.Handle, profile_id: int, at: geometry.Placement | None
    ) -> client.Handle:
        gpu = self._gpu(device)
        mig = self._active(gpu)
        return self._part("gi", gpu, mig.create(mig.profile(profile_id), at))

    def _configured(self, gpu: machine.Gpu) -> partition.Partition:
        """For calls that set: NOT_SUPPORTED in a vGPU guest, NO_PERMISSION without the right."""
        mig = partition.Partition(self.machine, gpu)
        if self.machine.profile.virtualization is codes.Virtualization.VGPU:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        if not self.may_configure:
            raise codes.NvmlError(codes.Return.NO_PERMISSION)
        return mig

    def _active(self, gpu: machine.Gpu) -> partition.Partition:
        mig = self._configured(gpu)
        mig.require_mode()
        return mig

    def _gpu_instance(self, handle: client.Handle) -> tuple[machine.Gpu, state.GpuInstance]:
        gpu, serial = self._parse_part("gi", handle)
        for instance in self.machine.board(gpu).instances:
            if instance.serial == serial:
                return gpu, instance
        raise codes.NvmlError(codes.Return.NOT_FOUND)

    def _compute_instance(
        self, handle: client.Handle
    ) -> tuple[machine.Gpu, state.GpuInstance, state.ComputeInstance]:
        gpu, serial = self._parse_part("ci", handle)
        return gpu, *self.compute_by_serial(gpu, serial)


def _known(compute_profile: int) -> int:
    if compute_profile not in geometry.COMPUTE_SLICES:
        raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
    return compute_profile


def _profile_info(offered: partition.GpuProfile, count: int) -> GpuInstanceProfileInfo:
    shape, has = offered.shape, offered.has
    return GpuInstanceProfileInfo(
        id=shape.id,
        is_p2p_supported=0,
        slice_count=shape.slices,
        instance_count=count,
        multiprocessor_count=has.sm,
        copy_engine_count=has.copy_engines,
        decoder_count=has.decoders,
        encoder_count=has.encoders,
        jpeg_count=has.jpeg,
        ofa_count=has.ofa,
        memory_size_mb=has.memory_mib,
        name=f"MIG {has.name}",
        capabilities=codes.GRAPHICS if has.name.endswith("+gfx") else 0,
    )


def _compute_profile_info(parent: partition.GpuProfile, profile: int) -> ComputeInstanceProfileInfo:
    has, slices = parent.has, geometry.COMPUTE_SLICES[profile]
    return ComputeInstanceProfileInfo(
        id=profile,
        slice_count=slices,
        instance_count=len(parent.compute_placements(profile)),
        multiprocessor_count=parent.multiprocessors(profile),
        shared_copy_engine_count=has.copy_engines,
        shared_decoder_count=has.decoders,
        shared_encoder_count=has.encoders,
        shared_jpeg_count=has.jpeg,
        shared_ofa_count=has.ofa,
        name=f"MIG {partition.device_name(parent, profile)}",
    )
