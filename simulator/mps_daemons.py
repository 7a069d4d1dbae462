"""MPS as values: a control daemon, its server, and what a client asks for.

A daemon runs one server at a time; clients of another user wait until it drained.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from simulator import cuda_contexts, mps_limits


class Status(StrEnum):
    """As get_server_status prints it. A server refuses new clients while it is FAULT."""

    ACTIVE = "ACTIVE"
    FAULT = "FAULT"


@dataclass(eq=False, slots=True)
class Server:
    """`context` is the server's own. A `draining` one takes no new clients, ends with its last.

    Clients of a `wedged` one hang when they start, though it looks well.
    """

    context: cuda_contexts.Context
    limits: mps_limits.Limits
    status: Status = Status.ACTIVE
    draining: bool = False
    wedged: bool = False
    clients: list[cuda_contexts.Context] = field(default_factory=list)

    @property
    def peer(self) -> cuda_contexts.Peer:
        """Its process."""
        return self.context.peer

    def index_of(self, uuid: str) -> int:
        """The server's number for one of its devices."""
        return [grant.device.uuid for grant in self.context.grants].index(uuid)


@dataclass(eq=False, slots=True)
class Daemon:
    """A control daemon. `defaults` bind servers that start later; `visible` is its device list.

    `starting` is the user whose server was spawned and is not ready; `seen` has the pids of those
    that got as far as the node. `pending` has, for each client that waits, how many servers had
    been spawned; `failure` is why the last that `failed` did not start.
    """

    token: str
    peer: cuda_contexts.Peer
    visible: str | None
    multiuser: bool
    defaults: mps_limits.Limits
    server: Server | None = None
    starting: int | None = None
    seen: set[int] = field(default_factory=set)
    spawned: int = 0
    failed: int = 0
    failure: str = ""
    pending: dict[cuda_contexts.Peer, int] = field(default_factory=dict)
    quitting: bool = False

    def log(self, text: str) -> None:
        """A line of control.log."""
        self.peer.tell("log", "control", "Control", str(self.peer.pid), text)

    def log_server(self, pid: int, text: str) -> None:
        """A line of server.log."""
        self.peer.tell("log", "server", "Server", str(pid), text)

    def spawn(self, user: int) -> None:
        """Have the process of a server started."""
        self.starting = user
        self.spawned += 1
        self.peer.tell("spawn", str(user))

    def started(self, server: Server) -> None:
        """The server is ready."""
        self.starting = None
        self.server = server
        pid = server.peer.pid
        for index, grant in enumerate(server.context.grants):
            name = grant.device.gpu.product.name
            self.log_server(pid, f"Creating server context on device {index} ({name})")
        percentage = mps_limits.render_percentage(server.limits.percentage)
        self.log_server(pid, f"Active Threads Percentage set to {percentage}")
        for device, limit in server.limits.memory.items():
            if device.isdigit() and int(device) < len(server.context.grants):
                self.log_server(
                    pid, f"Device pinned memory limit for device {device} set to {limit:#x} bytes"
                )
        self.log_server(pid, f"Server Priority set to {server.limits.priority}")
        self.log_server(pid, "Server has started")
        self.log(f"NEW SERVER {pid}: Ready")

    def start_failed(self, why: str) -> None:
        """No server came of it: who waits for it is refused."""
        self.starting = None
        self.failed, self.failure = self.spawned, why

    def exited(self, pid: int, status: int) -> None:
        """A server's process ended, maybe before the node ever heard of it."""
        self.log(f"Server {pid} exited with status {status}")
        if pid not in self.seen:
            self.start_failed(f"nvidia-cuda-mps-server exited with status {status}")
        self.seen.discard(pid)

    def owner_of_servers(self, user: int) -> int:
        """Whose server a client of `user` works with."""
        return self.peer.user if self.multiuser else user


@dataclass(frozen=True, slots=True)
class Wish:
    """What a CUDA process is started with: its environment, and the daemon it reached ("" none)."""

    daemon: str = ""
    visible: str | None = None
    percentage: str = ""
    memory: str = ""
    priority: str = ""
    connections: str = ""
    command: str = ""
    namespace: str = ""
