"""What the command line does to a machine, with the node process running or not."""

import contextlib
import os
import signal
import socket
from pathlib import Path

from simulator import (
    builder,
    codes,
    faults,
    layout,
    machine,
    multiplexer,
    sockets,
    state,
    store,
    wire,
)


class ControlError(Exception):
    """A command the machine refused, in words."""


class Control:
    """The control calls of one machine: plain text in and out, as `wire.invoke` calls them.

    `mps` has the processes of a machine that runs.
    """

    def __init__(self, of: machine.Machine, mps: multiplexer.Multiplexer | None = None) -> None:
        self._machine = of
        self._mps = mps

    def reboot(self) -> None:
        """Boot anew."""
        self._machine.reboot()
        if self._mps:
            self._mps.end()

    def lose(self, gpu: str) -> None:
        """Make a GPU fall off the bus."""
        self._machine.lose(self._machine.find(gpu))

    def remove(self, gpu: str) -> None:
        """Take a GPU off the bus."""
        self._machine.remove(self._machine.find(gpu))

    def restore(self, gpu: str) -> None:
        """Bring a GPU back as after a reset."""
        self._machine.restore(self._machine.find(gpu))

    def set_reading(self, gpu: str, name: str, value: int) -> None:
        """Set a sensor."""
        self._machine.set_reading(self._machine.find(gpu), name, value)

    def xid(self, gpu: str, code: int, gpu_instance: int, compute_instance: int) -> None:
        """See `faults.xid`."""
        of = self._machine
        faults.xid(of, of.find(gpu), code, gpu_instance, compute_instance)

    def ecc(self, gpu: str, corrected: int, uncorrected: int) -> None:
        """See `faults.ecc`."""
        faults.ecc(self._machine, self._machine.find(gpu), corrected, uncorrected)

    def remap(self, gpu: str, uncorrected: int, failed: int) -> None:
        """See `faults.remap`."""
        of = self._machine
        faults.remap(of, of.find(gpu), uncorrected=bool(uncorrected), failed=bool(failed))

    def sram(self, gpu: str, corrected: int, uncorrected: int, exceeded: int) -> None:
        """See `faults.sram`."""
        counted = state.Errors(corrected, uncorrected)
        faults.sram(self._machine, self._machine.find(gpu), counted, exceeded=bool(exceeded))

    def repair(self, gpu: str, part: str) -> None:
        """See `faults.repair`."""
        faults.repair(self._machine, self._machine.find(gpu), part)

    def retire(self, gpu: str, double_bit: int) -> None:
        """See `faults.retire`."""
        faults.retire(self._machine, self._machine.find(gpu), double_bit=bool(double_bit))

    def moves(self, gpu: str) -> None:
        """See `faults.moves`."""
        faults.moves(self._machine, self._machine.find(gpu))

    def shy(self, gpu: str, on: int) -> None:
        """See `faults.shy`."""
        faults.shy(self._machine, self._machine.find(gpu), on=bool(on))

    def veil(self, gpu: str, on: int) -> None:
        """See `faults.veil`."""
        faults.veil(self._machine, self._machine.find(gpu), on=bool(on))

    def hang(self, gpu: str, call: str) -> None:
        """See `faults.hang`."""
        faults.hang(self._machine, self._machine.find(gpu), call)

    def recovery(self, gpu: str, action: str) -> None:
        """See `faults.recovery`."""
        faults.recovery(self._machine, self._machine.find(gpu), action)

    def refuse(self, gpu: str, code: int, times: int) -> None:
        """See `faults.refuse`."""
        faults.refuse(self._machine, self._machine.find(gpu), code, times)

    def slow(self, call: str, milliseconds: int) -> None:
        """See `faults.slow`."""
        faults.slow(self._machine, call, milliseconds)

    def upgrade(self, version: str) -> None:
        """See `faults.upgrade`."""
        faults.upgrade(self._machine, version)

    def process(
        self, gpu: str, pid: int, memory: int, gpu_instance: int, compute_instance: int
    ) -> None:
        """See `faults.process`."""
        made = state.Process(pid, memory, gpu_instance, compute_instance)
        faults.process(self._machine, self._machine.find(gpu), made)

    def work(self, gpu: str, pid: int, percent: int) -> None:
        """See `faults.work`."""
        faults.work(self._machine, self._machine.find(gpu), pid, percent)

    def mps_death(self, gpu: str, server_only: int) -> None:
        """Kill MPS's processes on a GPU: as a crash, nothing is said goodbye to."""
        of = self._machine.find(gpu)
        mps = self._mps
        victims = list(mps.victims(of, server_only=bool(server_only))) if mps else []
        if not victims:
            raise faults.BadFaultError(f"no MPS process runs on GPU {self._machine.minor(of)}")
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):  # it died by itself just now
                os.kill(pid, signal.SIGKILL)

    def mps_wedge(self, gpu: str) -> None:
        """Have the next client of MPS that ends on a GPU leave its server such that others hang."""
        of = self._machine.find(gpu)
        if self._mps is None:
            raise faults.BadFaultError("the machine does not run")
        self._mps.deadly.add(of.slot.pci)


REFUSED = (
    machine.NoSuchGpuError,
    machine.BadReadingError,
    faults.BadFaultError,
    wire.WireError,
)
CALLS = tuple(name for name in vars(Control) if not name.startswith("_"))


def answer(
    of: machine.Machine,
    base: Path,
    request: wire.Request,
    mps: multiplexer.Multiplexer | None = None,
) -> str:
    """Carry out one control request, keep its effect, and render the reply."""
    if request.call not in CALLS:
        return wire.render_failure(codes.Return.FUNCTION_NOT_FOUND, f"no command {request.call!r}")
    before = of.changes
    try:
        value = wire.invoke(getattr(Control(of, mps), request.call), request.arguments)
    except REFUSED as e:
        return wire.render_failure(codes.Return.INVALID_ARGUMENT, str(e))
    if of.changes != before:
        keep(base, of)
    return wire.render_reply(value)


def keep(base: Path, of: machine.Machine) -> None:
    """Write down a change: the state, and the files that follow it."""
    store.save(base, of)
    builder.follow(base, of)


def send(base: Path, call: str, *arguments: str) -> None:
    """Carry out `call` in the node process if it runs, else on the files; ControlError on a no."""
    request = wire.Request(frozenset(), call, arguments)
    try:
        with sockets.connect(layout.Layout(base).control_socket) as peer:
            reply = _ask(peer, request)
    except (FileNotFoundError, ConnectionRefusedError):
        with store.locked(base):
            reply = answer(store.load(base), base, request)
    code, *words = wire.split(reply)
    if code != "0":
        raise ControlError(" ".join(words))


def _ask(peer: socket.socket, request: wire.Request) -> str:
    peer.sendall(f"{wire.render_request(request)}\n".encode())
    with peer.makefile("r", encoding="utf-8", newline="\n") as lines:
        return lines.readline().removesuffix("\n")
