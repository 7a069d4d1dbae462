"""Interfaces between the plugin's modules and to the node. Values and protocols."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from driver import errors, ids, reasons
from driver.devices import health, mig, model, mps_files
from driver.resources.dra import claims


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """A claim as the kubelet names it. All state is keyed by the UID."""

    namespace: str
    name: str
    uid: ids.ClaimUid


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """One device of the kubelet's response (dra/v1 Device); `request` is a base name."""

    request: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The claim is ready on this node."""

    devices: tuple[PreparedDevice, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The claim is not ready, and why.

    `permanent`: the same claim will be refused again. `holders`: the claims that hold its devices.
    """

    reason: reasons.Reason
    message: str
    permanent: bool = False
    holders: tuple[ClaimRef, ...] = ()


Cancelled = Callable[[], bool]
"""Returns whether the caller has gone: then nothing more may be done for it."""


class Preparation(Protocol):
    """The use case behind the kubelet's calls. Thread safe; one claim at a time per UID."""

    def prepare(self, ref: ClaimRef, cancelled: Cancelled) -> Prepared | Refused:
        """Make the claim's devices ready; idempotent, with the same response every time."""
        ...

    def unprepare(self, ref: ClaimRef) -> Refused | None:
        """Unprepare from the record alone; returns None once nothing of the claim is left."""
        ...

    def check(self, ref: ClaimRef) -> Refused | None:
        """Return whether the claim would be refused now; changes nothing and does not wait.

        Raises RationError if that is unknown now.
        """
        ...


class Nvml(Protocol):
    """The GPU driver's library. Raises DeviceFault."""

    def inventory(self) -> model.Inventory:
        """Read every GPU, in PCI order, and those that cannot be read."""
        ...

    def refresh_gpu(self, gpu: model.Gpu) -> model.Gpu:
        """Re-read the fields of a GPU that a MIG change affects: minor, mode and instances."""
        ...

    def read_minor(self, gpu: model.Gpu) -> int:
        """Return the GPU's minor number now; a change of the MIG mode may change it."""
        ...

    def is_current(self, gpu: model.Gpu, profile_ids: Iterable[int]) -> bool:
        """Return whether its MIG mode and its instances of some profiles are as in `gpu`.

        That takes a part of the calls of a `refresh_gpu`.
        """
        ...

    def set_gpus(self, inventory: model.Inventory) -> None:
        """Set the node's GPUs, as far as known."""
        ...

    def hung_call(self, gpu: ids.GpuUuid) -> errors.Hung | None:
        """Return the overdue call of the GPU; no other is started meanwhile."""
        ...


class Partitions(Protocol):
    """Changes of a GPU's MIG; the caller holds the GPU. Raises DeviceFault.

    A failure that left nothing behind raises Unchanged. `patience_s` limits the retries while the
    GPU reports that it is in use: processes leave slowly.
    """

    def enable(self, gpu: ids.GpuUuid, patience_s: float = 0.0) -> bool:
        """Turn MIG on; return whether it was off."""
        ...

    def disable(self, gpu: ids.GpuUuid, patience_s: float) -> bool:
        """Turn MIG off unless an instance remains; return whether it was turned off."""
        ...

    def create(self, ref: mig.InstanceRef) -> mig.Instance:
        """Create an instance and its one device at a free placement."""
        ...

    def destroy(
        self, ref: mig.InstanceRef, patience_s: float, created: mig.Instance | None = None
    ) -> None:
        """Destroy our instance at a placement; one with another UUID stays.

        `created` is what `create` returned: by its ids the instance is found without a search.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The GPU lacks the setting, in the words of the tool."""

    message: str


class TimeSlices(Protocol):
    """A GPU's time slice; the caller holds the GPU. Raises NodeFault."""

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> Unsupported | None:
        """Set it: `Default`, `Short`, `Medium` or `Long`."""
        ...


class ComputeModeAccess(Protocol):
    """The compute mode of a GPU or MIG device, by NVML's numbers. Raises DeviceFault."""

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        """Return the mode; None if the device has none."""
        ...

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        """Set the mode."""
        ...


