"""CUDA's and MPS's processes at the node's socket: their calls, and what ends when they hang up.

The calls are lines of `wire`, whose CODE is here a `CUresult`; after one other than 0 come the
constant's name and words. Unlike an NVML client, such a process keeps its connection: what it holds
is gone when the connection is, however it ended. A line the node sends by itself begins with a word
(see `multiplexer`), a reply with a number. An environment is NAME=VALUE, a line for each variable.
"""

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from simulator import (
    cuda_contexts,
    cuda_devices,
    library,
    machine,
    mps_commands,
    mps_daemons,
    mps_limits,
    multiplexer,
    wire,
)
from simulator.cuda_codes import CudaError, Result

ALL = "max"
VISIBLE = "CUDA_VISIBLE_DEVICES"
PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
PRIORITY = "CUDA_MPS_CLIENT_PRIORITY"
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


@dataclass(eq=False, slots=True)
class Connection:
    """A peer over its socket. Lines of several threads do not mix.

    `opened` are the GPUs it has got handles of as an NVML client, by bus id.
    """

    socket: socket.socket
    pid: int
    user: int
    opened: set[str] = field(default_factory=set)
    _sending: threading.Lock = field(default_factory=threading.Lock)

    def is_open(self) -> bool:
        """Whether the other side has not hung up, as the kernel knows before any thread of ours."""
        try:
            return self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def reply(self, line: str) -> None:
        """Answer a request."""
        with self._sending:
            self.socket.sendall(f"{line}\n".encode())

    def tell(self, *words: str) -> None:
        """A line it did not ask for; lost where nobody reads any more."""
        with self._sending, contextlib.suppress(OSError):
            self.socket.send(f"{wire.join(words)}\n".encode(), socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Hang up; the thread that serves it sees the end."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a context: bytes free and in all, as cudaMemGetInfo; a limit (-1: none)."""

    uuid: str
    free: int
    total: int
    limit: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A client as the driver sees it: its pid there, its MPS server's (0 none), its share."""

    pid: int
    server: int
    percentage: str
    priority: int
    devices: list[Device]


class Sessions:
    """Everybody who is connected to one machine; `mps` is what they share."""

    def __init__(self, of: machine.Machine) -> None:
        self.mps = multiplexer.Multiplexer(of)
        self._shells: dict[cuda_contexts.Peer, mps_daemons.Daemon] = {}

    def answer(self, request: wire.Request, peer: cuda_contexts.Peer) -> str:
        """Carry out one call and render the reply."""
        called = Calls(self.mps, self._shells, peer, request)
        try:
            value = wire.invoke(getattr(called, request.call), request.arguments)
        except CudaError as e:
            return wire.render_failure(e.code, e.code.constant, e.words)
        except wire.WireError as e:
            invalid = Result.INVALID_VALUE
            return wire.render_failure(invalid, invalid.constant, str(e))
        return wire.render_reply(value)

    def left(self, peer: cuda_contexts.Peer) -> None:
        """The connection ended."""
        shell = self._shells.pop(peer, None)
        if shell is not None:
            shell.log("UI closed")
        self.mps.left(peer)


class Calls:
    """The calls of one peer, which can open what `request` says."""

    def __init__(
        self,
        mps: multiplexer.Multiplexer,
        shells: dict[cuda_contexts.Peer, mps_daemons.Daemon],
        peer: cuda_contexts.Peer,
        request: wire.Request,
    ) -> None:
        self._mps = mps
        self._shells = shells
        self._peer = peer
        self._nvml = library.Library(
            mps.machine, visible=request.visible, caps=request.caps, root=peer.user == 0
        )

    def mps_daemon(self, multiuser: int, environment: str) -> str:
        """A control daemon that listens; the token it hands to its clients."""
        whole, given = mps_limits.Limits(), _variables(environment)
        if multiuser and self._mps.machine.driver_major < mps_commands.MULTI_USER:
            raise CudaError(Result.INVALID_VALUE, "this driver has no multi-user mode")
        if self._mps.machine.driver_major >= mps_commands.LOOKS_FIRST:
            devices = cuda_devices.reachable(self._nvml)
            if not cuda_devices.enumerated(devices, given.get(VISIBLE)):
                raise CudaError(Result.NO_DEVICE, "no device is visible")
        made = mps_daemons.Daemon(
            token=f"mps/{self._mps.machine.next_serial()}",
            peer=self._peer,
            visible=given.get(VISIBLE),
            multiuser=bool(multiuser),
            defaults=mps_limits.Limits(
                mps_limits.percentage_of(whole.percentage, given.get(PERCENTAGE, "")),
                mps_limits.parse_pinned(given.get(MEMORY, "")),
                mps_limits.priority_of(whole.priority, given.get(PRIORITY, "")),
            ),
        )
        self._mps.machine.touch()
        self._mps.admit(made)
        return made.token

    def mps_version(self) -> str:
        """13000 for CUDA 13.0."""
        major, minor = self._mps.machine.profile.driver.cuda.split(".")
        return str(int(major) * 1000 + int(minor) * 10)

    def mps_server(self, token: str) -> None:
        """The process a daemon was told to spawn."""
        self._mps.serve(token, self._peer, cuda_devices.reachable(self._nvml))

    def mps_exited(self, pid: int, status: int) -> None:
        """A daemon saw its server's process end."""
        for daemon in self._mps.daemons.values():
            if daemon.peer is self._peer:
                daemon.exited(pid, status)

    def mps_command(self, token: str, line: str) -> str:
        """A line typed at a daemon's shell; the answer's text."""
        daemon = self._mps.daemon_of(token)
        if self._peer not in self._shells:
            self._shells[self._peer] = daemon
            daemon.log("NEW UI")
        return mps_commands.answer(self._mps, daemon, self._peer.user, line)

    def cuda_open(self, daemon: str, command: str, namespace: str, environment: str) -> Opened:
        """As cuInit and cuCtxCreate on every device; NOT_READY: ask again, a server is coming.

        `daemon` is the token of the MPS daemon that was reached, or nothing.
        """
        given = _variables(environment)
        wish = mps_daemons.Wish(
            daemon=daemon,
            visible=given.get(VISIBLE),
            percentage=given.get(PERCENTAGE, ""),
            memory=given.get(MEMORY, ""),
            priority=given.get(PRIORITY, ""),
            connections=given.get(CONNECTIONS, ""),
            command=command,
            namespace=namespace,
        )
        context = self._mps.open_(self._peer, cuda_devices.reachable(self._nvml), wish)
        found = self._mps.server_of(context)
        return Opened(
            pid=self._peer.pid,
            server=found[1].peer.pid if found else 0,
            percentage=mps_limits.render_percentage(context.percentage),
            priority=context.priority,
            devices=[
                Device(
                    grant.device.uuid,
                    cuda_contexts.room(self._mps.machine, context, index),
                    cuda_contexts.memory_of(self._mps.machine, grant.device)[0],
                    -1 if grant.limit is None else grant.limit,
                )
                for index, grant in enumerate(context.grants)
            ],
        )

    def cuda_allocate(self, index: int, size: str) -> int:
        """Bytes on a device, or `max`; the bytes it got."""
        if size != ALL and not size.isdigit():
            raise wire.WireError(f"size {size!r}: expected bytes or {ALL}")
        wanted = None if size == ALL else int(size)
        return cuda_contexts.allocate(self._mps.machine, self._context(), index, wanted)

    def cuda_fault(self) -> None:
        """A kernel of the process touches an address that is none."""
        self._mps.fault(self._context())

    def _context(self) -> cuda_contexts.Context:
        if self._peer not in self._mps.contexts:
            raise CudaError(Result.INVALID_VALUE, "no context is open")
        return self._mps.contexts[self._peer]


CALLS = frozenset(name for name in vars(Calls) if not name.startswith("_"))


def _variables(environment: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in environment.splitlines())
    return {name: value for name, _, value in pairs}
