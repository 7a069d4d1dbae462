"""Time slices, compute modes and MPS daemons, over the simulator's machine model."""

from pathlib import Path

from driver import errors, ids
from driver.devices import mps
from driver.kubeletplugin import ports
from simulator import codes, machine


class FakeSlices:
    """Implements `ports.TimeSlices`; `lacking` GPUs have no such knob."""

    def __init__(self, of: machine.Machine) -> None:
        self._of = of
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
    """Implements `ports.ComputeModes`; MIG devices have none where they are `lacking`."""

    def __init__(self, of: machine.Machine) -> None:
        self._of = of
        self.lacking = False

    def open_up(self, gpu: ids.GpuUuid) -> int | None:
        board = self._of.board(self._of.find(gpu))
        before, board.compute_mode = board.compute_mode, codes.ComputeMode.DEFAULT
        return None if before == codes.ComputeMode.DEFAULT else int(before)

    def put_back(self, gpu: ids.GpuUuid, mode: int) -> None:
        self._of.board(self._of.find(gpu)).compute_mode = mode

    def set_exclusive(self, gpu: ids.GpuUuid | ids.MigUuid, *, exclusive: bool) -> None:
        modes = codes.ComputeMode
        wanted = modes.EXCLUSIVE_PROCESS if exclusive else modes.DEFAULT
        boards = [self._of.board(one) for one in self._of.gpus]
        parts = (one for board in boards for part in board.instances for one in part.compute)
        instance = next((one for one in parts if one.uuid == gpu), None)
        if instance is None:
            self._of.board(self._of.find(gpu)).compute_mode = wanted
        elif self.lacking:
            raise errors.DeviceFault(gpu, "nvmlDeviceSetComputeMode", 3, "Not Supported")
        else:
            instance.compute_mode = wanted


class FakeDaemons:
    """Implements `ports.Daemons`: ready and gone at once, unless to `fail` or `stuck`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.desired: dict[str, mps.Desired] = {}
        self.fail = ""
        self.stuck = ""

    def want(self, desired: mps.Desired) -> None:
        if self.fail:
            raise errors.NodeFault("start", f"MPS daemon {desired.key}", self.fail)
        self.put(desired)

    def answered(self, _key: str) -> int | None:
        return None

    def put(self, desired: mps.Desired) -> None:
        self.desired[desired.key] = desired

    def wanted(self) -> tuple[str, ...]:
        return tuple(sorted(self.desired))

    def read(self, key: str) -> mps.Desired | None:
        return self.desired.get(key)

    def forget(self, key: str) -> None:
        if self.stuck:
            raise errors.NodeFault("end", f"MPS daemon {key}", self.stuck)
        self.desired.pop(key, None)

    def status(self, key: str) -> mps.Status | None:
        if key not in self.desired:
            return None
        files = mps.Layout(self.root)
        return mps.Status(
            key=key,
            state=mps.State.READY,
            boot_id="boot-1",
            since="2026-11-21T09:00:00Z",
            pipe_dir=str(files.pipe(key)),
            log_dir=str(files.log(key)),
            shm_dir=str(self.root / "shm" / key),
        )
