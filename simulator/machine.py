"""The machine: identities that follow from profile and seed, and the state that changes.

Pure: no files, sockets or clocks. `library.Library` is the NVML view of it.
"""

import dataclasses
import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pydantic

from simulator import codes, events, profile, state

_UP_S = 3600
"""How long a machine has been up when it is made."""
_NAMESPACE = uuid.UUID("6f1c6f0e-7f7c-5b0e-9c39-3d2c1f0a5e11")


class NoSuchGpuError(LookupError):
    """A control command named a GPU the machine does not have."""


class BadReadingError(ValueError):
    """A control command set a reading that does not exist or to a value no sensor shows."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What a GPU is for as long as it lives. Memory and power figures stand in `product`."""

    slot: profile.Gpu
    product: profile.Product
    uuid: str
    serial: str

    @property
    def bus_id(self) -> str:
        """As NVML writes it: 8-digit domain, upper-case hex."""
        return f"0000{self.slot.pci}".upper()

    @property
    def resetless(self) -> bool:
        """Whether the MIG mode changes at once, and is forgotten at reboot: from Hopper on."""
        return self.product.architecture >= codes.Architecture.HOPPER

    @property
    def remaps_rows(self) -> bool:
        """Whether bad memory is remapped by rows, as from Ampere on, and not retired by pages."""
        return self.product.architecture >= codes.Architecture.AMPERE


STATE_FORMAT: pydantic.TypeAdapter[state.State] = pydantic.TypeAdapter(state.State)


