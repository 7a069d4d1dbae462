"""MPS at work: servers start and end, clients come, fault and go.

Sources: MPS documentation (architecture, "Legacy MPS v2 Interface", Volta error containment,
troubleshooting) and the manual page of nvidia-cuda-mps-control. Pure, but for what it tells the
processes: a daemon gets `spawn USER`, `log FILE ROLE PID TEXT` and `exit SECONDS`, a client `lost`;
a server is ended by closing its connection. Assumed: that a daemon's death ends its server, and
that a quitting daemon refuses new clients with MPS_SERVER_NOT_READY.
"""

from collections.abc import Iterator, Sequence

from simulator import cuda_contexts, cuda_devices, library, machine, mps_limits
from simulator.cuda_codes import CudaError, Result
from simulator.cuda_contexts import Context, Grant, Peer
from simulator.mps_daemons import Daemon, Server, Status, Wish

NO_DEADLINE = -1
"""Of a quit that waits for the last client."""

Found = Sequence[Sequence[cuda_devices.Device]]
"""See `cuda_devices.reachable`."""


class Multiplexer:
    """Every daemon of a machine, and every CUDA process, with MPS or without."""

    def __init__(self, of: machine.Machine) -> None:
        self.machine = of
        self.daemons: dict[str, Daemon] = {}
        self.contexts: dict[Peer, Context] = {}
        self.deadly: set[str] = set()
        """PCI addresses: the next client to end there wedges its server."""

    def admit(self, daemon: Daemon) -> None:
        """A control daemon that listens."""
        self.daemons[daemon.token] = daemon

    def daemon_of(self, token: str) -> Daemon:
        """The daemon of that token; MPS_CONNECTION_FAILED once it is gone."""
        if token not in self.daemons:
            raise CudaError(Result.MPS_CONNECTION_FAILED, "the MPS control daemon is gone")
        return self.daemons[token]

    def serve(self, token: str, peer: Peer, found: Found) -> None:
        """A server's process is there: it takes the devices, or CudaError."""
        daemon = self.daemon_of(token)
        if daemon.starting is None or daemon.server is not None:
            raise CudaError(Result.MPS_CONNECTION_FAILED, "no server was asked for")
        daemon.seen.add(peer.pid)
        daemon.log(f"Starting new server {peer.pid} for user {peer.user}")
        try:
            cuda_contexts.require_driver(self.machine)
            context = self._plain(peer, found, daemon.visible)
        except CudaError as e:
            daemon.log_server(peer.pid, f"Failed to start: {e}")
            daemon.start_failed(str(e))
            raise
        daemon.started(Server(context, daemon.defaults.copy()))

    def open_(self, peer: Peer, found: Found, wish: Wish) -> Context:
        """The contexts of a process. NOT_READY: it waits for a server, and asks again."""
        cuda_contexts.require_driver(self.machine)
        if wish.daemon:
            daemon = self.daemon_of(wish.daemon)
            server = self._server_for(daemon, peer)
            if server.wedged:
                raise CudaError(Result.NOT_READY, "the server hangs")
            context = self._join(server, peer, found, wish)
            daemon.log_server(server.peer.pid, f"Client {{PID: {peer.pid}}} connected")
        else:
            context = self._plain(peer, found, wish.visible)
        self.contexts[peer] = context
        return context

    def _plain(self, peer: Peer, found: Found, visible: str | None) -> Context:
        devices = cuda_devices.enumerated(found, visible)
        return cuda_contexts.open_(self.machine, peer, [Grant(device) for device in devices])

    def _server_for(self, daemon: Daemon, peer: Peer) -> Server:
        """The server a new client works with; NOT_READY while it has to wait for one."""
        user, server = daemon.owner_of_servers(peer.user), daemon.server
        if daemon.quitting or (server is not None and server.status is Status.FAULT):
            why = "the daemon quits" if daemon.quitting else "the server recovers from a fault"
            raise CudaError(Result.MPS_SERVER_NOT_READY, why)
        who = f"NEW CLIENT {peer.pid} from user {peer.user}"
        if server is not None and server.peer.user == user and not server.draining:
            if daemon.pending.pop(peer, None) is None:
                daemon.log(f"{who}: Server already exists")
            return server
        if daemon.pending.get(peer, daemon.failed + 1) <= daemon.failed:
            del daemon.pending[peer]
            raise CudaError(Result.MPS_CONNECTION_FAILED, f"no server: {daemon.failure}")
        if server is not None:
            server.draining = True
            self.close_if_idle(server)
        elif daemon.starting is None:
            daemon.spawn(user)
            daemon.pending = dict.fromkeys(daemon.pending, daemon.spawned)
        if peer not in daemon.pending:
            daemon.log(f"{who}: Server is not ready, push client to pending list")
            daemon.pending[peer] = daemon.spawned
        raise CudaError(Result.NOT_READY, "waiting for an MPS server")

    def _join(self, server: Server, peer: Peer, found: Found, wish: Wish) -> Context:
        """The server's devices, renumbered, as far as the client can open them."""
        can_open = {device.uuid for devices in found for device in devices}
        offered = [[g.device] for g in server.context.grants if g.device.uuid in can_open]
        devices = cuda_devices.enumerated(offered, wish.visible)
        asked = mps_limits.parse_pinned(wish.memory)
        known = [(server.index_of(device.uuid), device.uuid) for device in devices]
        limits = mps_limits.bound_memory(server.limits.memory, asked, known)
        grants = [Grant(device, limit) for device, limit in zip(devices, limits, strict=True)]
        connections = mps_limits.connections_of(wish.connections)
        for device in devices:
            self._require_place(device, connections)
        context = cuda_contexts.open_(self.machine, peer, grants, mps=True)
        context.connections = connections
        context.command, context.namespace = wish.command, wish.namespace
        context.percentage = mps_limits.percentage_of(server.limits.percentage, wish.percentage)
        context.priority = mps_limits.priority_of(server.limits.priority, wish.priority)
        server.clients.append(context)
        return context

    def _require_place(self, device: cuda_devices.Device, connections: int) -> None:
        here = [c for c in self.contexts.values() if c.mps and device.uuid in c.devices]
        driver = self.machine.driver_major
        most = mps_limits.most_clients(driver, device.slices, device.of_slices)
        if len(here) >= most:
            raise CudaError(
                Result.MPS_MAX_CLIENTS_REACHED, f"{device.uuid} has {most} clients already"
            )
        taken = sum(context.connections for context in here)
        most *= mps_limits.DEFAULT_CONNECTIONS
        if taken + connections > most:
            raise CudaError(
                Result.MPS_MAX_CONNECTIONS_REACHED,
                f"{connections} connections wanted, {most - taken} of {most} left",
            )

    def server_of(self, context: Context) -> tuple[Daemon, Server] | None:
        """The server a context is a client of, and its daemon."""
        for daemon in self.daemons.values():
            if daemon.server is not None and context in daemon.server.clients:
                return daemon, daemon.server
        return None

    def fault(self, context: Context) -> None:
        """A fatal fault: with MPS it is one for every client that shares a GPU, transitively."""
        cuda_contexts.fault(self.machine, context)
        found = self.server_of(context)
        if found is None:
            return
        daemon, server = found
        pid = server.peer.pid
        why = f"client {context.peer.pid} of MPS server {pid} had a fatal fault"
        for client in _sharing(context, server.clients):
            cuda_contexts.lose(client, CudaError(Result.ILLEGAL_ADDRESS, why))
        server.status = Status.FAULT
        daemon.log_server(pid, f"Fatal exception of client {{PID: {context.peer.pid}}}")
        daemon.log_server(pid, "Server is in FAULT state until the affected clients have left")

    def terminate(self, server: Server, context: Context) -> None:
        """End a client's contexts; its process lives on without."""
        why = CudaError(Result.MPS_CLIENT_TERMINATED, "terminated by the MPS control daemon")
        cuda_contexts.lose(context, why)
        cuda_contexts.close(self.machine, context)
        self._client_left(server, context)

    def left(self, peer: Peer) -> None:
        """A process ended or hung up: what it held is free, and what depends on it ends."""
        context = self.contexts.pop(peer, None)
        if context is not None:
            cuda_contexts.close(self.machine, context)
            found = self.server_of(context)
            if found is not None:
                found[0].log_server(found[1].peer.pid, f"Client {{PID: {peer.pid}}} disconnected")
                self._wedge(found[1], context)
                self._client_left(found[1], context)
        for daemon in list(self.daemons.values()):
            daemon.pending.pop(peer, None)
            if daemon.server is not None and peer in {daemon.peer, daemon.server.peer}:
                self._server_ended(daemon, daemon.server)
            if daemon.peer is peer:
                del self.daemons[daemon.token]

    def _wedge(self, server: Server, context: Context) -> None:
        """A client ended as if it was killed with work in flight, where that was ordered."""
        met = self.deadly & {grant.device.gpu.slot.pci for grant in context.grants}
        if met and context.lost is None:
            self.deadly -= met
            server.wedged = True

    def _client_left(self, server: Server, context: Context) -> None:
        server.clients.remove(context)
        if not any(client.lost for client in server.clients):
            server.status = Status.ACTIVE
        self.close_if_idle(server)

    def _server_ended(self, daemon: Daemon, server: Server) -> None:
        daemon.server = None
        cuda_contexts.close(self.machine, server.context)
        server.peer.close()
        why = CudaError(Result.MPS_RPC_FAILURE, f"MPS server {server.peer.pid} ended")
        for context in server.clients:
            cuda_contexts.lose(context, why)
        if daemon.quitting:
            daemon.peer.tell("exit", "0")

    def close_if_idle(self, server: Server) -> None:
        """A draining server ends with its last client."""
        if server.draining and not server.clients:
            server.peer.close()

    def quit_(self, daemon: Daemon, seconds: int) -> None:
        """End the daemon with its server's last client, or after `seconds` (-1: whenever)."""
        daemon.quitting = True
        if daemon.server is None:
            daemon.peer.tell("exit", "0")
            return
        daemon.peer.tell("exit", str(seconds))
        daemon.server.draining = True
        self.close_if_idle(daemon.server)

    def sweep(self) -> None:
        """End the contexts on devices that were reset, rebooted or lost."""
        why = CudaError(Result.DEVICE_UNAVAILABLE, "the device was reset or lost")
        for context in self.contexts.values():
            if context.lost is None and cuda_contexts.is_stranded(self.machine, context):
                cuda_contexts.lose(context, why)
        for daemon in self.daemons.values():
            server = daemon.server
            if server and cuda_contexts.is_stranded(self.machine, server.context):
                server.peer.close()

    def end(self) -> None:
        """The machine goes down with everything that runs on it."""
        servers = (daemon.server for daemon in self.daemons.values())
        peers = {server.peer for server in servers if server is not None}
        for peer in (*peers, *self.contexts, *(daemon.peer for daemon in self.daemons.values())):
            peer.close()

    def victims(self, gpu: machine.Gpu, *, server_only: bool) -> Iterator[int]:
        """The processes of MPS on a GPU: the servers that have it, and their daemons."""
        nvml = library.Library(self.machine)
        for daemon in self.daemons.values():
            devices = cuda_devices.enumerated(cuda_devices.reachable(nvml), daemon.visible)
            if any(device.gpu == gpu for device in devices):
                if daemon.server is not None:
                    yield daemon.server.peer.pid
                if not server_only:
                    yield daemon.peer.pid


def _sharing(context: Context, clients: Sequence[Context]) -> list[Context]:
    """Those that share a device with `context`, or with one that does; it is among them."""
    devices, affected = set(context.devices), [context]
    while more := [c for c in clients if c not in affected and devices & c.devices]:
        affected += more
        devices.update(*(client.devices for client in more))
    return affected
