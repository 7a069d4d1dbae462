"""The plugin's world: what its rooms ask of each other and of the node. Values and protocols."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from driver import errors, ids, reasons
from driver.devices import health, mig, model, mps_files
from driver.resources.dra import claims


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """A claim as the kubelet names it. Everything kept is keyed by the UID."""

    namespace: str
    name: str
    uid: ids.ClaimUid


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """One device of the kubelet's answer (dra/v1 Device); `request` is a base name."""

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

    `permanent`: the same claim will be refused again. `holders`: the claims that have what it asks.
    """

    reason: reasons.Reason
    message: str
    permanent: bool = False
    holders: tuple[ClaimRef, ...] = ()


Cancelled = Callable[[], bool]
"""Whether the caller has gone: then nothing more may be done for it."""


class Preparation(Protocol):
    """The use case behind the kubelet's calls. Thread safe; one claim at a time per UID."""

    def prepare(self, ref: ClaimRef, cancelled: Cancelled) -> Prepared | Refused:
        """Make the claim's devices ready; the same answer for the same claim every time."""
        ...

    def unprepare(self, ref: ClaimRef) -> Refused | None:
        """Undo it, from the record alone; None when nothing of the claim is left."""
        ...

    def check(self, ref: ClaimRef) -> Refused | None:
        """Whether the claim would be refused now; changes nothing and waits for nobody.

        Raises RationError where that cannot be said now.
        """
        ...


class Nvml(Protocol):
    """The GPU driver's library. Raises DeviceFault."""

    def inventory(self) -> model.Inventory:
        """Every GPU that can be read, in PCI order, and those that cannot."""
        ...

    def refresh_gpu(self, gpu: model.Gpu) -> model.Gpu:
        """What a change of its MIG changes of a GPU, read again: minor, mode and instances."""
        ...

    def set_gpus(self, inventory: model.Inventory) -> None:
        """These are the GPUs that there are, as far as is known."""
        ...

    def hung_call(self, gpu: ids.GpuUuid) -> errors.Hung | None:
        """The call of the GPU that does not return; then no other is begun."""
        ...


class Partitions(Protocol):
    """Changes of a GPU's MIG; whoever calls holds the GPU. Raises DeviceFault.

    What failed and left nothing behind raises Unchanged. `patience_s` is how long to go on while
    the GPU says that it is in use: processes leave slowly.
    """

    def enable(self, gpu: ids.GpuUuid, patience_s: float = 0.0) -> bool:
        """Have MIG on; whether it was off."""
        ...

    def disable(self, gpu: ids.GpuUuid, patience_s: float) -> bool:
        """Have MIG off, unless an instance is left; whether it was turned off."""
        ...

    def create(self, place: mig.InstanceRef) -> mig.Instance:
        """Make an instance at a place that nothing lies on, with its one device."""
        ...

    def destroy(self, place: mig.InstanceRef, patience_s: float) -> None:
        """Have none of ours at a place; one with another UUID than the place's stays."""
        ...


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The GPU has no such knob, in the words of who was asked."""

    message: str


class TimeSlices(Protocol):
    """A GPU's time slice; whoever calls holds the GPU. Raises NodeFault."""

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> Unsupported | None:
        """Set it: `Default`, `Short`, `Medium` or `Long`."""
        ...


class ComputeModeAccess(Protocol):
    """The compute mode of a GPU or MIG device, by NVML's numbers. Raises DeviceFault."""

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        """Its mode; None of a device that has none."""
        ...

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        """Have a mode."""
        ...


class ComputeModes(Protocol):
    """Who may use a GPU or MIG device at once; whoever calls holds the GPU.

    Raises DeviceFault, NodeFault.
    """

    def set_shared(
        self, gpu: ids.GpuUuid, *, exclusive: bool, known: int | None = None
    ) -> int | None:
        """Let one process alone in, or anyone, while claims share it; the mode before them.

        `known` is that mode where claims had the GPU before it was remembered; the answer is None
        of a GPU without a mode.
        """
        ...

    def restore(self, gpu: ids.GpuUuid, otherwise: int | None = None) -> None:
        """Have the mode that was before; `otherwise` where that is not remembered, None: as is."""
        ...

    def set_exclusive(self, instance: ids.MigUuid, *, exclusive: bool) -> None:
        """Let one process alone into a MIG device of ours, or anyone."""
        ...


