"""What changes on a machine, as values that are written to disk whole."""

from dataclasses import dataclass, field

from simulator import codes, geometry


@dataclass(slots=True)
class Process:
    """A compute client: memory in bytes, instance ids `codes.WHOLE_GPU` outside MIG.

    `held` is there only while its owner is connected; `mps` is a client of an MPS server.
    `sm_percent` is how much of the multiprocessors it keeps busy.
    """

    pid: int
    memory: int
    gpu_instance: int = codes.WHOLE_GPU
    compute_instance: int = codes.WHOLE_GPU
    held: bool = False
    mps: bool = False
    sm_percent: int = 0


@dataclass(slots=True)
class ComputeInstance:
    """A MIG device. `serial` is never given twice; `index` is its place among the MIG devices."""

    serial: int
    id: int
    profile: int
    at: geometry.Placement
    index: int
    uuid: str
    compute_mode: int = codes.ComputeMode.DEFAULT


@dataclass(slots=True)
class GpuInstance:
    """A part of a GPU; `profile` is the profile's id, `serial` is never given twice."""

    serial: int
    id: int
    profile: int
    at: geometry.Placement
    compute: list[ComputeInstance] = field(default_factory=list)


@dataclass(slots=True)
class Errors:
    """Counted memory errors."""

    corrected: int = 0
    uncorrected: int = 0


@dataclass(slots=True)
class Remap:
    """Remapped rows; `failed` never goes away."""

    corrected: int = 0
    uncorrected: int = 0
    pending: bool = False
    failed: bool = False


@dataclass(slots=True)
class Retired:
    """Pages taken out of use by GPUs before Ampere, by cause; `pending` until the next reset."""

    single_bit: int = 0
    double_bit: int = 0
    pending: bool = False


@dataclass(slots=True)
class Repair:
    """Repairs due at the next reset, and memory that no repair helps."""

    channel: bool = False
    tpc: bool = False
    unrepairable: bool = False


@dataclass(slots=True)
class Sram:
    """Errors of on-chip memory. `exceeded` asks for another GPU, and stays."""

    volatile: Errors = field(default_factory=Errors)
    aggregate: Errors = field(default_factory=Errors)
    exceeded: bool = False


@dataclass(slots=True)
class Board:
    """What changes on a GPU. Power in mW; `mig` is the current mode, `mig_pending` the next one.

    A `gone` GPU is `lost`, and no longer enumerated. `minor` is the one it moved to, `moves` says
    that the next MIG mode moves it. `shy` GPUs refuse MIG modes while other NVML clients are open.
    `veiled` ones do not tell how much memory a process uses. `hangs` is the call that does not
    return, `*` for every one, "" for none.
    """

    power_mw: int
    celsius: int
    lost: bool = False
    gone: bool = False
    persistence: bool = True
    compute_mode: int = codes.ComputeMode.DEFAULT
    timeslice: int = codes.Timeslice.DEFAULT
    gpu_percent: int = 0
    memory_percent: int = 0
    sm_mhz: int = 0
    memory_mhz: int = 0
    mig: bool = False
    mig_pending: bool = False
    instances: list[GpuInstance] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    recovery: int = codes.RecoveryAction.NONE
    ecc: Errors = field(default_factory=Errors)
    ecc_aggregate: Errors = field(default_factory=Errors)
    remap: Remap = field(default_factory=Remap)
    retired: Retired = field(default_factory=Retired)
    repair: Repair = field(default_factory=Repair)
    sram: Sram = field(default_factory=Sram)
    minor: int | None = None
    moves: bool = False
    shy: bool = False
    veiled: bool = False
    hangs: str = ""
    energy_mj: int = 0
    refuse_in_use: int = 0
    refuse_resources: int = 0


@dataclass(slots=True)
class State:
    """Everything that outlives the node process; `boards` by PCI address.

    `serials` counts the MIG instances ever made: their UUIDs follow from it, over reboots too.
    `slow` has the milliseconds a call takes. The drivers are versions: `loaded` in the kernel (the
    profile's when empty), `installed` on disk (the loaded one when empty).
    """

    boots: int = 1
    serials: int = 0
    boards: dict[str, Board] = field(default_factory=dict)
    slow: dict[str, int] = field(default_factory=dict)
    loaded_driver: str = ""
    installed_driver: str = ""
