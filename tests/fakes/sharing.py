"""Time slices, compute modes and MPS daemons, over the simulator's machine model."""

from pathlib import Path

from driver import errors, ids
from driver.devices import mps_files
from driver.kubeletplugin import ports
from simulator import machine, state


class FakeSlices:
    """Implements `ports.TimeSlices`; `lacking` GPUs have no such knob."""

    def __init__(self, source: machine.Machine) -> None:
        self._of = source
        self.lacking: set[str] = set()
        self.runs = 0

    def set_interval(self, gpu: ids.GpuUuid, interval: str) -> ports.Unsupported | None:
        self.runs += 1
        if gpu in self.lacking:
            return ports.Unsupported("Not Supported")
        number = ("Default", "Short", "Medium", "Long").index(interval)
        self._of.board(self._of.find(gpu)).timeslice = number
        return None


class FakeModes:
    """Implements `ports.ComputeModeAccess`; MIG devices have none where they are `lacking`.

    Calls of GPUs in `hung` do not return; `late` has what they were asked to write.
    """

    def __init__(self, source: machine.Machine) -> None:
        self._of = source
        self.lacking = False
        self.hung: set[str] = set()
        self.late: dict[str, int] = {}

    def read(self, device: ids.GpuUuid | ids.MigUuid) -> int | None:
        self._enter(device, "nvmlDeviceGetComputeMode")
        return int(self._place(device).compute_mode)

    def write(self, device: ids.GpuUuid | ids.MigUuid, mode: int) -> None:
        if device in self.hung:
            self.late[device] = mode
        self._enter(device, "nvmlDeviceSetComputeMode")
        position = self._place(device)
        if isinstance(position, state.ComputeInstance) and self.lacking:
            raise errors.DeviceFault(device, "nvmlDeviceSetComputeMode", 3, "Not Supported")
        position.compute_mode = mode

    def end(self) -> None:
        """End the hang: what a call was asked, it does now."""
        self.hung.clear()
        for device, mode in self.late.items():
            self._place(device).compute_mode = mode
        self.late.clear()

    def _enter(self, device: str, call: str) -> None:
        if device in self.hung:
            raise errors.Hung(device, call, 8.0)

    def _place(self, device: str) -> state.Board | state.ComputeInstance:
        boards = [self._of.board(gpu) for gpu in self._of.gpus]
        parts = (
            compute_instance
            for board in boards
            for part in board.instances
            for compute_instance in part.compute
        )
        instance = next((part for part in parts if part.uuid == device), None)
        return instance or self._of.board(self._of.find(device))


class FakeDaemons:
    """Implements `ports.Daemons`: ready and gone at once, unless to `fail` or `stuck`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.desired: dict[str, mps_files.Desired] = {}
        self.fail = ""
        self.stuck = ""

    def ensure(self, desired: mps_files.Desired) -> None:
        if self.fail:
            raise errors.NodeFault("start", f"MPS daemon {desired.key}", self.fail)
        self.request(desired)

    def last_pid(self, _key: str) -> int | None:
        return None

    def request(self, desired: mps_files.Desired) -> None:
        self.desired[desired.key] = desired

    def desired_keys(self) -> tuple[str, ...]:
        return tuple(sorted(self.desired))

    def read_desired(self, key: str) -> mps_files.Desired | None:
        return self.desired.get(key)

    def remove(self, key: str) -> None:
        if self.stuck:
            raise errors.NodeFault("end", f"MPS daemon {key}", self.stuck)
        self.desired.pop(key, None)

    def status(self, key: str) -> mps_files.Status | None:
        if key not in self.desired:
            return None
        files = mps_files.Layout(self.root)
        return mps_files.Status(
            key=key,
            state=mps_files.State.READY,
            boot_id="boot-1",
            since="2026-11-21T09:00:00Z",
            pipe_dir=str(files.pipe(key)),
            log_dir=str(files.log(key)),
            shm_dir=str(self.root / "shm" / key),
        )