class Machine:
    """One machine. `seed` (the node's name) decides UUIDs and serials; `changes` counts writes."""

    def __init__(self, of: profile.Profile, seed: str, recorded: state.State | None = None) -> None:
        self.profile = of
        self.seed = seed
        slots = sorted(of.gpus, key=lambda slot: slot.pci)
        self.gpus = tuple(self._born(slot) for slot in slots)
        self.changes = 0
        self.event_sets: dict[str, events.EventSet] = {}
        self.state = recorded or state.State(boards=self._fresh_boards())
        if self.state.boards.keys() != {slot.pci for slot in slots}:
            raise ValueError("the recorded state belongs to a machine with other GPUs")

    @property
    def boot_id(self) -> str:
        """As /proc/sys/kernel/random/boot_id: a UUID that changes with every boot."""
        return str(self._id("boot", str(self.state.boots)))

    @property
    def driver_version(self) -> str:
        """Of the driver in the kernel."""
        return self.state.loaded_driver or self.profile.driver.version

    @property
    def library_version(self) -> str:
        """Of the libraries on disk; another one than the kernel's between upgrade and reboot."""
        return self.state.installed_driver or self.driver_version

    @property
    def driver_major(self) -> int:
        """580 for 580.105.08."""
        return int(self.driver_version.split(".")[0])

    def board(self, gpu: Gpu) -> state.Board:
        """The changing part of `gpu`."""
        return self.state.boards[gpu.slot.pci]

    def minor(self, gpu: Gpu) -> int:
        """The N of /dev/nvidiaN now: its slot's until it moved."""
        moved = self.board(gpu).minor
        return gpu.slot.minor if moved is None else moved

    def mode_changed(self, gpu: Gpu) -> None:
        """A MIG mode became current; a GPU that `moves` gets the least minor nobody has."""
        board = self.board(gpu)
        if board.moves:
            taken = {self.minor(other) for other in self.gpus}
            board.minor = next(n for n in range(profile.MAX_MINOR + 1) if n not in taken)
            board.moves = False
        self.touch()

    def find(self, name: str) -> Gpu:
        """The GPU with that minor number, UUID or PCI address (4-digit domain)."""
        for gpu in self.gpus:
            if name in {str(self.minor(gpu)), gpu.uuid, gpu.slot.pci, gpu.bus_id}:
                return gpu
        raise NoSuchGpuError(f"no GPU {name!r}: expected a minor number, a UUID or a PCI address")

    def reboot(self) -> None:
        """A new boot: the installed driver, boards as new. Only Ampere keeps its MIG mode."""
        self.state.boots += 1
        self.state.loaded_driver = self.state.installed_driver or self.state.loaded_driver
        self.state.installed_driver = ""
        self.event_sets.clear()
        for gpu in self.gpus:
            self._renew(gpu, keeps_mig=not gpu.resetless)
            self.board(gpu).minor = None
        self.touch()

    def lose(self, gpu: Gpu) -> None:
        """The GPU falls off the bus: every call on it answers GPU_IS_LOST until it is back."""
        self.board(gpu).lost = True
        self.touch()

    def remove(self, gpu: Gpu) -> None:
        """The GPU leaves the bus: handles answer GPU_IS_LOST, and it is enumerated no more."""
        self.board(gpu).lost = self.board(gpu).gone = True
        self.touch()

    def restore(self, gpu: Gpu) -> None:
        """Reset the GPU: it is back, a pending MIG mode is current, the rest is as new.

        Persistence mode is the daemon's to keep.
        """
        before, persistence = self.board(gpu).mig, self.board(gpu).persistence
        self._renew(gpu, keeps_mig=True)
        self.board(gpu).persistence = persistence
        if self.board(gpu).mig != before:
            self.mode_changed(gpu)
        self.touch()

    def _renew(self, gpu: Gpu, *, keeps_mig: bool) -> None:
        """What the GPU itself remembers stays: repairs, errors ever seen, maybe the mode."""
        old, new = self.board(gpu), self._fresh_board(gpu)
        new.minor, new.moves = old.minor, old.moves
        new.retired = dataclasses.replace(old.retired, pending=False)
        new.repair.unrepairable = old.repair.unrepairable
        new.sram.aggregate, new.sram.exceeded = old.sram.aggregate, old.sram.exceeded
        new.mig = new.mig_pending = old.mig_pending and keeps_mig
        new.ecc_aggregate = old.ecc_aggregate
        new.remap = dataclasses.replace(old.remap, pending=False)
        new.energy_mj = 0
        self.state.boards[gpu.slot.pci] = new

    def next_serial(self) -> int:
        """A number never given before, not even before a reboot."""
        self.state.serials += 1
        return self.state.serials

    def mig_uuid(self, serial: int) -> str:
        """The UUID of the MIG device with that serial."""
        return f"MIG-{self._id('mig', str(serial))}"

    def set_reading(self, gpu: Gpu, name: str, value: int) -> None:
        """Set what a sensor shows, within what the product can."""
        limits = {
            "power_mw": gpu.product.power_w.max * 1000,
            "celsius": 120,
            "gpu_percent": 100,
            "memory_percent": 100,
            "sm_mhz": gpu.product.clocks_mhz.graphics,
            "memory_mhz": gpu.product.clocks_mhz.memory,
        }
        if name not in limits:
            raise BadReadingError(f"no reading {name!r}: expected one of {', '.join(limits)}")
        if not 0 <= value <= limits[name]:
            raise BadReadingError(f"{name}={value}: expected 0 to {limits[name]}")
        setattr(self.board(gpu), name, value)
        self.touch()

    def open_events(self, *, privileged: bool) -> str:
        """A new event set's name, never given before."""
        name = f"events/{self.next_serial()}"
        self.event_sets[name] = events.EventSet(privileged)
        self.touch()
        return name

    def emit(self, event: events.Event) -> None:
        """Tell every event set; what none is registered for is lost."""
        for waiting in self.event_sets.values():
            waiting.offer(event)
        self.touch()

    def touch(self) -> None:
        """Note that the state changed and wants keeping."""
        self.changes += 1

    def _id(self, *parts: str) -> uuid.UUID:
        return uuid.uuid5(_NAMESPACE, "/".join((self.seed, *parts)))

    def _born(self, slot: profile.Gpu) -> Gpu:
        board = hashlib.sha256(f"{self.seed}/{slot.board or slot.pci}".encode())
        digits = int.from_bytes(board.digest()[:8], "big")
        return Gpu(
            slot=slot,
            product=self.profile.products[slot.product],
            uuid=f"GPU-{self._id('gpu', slot.pci)}",
            serial=f"165{digits % 10**10:010d}",
        )

    def _fresh_boards(self) -> dict[str, state.Board]:
        return {gpu.slot.pci: self._fresh_board(gpu) for gpu in self.gpus}

    @staticmethod
    def _fresh_board(gpu: Gpu) -> state.Board:
        return state.Board(
            power_mw=gpu.product.power_w.idle * 1000,
            energy_mj=gpu.product.power_w.idle * 1000 * _UP_S,
            celsius=gpu.product.idle_celsius,
            sm_mhz=gpu.product.clocks_mhz.graphics,
            memory_mhz=gpu.product.clocks_mhz.memory,
        )


def build(name: str, seed: str) -> Machine:
    """A machine of `profiles/` (or of a YAML file), never booted before."""
    return Machine(profile.load(name), seed)


def summary(machine: Machine) -> Iterator[dict[str, object]]:
    """One plain dict a GPU: what `simulator show` prints."""
    for gpu in machine.gpus:
        board = machine.board(gpu)
        yield {
            "minor": machine.minor(gpu),
            "name": gpu.product.name,
            "uuid": gpu.uuid,
            "pci": gpu.slot.pci,
            "numa": gpu.slot.numa,
            "compute_mode": codes.ComputeMode(board.compute_mode).name,
            "timeslice": codes.Timeslice(board.timeslice).name,
            "mig": board.mig,
            "mig_devices": sum(len(instance.compute) for instance in board.instances),
            "lost": board.lost,
            "gone": board.gone,
            "excluded": gpu.slot.excluded,
        }