class ComputeModes(Protocol):
    """Compute modes of shared GPUs and MIG devices; the caller holds the GPU.

    Raises DeviceFault, NodeFault.
    """

    def set_shared(
        self, gpu: ids.GpuUuid, *, exclusive: bool, fallback: int | None = None
    ) -> int | None:
        """Allow one process, or any number, while claims share it; return the original mode.

        `fallback` is that mode if claims had the GPU before it was persisted; returns None for a
        GPU without a mode.
        """
        ...

    def restore(self, gpu: ids.GpuUuid, fallback: int | None = None) -> None:
        """Restore the original mode; `fallback` if it is not persisted, None: leave as is."""
        ...

    def set_exclusive(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """Allow one process, or any number, on a MIG device of ours."""
        ...


class ProcessCounter(Protocol):
    """Counter of a GPU's processes. Raises DeviceFault."""

    def count(self, gpu: ids.GpuUuid) -> int:
        """Return the number of compute processes on the whole GPU."""
        ...


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU: its pid on the host, and the bytes of the GPU that it uses.

    `used_bytes` is None if the GPU does not report it.
    """

    pid: int
    used_bytes: int | None


class ProcessLister(Protocol):
    """Processes of a GPU and their memory. Raises DeviceFault."""

    def list_processes(self, gpu: ids.GpuUuid) -> tuple[GpuProcess, ...]:
        """Return every compute process of the whole GPU, MPS clients included, by pid."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """Recent activity of a process: percent of the GPU's multiprocessors (SMs), and NVML's time.

    The time is in microseconds. An idle process has none.
    """

    pid: int
    percent: int
    stamp_us: int


class UtilizationSampler(Protocol):
    """Utilization of a GPU and of its processes. Raises DeviceFault."""

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[Sample, ...] | None:
        """Return each process active after the last sample; None if the GPU reports none."""
        ...

    def utilization_percent(self, gpu: ids.GpuUuid) -> int | None:
        """Return the whole GPU's utilization; None if not reported, as with MIG on."""
        ...


class Meter(Protocol):
    """Power draw of GPUs, and memory used of MIG devices. Raises DeviceFault."""

    def power_watts(self, gpu: ids.GpuUuid) -> float | None:
        """Return the whole GPU's power draw in watts; None if not reported."""
        ...

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        """Return the used memory of a MIG device; None if not reported."""
        ...


ProcessPods = Callable[[int], tuple[ids.PodUid, ...]]
"""The pods that a process of the host may be of, the outermost first; () when it is of none."""


class Daemons(Protocol):
    """MPS daemons, by key; one caller per key. Raises NodeFault."""

    @property
    def root(self) -> Path:
        """Return the folder of all their directories."""
        ...

    def ensure(self, desired: mps_files.Desired) -> None:
        """Request the daemon; returns when it serves as desired."""
        ...

    def last_pid(self, key: str) -> int | None:
        """Return the daemon's pid at the last `ensure`; None if it was not awaited here."""
        ...

    def request(self, desired: mps_files.Desired) -> None:
        """Request the daemon, without waiting for it."""
        ...

    def desired_keys(self) -> tuple[str, ...]:
        """Return the keys of the desired daemons."""
        ...

    def read_desired(self, key: str) -> mps_files.Desired | None:
        """Return a daemon's desired state; None if there is none that can be read."""
        ...

    def remove(self, key: str) -> None:
        """Remove the daemon; returns when it is gone."""
        ...

    def status(self, key: str) -> mps_files.Status | None:
        """Return the daemon's status; None without one."""
        ...


@dataclass(frozen=True, slots=True)
class ConditionUpdate:
    """One condition of a claim's devices (`status.devices[].conditions`, KEP-4817).

    `type` is one of `names.CONDITION_*`; `holds` None: unknown; `permanent`: it will not change by
    waiting.
    """

    type: str
    holds: bool | None
    reason: reasons.Reason
    message: str
    permanent: bool = False


class DeviceKey(NamedTuple):
    """A device of a claim, or one share of it."""

    device: str
    share_id: str = ""


@dataclass(frozen=True, slots=True)
class ObservedActivity:
    """Activity of a device, as observed by this process; times are RFC 3339.

    `percent` of the multiprocessors on average over the last minute, 0 if nothing ran; None if
    something ran and the claim's share is unknown. `last_busy` is "" if it was never seen busy;
    `first_observed` is the first observation.
    """

    percent: int | None
    peak_bytes: int
    last_busy: str
    first_observed: str


class Conditions(Protocol):
    """Sink of claim conditions, read by the controller and users. Thread safe, never waits."""

    def set_condition(self, ref: ClaimRef, update: ConditionUpdate) -> None:
        """Set a condition of all the claim's devices of ours; the latest of a type counts."""
        ...


class Activities(Protocol):
    """Sink of claims' device activity. Thread safe, never waits."""

    def set_activity(self, ref: ClaimRef, activities: Mapping[DeviceKey, ObservedActivity]) -> None:
        """Set the activity of these devices of the claim; the latest counts."""
        ...


class ClaimReader(Protocol):
    """Claims from the API server. Raises ApiError."""

    def read(self, ref: ClaimRef) -> claims.Claim:
        """Return the claim of that name as it is now, whatever its UID."""
        ...


class ClaimStatus(ClaimReader, Protocol):
    """The part of a claim that the plugin may change: its device status. Raises ApiError."""

    def apply(self, ref: ClaimRef, body: Mapping[str, object]) -> None:
        """Apply the plugin's part of the claim's status (server-side apply)."""
        ...


@dataclass(frozen=True, slots=True)
class GpuChanged:
    """A GPU may have changed and should be polled; None: a GPU that is not known."""

    gpu: ids.GpuUuid | None


@dataclass(frozen=True, slots=True)
class MigChanged:
    """A GPU's MIG mode or instances changed, by us or by another hand. Its health did not."""

    gpu: ids.GpuUuid


class Watcher(Protocol):
    """The GPU driver's events and polls; see `nvml.health`. Raises DeviceFault."""

    @property
    def watching(self) -> bool:
        """Return whether events are registered for at least one GPU."""
        ...

    def readable_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return every GPU that can be read."""
        ...

    def watch(self, gpus: Iterable[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        """Watch exactly these GPUs; return the result for those added."""
        ...

    def wait(self, timeout_s: float) -> health.XidEvent | GpuChanged | MigChanged | None:
        """Return the next event; None if there was none."""
        ...

    def known_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Return the node's GPUs, as last read."""
        ...

    def poll(self, gpu: ids.GpuUuid) -> health.PollResult | None:
        """Return the poll of one GPU; None if it has not answered yet: poll again."""
        ...

    def close(self) -> None:
        """Watch nothing; the next `watch` starts anew. Does not raise."""
        ...
