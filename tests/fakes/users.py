"""Users of a GPU's memory, over the simulator's machine model and without its C library."""

from driver import errors, ids
from driver.kubeletplugin import ports
from simulator import codes, library


class FakeUsers:
    """Implements `ports.ProcessLister`; `asked` are the GPUs that were looked at, in order."""

    def __init__(self, ask: library.Library) -> None:
        self._ask = ask
        self.asked: list[ids.GpuUuid] = []

    def list_processes(self, gpu: ids.GpuUuid) -> tuple[ports.GpuProcess, ...]:
        self.asked.append(gpu)
        try:
            handle = self._ask.device_get_handle_by_uuid(gpu)
            listed = (
                *self._ask.device_get_compute_running_processes(handle),
                *self._ask.device_get_mps_compute_running_processes(handle),
            )
        except codes.NvmlError as e:
            raise errors.DeviceFault(gpu, "who uses it", e.code, str(e)) from e
        document = {process.pid: process.used_gpu_memory for process in listed}
        return tuple(
            ports.GpuProcess(pid, None if size == codes.NOT_AVAILABLE else size)
            for pid, size in sorted(document.items())
        )


class Nobody:
    """There is nothing to look at."""

    def list_processes(self, gpu: ids.GpuUuid) -> tuple[ports.GpuProcess, ...]:
        raise AssertionError(f"{gpu} was looked at")


class FakeWorkers:
    """Implements `ports.UtilizationSampler`."""

    def __init__(self, ask: library.Library) -> None:
        self._ask = ask

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[ports.Sample, ...] | None:
        try:
            handle = self._ask.device_get_handle_by_uuid(gpu)
            process_samples = self._ask.device_get_process_utilization(handle, stamp_us)
        except codes.NvmlError as e:
            if e.code == codes.Return.NOT_FOUND:
                return ()
            if e.code == codes.Return.NOT_SUPPORTED:
                return None
            raise errors.DeviceFault(gpu, "who works on it", e.code, str(e)) from e
        return tuple(
            ports.Sample(process_sample.pid, process_sample.sm_util, process_sample.time_stamp)
            for process_sample in process_samples
        )

    def utilization_percent(self, gpu: ids.GpuUuid) -> int | None:
        try:
            handle = self._ask.device_get_handle_by_uuid(gpu)
            return self._ask.device_get_utilization_rates(handle).gpu
        except codes.NvmlError as e:
            if e.code == codes.Return.NOT_SUPPORTED:
                return None
            raise errors.DeviceFault(gpu, "how busy it is", e.code, str(e)) from e


class FakeMeter:
    """Implements `ports.Meter`."""

    def __init__(self, ask: library.Library) -> None:
        self._ask = ask

    def power_watts(self, gpu: ids.GpuUuid) -> float | None:
        try:
            handle = self._ask.device_get_handle_by_uuid(gpu)
            return self._ask.device_get_power_usage(handle) / 1000
        except codes.NvmlError as e:
            raise errors.DeviceFault(gpu, "what it draws", e.code, str(e)) from e

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        try:
            handle = self._ask.device_get_handle_by_uuid(device)
            return self._ask.device_get_memory_info(handle).used
        except codes.NvmlError as e:
            raise errors.DeviceFault(device, "what is used", e.code, str(e)) from e


class Idle:
    """There is nothing to look at; nothing to meter."""

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[ports.Sample, ...] | None:
        raise AssertionError(f"{gpu} was looked at, from {stamp_us} on")

    def utilization_percent(self, gpu: ids.GpuUuid) -> int | None:
        raise AssertionError(f"{gpu} was looked at")

    def power_watts(self, gpu: ids.GpuUuid) -> float | None:
        raise AssertionError(f"{gpu} was looked at")

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        raise AssertionError(f"{device} was looked at")
