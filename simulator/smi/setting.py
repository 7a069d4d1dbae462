"""What `nvidia-smi` changes: compute mode, persistence, MIG mode, time-slice; and the reset."""

from collections.abc import Iterator

from simulator import codes
from simulator.smi import arguments, refusal, selection

COMPUTE_MODES = {mode.name: int(mode) for mode in codes.ComputeMode}
SWITCH = {"DISABLED": 0, "ENABLED": 1}
TIMESLICES = {interval.name: int(interval) for interval in codes.Timeslice}
DONE = "All done.\n"
_NOT_RESET = 255
"""The status where a GPU is in use; users report this one, and not NVML's code."""
STOPPED = "Terminating early due to previous errors.\n"
_BUSY = (
    "1 device is currently being used by one or more other processes (e.g., Fabric Manager, CUDA"
    " application, graphics application such as an X server, or a monitoring application such as"
    " another instance of nvidia-smi). Please first kill all processes using this device and all"
    " compute applications running in the system.\n"
)


def compute_mode(nvml: selection.Nvml, ids: str | None, value: str) -> Iterator[str]:
    """`-c`: a GPU that cannot is a warning, any other refusal ends it."""
    mode = arguments.choice("compute mode", value, COMPUTE_MODES)
    name = codes.ComputeMode(mode).name
    for target in selection.targets(nvml, ids):
        if nvml.device_get_compute_mode(target.handle) == mode:
            yield f"Compute mode is already set to {name} for GPU {target.bus_id}.\n"
            continue
        try:
            nvml.device_set_compute_mode(target.handle, mode)
        except codes.NvmlError as e:
            yield from _warn(f"Unable to set the compute mode for GPU {target.bus_id}", e)
            continue
        yield f"Set compute mode to {name} for GPU {target.bus_id}.\n"
    yield DONE


def persistence(nvml: selection.Nvml, ids: str | None, value: str) -> Iterator[str]:
    """`-pm`."""
    mode = arguments.choice("persistence mode", value, SWITCH)
    name = "Enabled" if mode else "Disabled"
    for target in selection.targets(nvml, ids):
        if nvml.device_get_persistence_mode(target.handle) == bool(mode):
            yield f"Persistence mode is already {name} for GPU {target.bus_id}.\n"
            continue
        try:
            nvml.device_set_persistence_mode(target.handle, mode)
        except codes.NvmlError as e:
            yield from _warn(f"Unable to set persistence mode for GPU {target.bus_id}", e)
            continue
        yield f"{name} persistence mode for GPU {target.bus_id}.\n"
    yield DONE


def mig_mode(nvml: selection.Nvml, ids: str | None, value: str) -> Iterator[str]:
    """`-mig`: what cannot be at once is pending, with a warning that says why."""
    mode = arguments.choice("MIG mode", value, SWITCH)
    verb = "enable" if mode else "disable"
    for target in selection.targets(nvml, ids):
        try:
            status = nvml.device_set_mig_mode(target.handle, mode)
        except codes.NvmlError as e:
            yield from _warn(f"Unable to {verb} MIG Mode for GPU {target.bus_id}", e)
            continue
        if status:
            yield from _pending(target.bus_id, verb, status)
        yield f"{verb.title()}d MIG Mode for GPU {target.bus_id}\n"
    yield DONE


def _pending(bus_id: str, verb: str, status: int) -> Iterator[str]:
    why = refusal.words(status)
    yield f"Warning: MIG mode is in pending {verb} state for GPU {bus_id}:{why}\n"
    if status == codes.Return.IN_USE:
        yield (
            f"{bus_id} is currently being used by one or more other processes (e.g. CUDA"
            " application or a monitoring application such as another instance of nvidia-smi)."
            " Please first kill all processes using the device and retry the command or reboot"
            " the system to make MIG mode effective.\n"
        )
    else:
        yield (
            "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU"
            f" {bus_id}\n"
        )


def reset(nvml: selection.Nvml, ids: str | None) -> Iterator[str]:
    """`--gpu-reset`."""
    for target in selection.targets(nvml, ids):
        try:
            nvml.device_reset(target.handle)
        except codes.NvmlError as e:
            if e.code == codes.Return.NOT_SUPPORTED:
                said = f"Resetting GPU {target.bus_id} is not supported.\n"
                raise refusal.RefusedError(said, e.code) from e
            why = refusal.words(e.code)
            said = f"The following GPUs could not be reset:\n  GPU {target.bus_id}: {why}\n"
            if e.code == codes.Return.IN_USE:
                raise refusal.RefusedError(f"{said}\n{_BUSY}", _NOT_RESET) from e
            raise refusal.RefusedError(said, e.code) from e
        yield f"GPU {target.bus_id} was successfully reset.\n"
    yield DONE


def set_timeslice(nvml: selection.Nvml, ids: str | None, value: str) -> Iterator[str]:
    """`compute-policy --set-timeslice`. The words are assumed: no output was found."""
    interval = arguments.choice("timeslice", value, TIMESLICES)
    name = codes.Timeslice(interval).name.title()
    for target in selection.targets(nvml, ids):
        try:
            nvml.device_set_timeslice(target.handle, interval)
        except codes.NvmlError as e:
            why = refusal.words(e.code)
            raise refusal.RefusedError(
                f"Failed to set timeslice policy with value {name} for GPU {target.index} : {why}\n"
                f"Failed to set timeslice for requested devices : {why}\n",
                e.code,
            ) from e
        yield f"Successfully set timeslice policy with value {name} for GPU {target.index}\n"


def list_policies(nvml: selection.Nvml, ids: str | None) -> Iterator[str]:
    """`compute-policy -l`, as 580.159.04 prints it."""
    rule = "+-------------------------------------+\n"
    yield f"{rule}| GPU compute policies:               |\n"
    yield "| GPU     Name           Value        |\n|=====================================|\n"
    for target in selection.targets(nvml, ids):
        told = selection.answer(nvml.device_get_timeslice, target.handle)
        value = "N/A" if told is None else codes.Timeslice(told).name.title()
        yield f"| {target.index:>3}   {'Timeslice':<16}{value:<14}|\n{rule}"


def _warn(what: str, error: codes.NvmlError) -> Iterator[str]:
    """What a GPU does not have is passed over; any other refusal ends the command."""
    said = f"{what}: {refusal.words(error.code)}\n"
    if error.code not in selection.ABSENT:
        raise refusal.RefusedError(said + STOPPED, error.code) from error
    yield f"{said}Treating as warning and moving on.\n"
