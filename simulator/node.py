"""The node process: one machine, asked over a socket by every NVML client of the node.

The state is shared; one lock stands around each call. A thread serves one connection.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from simulator import (
    client,
    codes,
    control,
    cuda_contexts,
    hanging,
    layout,
    library,
    machine,
    sessions,
    sockets,
    store,
    wire,
)
from simulator.smi import command, selection

Answer = Callable[[wire.Request, sessions.Connection], str]
"""A request and who sent it to the reply's line."""

MAX_LINE = 1 << 16
WAIT = "event_set_wait"


class Node:
    """A running machine. `start` listens, `stop` ends every connection and removes the sockets."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._at = layout.Layout(base)
        self._machine = store.load(base)
        self._sessions = sessions.Sessions(self._machine)
        self._lock = threading.Condition()  # notified when the machine changed
        self._listeners: list[tuple[socket.socket, Path]] = []
        self._connections: dict[socket.socket, sessions.Connection] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = False

    @property
    def machine(self) -> machine.Machine:
        """The machine; change it only while nothing is connected."""
        return self._machine

    def start(self) -> None:
        """Listen for NVML clients and for the command line."""
        cuda_contexts.forget(self._machine)
        control.keep(self._base, self._machine)
        self._listen(self._at.control_socket, self._answer_control)
        self._at.control_socket.chmod(0o600)
        self._listen(self._at.nvml_socket, self._answer_nvml)

    def stop(self) -> None:
        """Close everything; idempotent."""
        self._stopping = True
        for listener, path in self._listeners:
            path.unlink(missing_ok=True)
            _close(listener)
        with self._lock:
            connections = tuple(self._connections)
            self._lock.notify_all()
        for connection in connections:
            _close(connection)
        for thread in self._threads:
            thread.join()
        self._listeners.clear()

    def _listen(self, path: Path, answer: Answer) -> None:
        listener = sockets.listen(path)
        self._listeners.append((listener, path))
        thread = threading.Thread(
            target=self._accept, args=(listener, answer), name=f"accept {path.name}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, answer: Answer) -> None:
        while not self._stopping:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed by stop
            with self._lock:
                self._connections[connection] = _peer(connection)
            threading.Thread(
                target=self._serve, args=(connection, answer), name="client", daemon=True
            ).start()

    def _serve(self, connection: socket.socket, answer: Answer) -> None:
        peer = self._connections[connection]
        try:
            with connection, contextlib.suppress(OSError, UnicodeDecodeError):
                self._converse(peer, answer)
        finally:
            self._left(peer)

    def _converse(self, peer: sessions.Connection, answer: Answer) -> None:
        with peer.socket.makefile("r", encoding="utf-8", newline="\n") as lines:
            while (line := lines.readline(MAX_LINE)).endswith("\n"):
                peer.reply(self._reply(line[:-1], peer, answer))

    def _reply(self, line: str, peer: sessions.Connection, answer: Answer) -> str:
        try:
            request = wire.parse_request(line)
        except wire.WireError as e:
            return wire.render_failure(codes.Return.INVALID_ARGUMENT, str(e))
        slow = self._machine.state.slow
        time.sleep(slow.get(request.call, slow.get("*", 0)) / 1000)
        with self._lock:
            if answer == self._answer_nvml:
                self._lock.wait_for(
                    lambda: self._stopping or not hanging.hangs(self._machine, request)
                )
            before = self._machine.changes
            reply = answer(request, peer)
            self._note(before)
            return reply

    def _left(self, peer: sessions.Connection) -> None:
        with self._lock:
            self._connections.pop(peer.socket, None)
            before = self._machine.changes
            self._sessions.left(peer)
            if self._machine.changes != before and not self._stopping:
                control.keep(self._base, self._machine)
            self._note(before)

    def _note(self, before: int) -> None:
        """Tell who waits for a change, and whose device went away."""
        if self._machine.changes != before:
            self._sessions.mps.sweep()
            self._lock.notify_all()

    def _answer_control(self, request: wire.Request, _peer: sessions.Connection) -> str:
        return control.answer(self._machine, self._base, request, self._sessions.mps)

    def _answer_nvml(self, request: wire.Request, peer: sessions.Connection) -> str:
        before = self._machine.changes
        if request.call in sessions.CALLS:
            reply = self._sessions.answer(request, peer)
        else:
            reply = self._answer_library(request, peer)
        if self._machine.changes != before:
            control.keep(self._base, self._machine)
        return self._wait(request, peer, reply) if request.call == WAIT else reply

    def _answer_library(self, request: wire.Request, peer: sessions.Connection) -> str:
        """As `answer_nvml`, for one of the processes that are connected.

        NVML opens a GPU with the first handle of it, and lets go when the process shuts it down:
        the library hangs up then.
        """
        beside = [one for one in self._connections.values() if one.pid != peer.pid]
        held = {gpu for one in beside if one.opened and one.is_open() for gpu in one.opened}
        root, others = peer.user == 0, len({one.pid for one in beside})
        reply = answer_nvml(self._machine, request, root=root, others=others, held=held)
        if request.call != hanging.SMI:
            peer.opened.update(hanging.HANDLE.findall(f"{request.arguments} {reply}"))
        return reply

    def _wait(self, request: wire.Request, peer: sessions.Connection, reply: str) -> str:
        """Ask again on every change until the request's timeout; the lock is free meanwhile."""
        nothing = wire.render_failure(codes.Return.TIMEOUT)
        until = time.monotonic() + int(request.arguments[-1]) / 1000 if reply == nothing else 0
        while reply == nothing and not self._stopping:
            if not self._lock.wait(until - time.monotonic()):
                break
            reply = answer_nvml(self._machine, request, root=peer.user == 0)
        return reply


def answer_nvml(
    of: machine.Machine,
    request: wire.Request,
    *,
    root: bool,
    others: int = 0,
    held: Collection[str] = (),
) -> str:
    """Carry out one NVML request and render the reply; the client counts its own init calls."""
    seen, caps = request.visible, request.caps
    nvml = selection.Nvml(of, visible=seen, caps=caps, root=root, others=others, held=held)
    if request.call == hanging.SMI:
        return _answer_smi(nvml, request)
    if request.call == "init":
        method: Callable[..., object] = nvml.init
    else:
        nvml.attach()
        found = getattr(library.Library, request.call, None) and getattr(nvml, request.call)
        if not callable(found) or not client.is_call(found):
            return wire.render_failure(codes.Return.FUNCTION_NOT_FOUND)
        method = found
    try:
        return wire.render_reply(wire.invoke(method, request.arguments))
    except codes.NvmlError as e:
        return wire.render_failure(e.code)
    except wire.WireError as e:
        return wire.render_failure(codes.Return.INVALID_ARGUMENT, str(e))


def _answer_smi(nvml: selection.Nvml, request: wire.Request) -> str:
    """The program `nvidia-smi` sends its command line and prints the reply (simulator/smi/)."""
    nvml.attach()
    return wire.render_reply(command.run(nvml, request.arguments, time.ctime()))


def _peer(connection: socket.socket) -> sessions.Connection:
    """The other side, by its ids as they are here."""
    size = struct.calcsize("3i")
    process, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return sessions.Connection(connection, int(process), int(user))


def _close(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
    peer.close()
