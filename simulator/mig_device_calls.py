"""NVML calls that take the handle of a MIG device, or lead to one."""

from dataclasses import dataclass

from simulator import client, codes, geometry, machine, partition, state


@dataclass(frozen=True, slots=True)
class Attributes:
    """`nvmlDeviceAttributes_t`."""

    multiprocessor_count: int
    shared_copy_engine_count: int
    shared_decoder_count: int
    shared_encoder_count: int
    shared_jpeg_count: int
    shared_ofa_count: int
    gpu_instance_slice_count: int
    compute_instance_slice_count: int
    memory_size_mb: int


class MigDeviceCalls(client.Client):
    """A client sees the MIG devices whose two access capabilities it can open."""

    @client.call
    def device_is_mig_device_handle(self, device: client.Handle) -> bool:
        """Whether the handle is a MIG device's."""
        if client.is_mig(device):
            self._mig_device(device)
            return True
        self._gpu(device)
        return False

    @client.call
    def device_get_max_mig_device_count(self, device: client.Handle) -> int:
        """0 while MIG is off or not supported."""
        gpu = self._gpu(device)
        if not self.machine.board(gpu).mig:
            return 0
        return partition.Partition(self.machine, gpu).max_devices

    @client.call
    def device_get_mig_device_handle_by_index(
        self, device: client.Handle, index: int
    ) -> client.Handle:
        """NOT_FOUND in a gap; a destroyed device leaves one until its index is given again."""
        gpu = self._gpu(device)
        if not self.machine.board(gpu).mig:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        if not 0 <= index < partition.Partition(self.machine, gpu).max_devices:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        for _, compute in self.mig_devices(gpu):
            if compute.index == index:
                return self._part("mig", gpu, compute)
        raise codes.NvmlError(codes.Return.NOT_FOUND)

    @client.call
    def device_get_gpu_instance_id(self, device: client.Handle) -> int:
        """Of a MIG device only."""
        return self._only_mig(device)[1].id

    @client.call
    def device_get_compute_instance_id(self, device: client.Handle) -> int:
        """Of a MIG device only."""
        return self._only_mig(device)[2].id

    @client.call
    def device_get_device_handle_from_mig_device_handle(
        self, device: client.Handle
    ) -> client.Handle:
        """The GPU it lies on."""
        return self._handle(self._only_mig(device)[0])

    @client.call
    def device_get_attributes(self, device: client.Handle) -> Attributes:
        """What a MIG device has, engines shared within its GPU instance; NOT_SUPPORTED for GPUs."""
        if not client.is_mig(device):
            self._gpu(device)
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        gpu, instance, compute = self._mig_device(device)
        parent = partition.Partition(self.machine, gpu).profile(instance.profile)
        shape, has = parent.shape, parent.has
        slices = geometry.COMPUTE_SLICES[compute.profile]
        return Attributes(
            multiprocessor_count=parent.multiprocessors(compute.profile),
            shared_copy_engine_count=has.copy_engines,
            shared_decoder_count=has.decoders,
            shared_encoder_count=has.encoders,
            shared_jpeg_count=has.jpeg,
            shared_ofa_count=has.ofa,
            gpu_instance_slice_count=shape.slices,
            compute_instance_slice_count=slices,
            memory_size_mb=has.memory_mib,
        )

    def _only_mig(
        self, device: client.Handle
    ) -> tuple[machine.Gpu, state.GpuInstance, state.ComputeInstance]:
        if not client.is_mig(device):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return self._mig_device(device)
