"""NVML's numbers: return codes and the enums the model answers with (source: nvml.h, pynvml)."""

from enum import IntEnum


class Return(IntEnum):
    """`nvmlReturn_t`."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    INSUFFICIENT_RESOURCES = 23
    UNKNOWN = 999


class NvmlError(Exception):
    """An NVML call that did not succeed; `code` is the `nvmlReturn_t`."""

    def __init__(self, code: Return) -> None:
        super().__init__(f"NVML error {code.value} ({code.name})")
        self.code = code


class Brand(IntEnum):
    """`nvmlBrandType_t`, the brands of the machines described here."""

    TESLA = 2
    NVIDIA = 14


class Architecture(IntEnum):
    """`nvmlDeviceArchitecture_t`."""

    TURING = 6
    AMPERE = 7
    ADA = 8
    HOPPER = 9
    BLACKWELL = 10


class ComputeMode(IntEnum):
    """`nvmlComputeMode_t`; 1 was removed from NVML."""

    DEFAULT = 0
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class Timeslice(IntEnum):
    """The time-slice interval of a GPU, as `nvidia-smi compute-policy` numbers it."""

    DEFAULT = 0
    SHORT = 1
    MEDIUM = 2
    LONG = 3


class TopologyLevel(IntEnum):
    """`nvmlGpuTopologyLevel_t`."""

    INTERNAL = 0
    SINGLE = 10
    MULTIPLE = 20
    HOSTBRIDGE = 30
    NODE = 40
    SYSTEM = 50


class P2PIndex(IntEnum):
    """`nvmlGpuP2PCapsIndex_t`."""

    READ = 0
    WRITE = 1
    NVLINK = 2
    ATOMICS = 3
    PCI = 4


class P2PStatus(IntEnum):
    """`nvmlGpuP2PStatus_t`."""

    OK = 0
    NOT_SUPPORTED = 5


class Field(IntEnum):
    """Field ids of `nvmlDeviceGetFieldValues` that the model answers."""

    ECC_CURRENT = 1
    ECC_PENDING = 2
    ECC_SBE_VOL_TOTAL = 3
    ECC_DBE_VOL_TOTAL = 4
    ECC_SBE_AGG_TOTAL = 5
    ECC_DBE_AGG_TOTAL = 6
    MEMORY_TEMPERATURE = 82
    TOTAL_ENERGY_CONSUMPTION = 83
    NVLINK_SPEED_COMMON = 90
    NVLINK_LINK_COUNT = 91
    REMAPPED_CORRECTABLE = 142
    REMAPPED_UNCORRECTABLE = 143
    REMAPPED_PENDING = 144
    REMAPPED_FAILURE = 145
    NVSWITCH_CONNECTED_LINK_COUNT = 147
    NVLINK_GET_SPEED = 164
    NVLINK_GET_STATE = 165
    NVLINK_GET_VERSION = 166
    IS_RESETLESS_MIG_SUPPORTED = 184
    POWER_AVERAGE = 185
    POWER_INSTANT = 186
    POWER_MIN_LIMIT = 187
    POWER_MAX_LIMIT = 188
    POWER_DEFAULT_LIMIT = 189
    POWER_CURRENT_LIMIT = 190
    ENERGY = 191
    POWER_REQUESTED_LIMIT = 192
    GPU_RECOVERY_ACTION = 230


class Virtualization(IntEnum):
    """`nvmlGpuVirtualizationMode_t`, as far as a machine here can be."""

    NONE = 0
    PASSTHROUGH = 1
    VGPU = 2


class AddressingMode(IntEnum):
    """`nvmlDeviceAddressingModeType_t`."""

    NONE = 0
    HMM = 1
    ATS = 2


class Clock(IntEnum):
    """`nvmlClockType_t`."""

    GRAPHICS = 0
    SM = 1
    MEMORY = 2
    VIDEO = 3


FABRIC_COMPLETED = 3
FABRIC_HEALTHY = 1
"""`nvmlGpuFabricState_t` and the health summary of structure v3."""


class RecoveryAction(IntEnum):
    """Values of field 230."""

    NONE = 0
    GPU_RESET = 1
    NODE_REBOOT = 2
    DRAIN_P2P = 3
    DRAIN_AND_RESET = 4
    RECOVER_IMEX_DOMAIN = 5
    BUS_RESET = 6
    SYSTEM_REBOOT = 7


GRAPHICS = 2
"""NVML_GPU_INSTANCE_PROFILE_CAPS_GFX: an instance that graphics programs can use."""

MEMORY_LOCATION_DEVICE = 2
"""`nvmlMemoryLocation_t`: the GPU's own memory."""

RECOVERY_SINCE = 560
"""Driver major that answers field 230 first. Assumed: sources name R560 without proof."""

WHOLE_GPU = 0xFFFFFFFF
"""For an instance id: not one instance, the GPU as a whole."""
NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF
"""`NVML_VALUE_NOT_AVAILABLE`, of a process's memory."""

NVLINK_MAX_LINKS = 36
NVLINK_REMOTE_GPU, NVLINK_REMOTE_SWITCH = 0, 2
NVLINK_VERSION = {1: 1, 2: 2, 3: 4, 4: 6, 5: 7}
"""NVLink generation to `nvmlNvlinkVersion_t` (3 is 2.2, 5 is 3.1)."""