class ProcessCounter(Protocol):
    """Who is on a GPU. Raises DeviceFault."""

    def count(self, gpu: ids.GpuUuid) -> int:
        """How many compute processes are on the whole GPU."""
        ...


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU: its pid as the host counts, and the bytes of the GPU that it uses.

    `used_bytes` is None where the GPU does not tell.
    """

    pid: int
    used_bytes: int | None


class ProcessLister(Protocol):
    """Who uses how much of a GPU. Raises DeviceFault."""

    def list_processes(self, gpu: ids.GpuUuid) -> tuple[GpuProcess, ...]:
        """Every process that computes on the whole GPU, MPS's clients included, by pid."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process did of late: percent of the GPU's multiprocessors (SMs), and when (NVML's us).

    A process that did nothing has none.
    """

    pid: int
    percent: int
    stamp_us: int


class UtilizationSampler(Protocol):
    """Who is at work on a GPU. Raises DeviceFault."""

    def samples_since(self, gpu: ids.GpuUuid, stamp_us: int) -> tuple[Sample, ...] | None:
        """Every process that worked after the last sample's time; None: the GPU does not tell."""
        ...

    def utilization_percent(self, gpu: ids.GpuUuid) -> int | None:
        """How busy the whole GPU is now; None: it does not tell, as with MIG on."""
        ...


class Meter(Protocol):
    """What a GPU draws, and what is used of its parts. Raises DeviceFault."""

    def power_watts(self, gpu: ids.GpuUuid) -> float | None:
        """What the whole GPU draws; None: it does not tell."""
        ...

    def used_bytes(self, device: ids.MigUuid) -> int | None:
        """The memory of a MIG device that is used; None: it does not tell."""
        ...


ProcessPods = Callable[[int], tuple[ids.PodUid, ...]]
"""The pods that a process of the host may be of, the outermost first; () when it is of none."""


class Daemons(Protocol):
    """MPS daemons, by key; one caller a key. Raises NodeFault."""

    @property
    def root(self) -> Path:
        """The folder that all their directories are in."""
        ...

    def ensure(self, desired: mps_files.Desired) -> None:
        """Have the daemon; returns when it answers with what is wanted."""
        ...

    def last_pid(self, key: str) -> int | None:
        """The pid of the daemon when it last answered `want`; None: nobody waited for it here."""
        ...

    def request(self, desired: mps_files.Desired) -> None:
        """Ask for the daemon, without waiting for it."""
        ...

    def desired_keys(self) -> tuple[str, ...]:
        """The daemons that are wanted."""
        ...

    def read_desired(self, key: str) -> mps_files.Desired | None:
        """What is asked of a daemon; None where nothing is, or nothing that can be read."""
        ...

    def remove(self, key: str) -> None:
        """Have no daemon; returns when it is gone."""
        ...

    def status(self, key: str) -> mps_files.Status | None:
        """How the daemon is; None without word of one."""
        ...


@dataclass(frozen=True, slots=True)
class ConditionUpdate:
    """One condition of a claim's devices (`status.devices[].conditions`, KEP-4817).

    `type` is one of `names.CONDITION_*`; `holds` None: it is not known; `permanent`: it will not
    change by waiting.
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
    """What a device did, as far as this process saw it; times are RFC 3339.

    `percent` of the multiprocessors on average over the last minute, 0 when nothing ran in it; None
    where something ran and it is not known what share of it was the claim's. `last_busy` is "" when
    it was never seen busy; `at` is when it was first looked at.
    """

    percent: int | None
    peak_bytes: int
    last_busy: str
    first_observed: str


class Conditions(Protocol):
    """What is said of claims where the controller and users read it. Thread safe, never waits."""

    def set_condition(self, ref: ClaimRef, word: ConditionUpdate) -> None:
        """Have it said of every device that the claim has of us; the latest of a type counts."""
        ...


class Activities(Protocol):
    """What is told of what claims' devices do. Thread safe, never waits."""

    def set_activity(self, ref: ClaimRef, seen: Mapping[DeviceKey, ObservedActivity]) -> None:
        """Have it said of these devices of the claim; the latest counts."""
        ...


class ClaimReader(Protocol):
    """Claims from the API server. Raises ApiError."""

    def read(self, ref: ClaimRef) -> claims.Claim:
        """The claim of that name as it is now, whatever its UID."""
        ...


class ClaimStatus(ClaimReader, Protocol):
    """What of a claim the plugin may change: what it says of the devices. Raises ApiError."""

    def apply(self, ref: ClaimRef, body: Mapping[str, object]) -> None:
        """Have the claim's status say this of us, and no more (server-side apply)."""
        ...


@dataclass(frozen=True, slots=True)
class GpuChanged:
    """Something happened to a GPU that a look will tell; None: to one that is not known."""

    gpu: ids.GpuUuid | None


class Watcher(Protocol):
    """The GPU driver's events and polls; see `nvml.health`. Raises DeviceFault."""

    @property
    def watching(self) -> bool:
        """Whether events are asked for, of one GPU at least."""
        ...

    def readable_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """Every GPU that can be read."""
        ...

    def watch(self, gpus: Iterable[ids.GpuUuid]) -> tuple[health.Watched, ...]:
        """Have exactly these watched; how it went for those that were not yet."""
        ...

    def wait(self, timeout_s: float) -> health.XidEvent | GpuChanged | None:
        """The next event; None when there was none."""
        ...

    def known_gpus(self) -> tuple[ids.GpuUuid, ...]:
        """The GPUs that are the node's, as far as it was ever read."""
        ...

    def poll(self, gpu: ids.GpuUuid) -> health.PollResult | None:
        """What a poll of one GPU says; None: it has not answered yet, and is to be asked again."""
        ...

    def close(self) -> None:
        """Watch nothing; the next `watch` begins anew. Does not raise."""
        ...
