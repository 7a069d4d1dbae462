"""MPS without processes: peers keep what they are told."""

import pytest

from simulator import (
    codes,
    cuda_contexts,
    cuda_devices,
    events,
    geometry,
    library,
    machine,
    mps_daemons,
    mps_limits,
    multiplexer,
    partition,
)
from simulator.cuda_codes import CudaError, Result
from tests.fakes.peers import Peer

GIB = 1 << 30
DAEMON = "mps/1"


class World:
    """A machine with a daemon on its GPUs 0 and 1."""

    def __init__(self, *, multiuser: bool = False, visible: str = "0,1") -> None:
        self.of = machine.build("hgx-h100", seed="node-1")
        self.mps = multiplexer.Multiplexer(self.of)
        self.pids = 100
        self.control, self.served = self.peer(), self.peer()
        self.daemon = mps_daemons.Daemon(
            DAEMON, self.control, visible, multiuser, mps_limits.Limits()
        )
        self.mps.admit(self.daemon)

    def peer(self, user: int = 0) -> Peer:
        self.pids += 1
        return Peer(self.pids, user)

    @property
    def found(self) -> list[list[cuda_devices.Device]]:
        return cuda_devices.reachable(library.Library(self.of))

    @property
    def server(self) -> mps_daemons.Server:
        assert self.daemon.server is not None
        return self.daemon.server

    def serve(self, user: int = 0) -> None:
        """The process of a server that was asked for is there: `served`."""
        self.served = self.peer(self.daemon.owner_of_servers(user))
        self.mps.serve(DAEMON, self.served, self.found)

    def join(self, peer: Peer, **environment: str) -> cuda_contexts.Context:
        return self.mps.open_(peer, self.found, mps_daemons.Wish(daemon=DAEMON, **environment))

    def plain(self, visible: str | None = None) -> cuda_contexts.Context:
        return self.mps.open_(self.peer(), self.found, mps_daemons.Wish(visible=visible))

    def client(self, user: int = 0, **environment: str) -> tuple[Peer, cuda_contexts.Context]:
        """A client of a server that is there, or comes."""
        peer = self.peer(user)
        if self.daemon.server is None:
            assert code_of(self, peer, **environment) is Result.NOT_READY
            self.serve(user)
        return peer, self.join(peer, **environment)


def code_of(world: World, peer: Peer, **environment: str) -> Result:
    with pytest.raises(CudaError) as refused:
        world.join(peer, **environment)
    return refused.value.code


def lost(peer: Peer) -> list[str]:
    """The names of the errors a client's calls end with."""
    return [name for _, name, _ in peer.heard("lost")]


def test_the_first_client_has_a_server_started_and_waits_for_it() -> None:
    world, client = World(), Peer(7, user=1000)
    assert code_of(world, client) is Result.NOT_READY
    assert code_of(world, client) is Result.NOT_READY
    assert world.control.heard("spawn") == [("1000",)]
    world.serve(user=1000)
    assert world.join(client).mps
    assert world.server.peer is world.served


def test_clients_of_another_user_wait_until_the_server_drained() -> None:
    world = World()
    first, _ = world.client(user=1)
    second, again = world.peer(2), world.peer(1)
    assert code_of(world, second) is Result.NOT_READY
    assert code_of(world, again) is Result.NOT_READY
    assert not world.served.closed
    world.mps.left(first)
    assert world.served.closed
    world.mps.left(world.served)
    assert code_of(world, second) is Result.NOT_READY
    world.serve(user=2)
    assert world.join(second).mps


def test_a_multi_user_server_takes_all_users() -> None:
    world = World(multiuser=True)
    _, first = world.client(user=1)
    world.client(user=2)
    assert world.server.peer.user == 0
    assert len(world.server.clients) == 2
    assert first.mps


def test_two_clients_have_the_limits_each_came_with() -> None:
    world = World()
    world.daemon.defaults = mps_limits.Limits(50.0, {"0": 30 * GIB}, 1)
    _, large = world.client()
    _, small = world.client(memory="0=20G", percentage="10", priority="0")
    allocates = [cuda_contexts.allocate(world.of, client, 0, None) for client in (large, small)]
    assert allocates == [30 * GIB, 20 * GIB]
    assert [(c.percentage, c.priority) for c in (large, small)] == [(50.0, 1), (10.0, 0)]
    with pytest.raises(CudaError, match="1 bytes wanted, 0 left"):
        cuda_contexts.allocate(world.of, small, 0, 1)


def test_the_device_itself_is_a_limit_too() -> None:
    world = World()
    _, first = world.client(visible="0")
    _, second = world.client(visible="0")
    whole = world.of.gpus[0].product.memory_mib
    taken = cuda_contexts.allocate(world.of, first, 0, 60 * GIB)
    rest = cuda_contexts.allocate(world.of, second, 0, None)
    assert taken + rest == (whole.total - whole.reserved) << 20


def test_defaults_bind_only_servers_that_start_later() -> None:
    world = World()
    _, previous = world.client()
    world.daemon.defaults.memory["0"] = GIB
    _, after = world.client()
    assert [previous.grants[0].limit, after.grants[0].limit] == [None, None]
    world.server.limits.memory["0"] = 2 * GIB
    assert world.client()[1].grants[0].limit == 2 * GIB


def test_devices_are_renumbered_for_clients() -> None:
    world = World(visible="3,1")
    world.daemon.defaults.memory = {"0": 3 * GIB, "1": GIB}
    _, all_of_them = world.client()
    _, second = world.client(visible="1", memory="0=512M")
    minors = [grant.device.gpu.slot.minor for grant in all_of_them.grants]
    assert minors == [3, 1]
    assert [grant.limit for grant in all_of_them.grants] == [3 * GIB, GIB]
    assert [(g.device.gpu.slot.minor, g.limit) for g in second.grants] == [(1, GIB // 2)]
    assert code_of(world, world.peer(), visible="2") is Result.NO_DEVICE


def test_a_fault_hits_all_clients_of_a_gpu_and_blocks_new_ones() -> None:
    world = World(visible="0,1,2")
    bad, context = world.client(visible="0")
    between, _ = world.client(visible="0,1")
    through, _ = world.client(visible="1")
    apart, _ = world.client(visible="2")
    world.mps.fault(context)
    assert [lost(peer) for peer in (bad, between, through, apart)] == [
        ["CUDA_ERROR_ILLEGAL_ADDRESS"],
        ["CUDA_ERROR_ILLEGAL_ADDRESS"],
        ["CUDA_ERROR_ILLEGAL_ADDRESS"],
        [],
    ]
    assert code_of(world, world.peer(), visible="2") is Result.MPS_SERVER_NOT_READY
    for peer in (bad, between, through):
        assert world.server.status is mps_daemons.Status.FAULT
        world.mps.left(peer)
    assert world.server.status is mps_daemons.Status.ACTIVE
    assert world.client()[1].mps


def test_a_fault_is_told_as_an_xid() -> None:
    world = World()
    name = world.of.open_events(privileged=True)
    waiting = world.of.event_sets[name]
    pci = world.of.gpus[0].slot.pci
    waiting.masks[pci] = events.EventType.XID
    world.mps.fault(world.plain("0"))
    assert list(waiting.queue) == [events.Event(pci, events.EventType.XID, 31)]


def test_without_mps_a_fault_is_the_programs_own() -> None:
    world = World()
    first, second = world.plain("0"), world.plain("0")
    world.mps.fault(first)
    assert first.lost is not None
    assert second.lost is None


def test_a_servers_end_takes_its_clients_and_the_next_client_has_a_new_one() -> None:
    world = World()
    client, _ = world.client()
    world.mps.left(world.served)
    assert lost(client) == ["CUDA_ERROR_MPS_RPC_FAILURE"]
    assert world.client()[1].mps


def test_a_daemons_end_takes_its_server() -> None:
    world = World()
    client, _ = world.client()
    world.mps.left(world.control)
    assert world.served.closed
    assert lost(client) == ["CUDA_ERROR_MPS_RPC_FAILURE"]
    assert code_of(world, world.peer()) is Result.MPS_CONNECTION_FAILED


def test_a_process_in_an_exclusive_gpu_keeps_the_others_out() -> None:
    world = World()
    world.of.board(world.of.gpus[0]).compute_mode = codes.ComputeMode.EXCLUSIVE_PROCESS
    first = world.plain("0")
    with pytest.raises(CudaError, match="Exclusive_Process and process 103 has it") as refused:
        world.plain("0")
    assert refused.value.code is Result.DEVICE_UNAVAILABLE
    waiting = world.peer()
    assert code_of(world, waiting) is Result.NOT_READY
    with pytest.raises(CudaError):
        world.serve()
    assert code_of(world, waiting) is Result.MPS_CONNECTION_FAILED
    world.mps.left(first.peer)
    assert world.plain("0").lost is None


def test_with_mps_the_server_is_the_process_of_an_exclusive_gpu() -> None:
    world = World(visible="0")
    world.of.board(world.of.gpus[0]).compute_mode = codes.ComputeMode.EXCLUSIVE_PROCESS
    world.client()
    world.client()
    with pytest.raises(CudaError):
        world.plain("0")


def test_no_process_computes_on_a_prohibited_gpu() -> None:
    world = World()
    world.of.board(world.of.gpus[0]).compute_mode = codes.ComputeMode.PROHIBITED
    with pytest.raises(CudaError, match="Prohibited"):
        world.plain("0")
    assert world.plain("1").lost is None


def test_clients_are_counted_for_each_device() -> None:
    world = World()
    for _ in range(48):
        world.client(visible="0")
    assert code_of(world, world.peer(), visible="0") is Result.MPS_MAX_CLIENTS_REACHED
    assert world.client(visible="1")[1].mps


def test_more_connections_leave_place_for_fewer_clients() -> None:
    world = World()
    for _ in range(12):
        world.client(connections="8")
    assert code_of(world, world.peer()) is Result.MPS_MAX_CONNECTIONS_REACHED


def test_memory_is_free_again_when_the_client_is_gone() -> None:
    world = World()
    peer, context = world.client(visible="0")
    cuda_contexts.allocate(world.of, context, 0, GIB)
    board = world.of.board(world.of.gpus[0])
    assert sorted((p.memory, p.mps) for p in board.processes) == [(0, False), (GIB, True)]
    world.mps.left(peer)
    assert [p.mps for p in board.processes] == [False]


def test_nvml_lists_clients_as_mps_and_the_server_not() -> None:
    world = World()
    peer, _ = world.client(visible="0")
    nvml = library.Library(world.of)
    nvml.init()
    gpu = nvml.device_get_handle_by_index(0)
    assert [p.pid for p in nvml.device_get_mps_compute_running_processes(gpu)] == [peer.pid]
    assert len(nvml.device_get_compute_running_processes(gpu)) == 2


def test_a_reset_gpu_ends_what_was_on_it() -> None:
    world = World(visible="0")
    client, _ = world.client()
    alone, apart = world.plain("0"), world.plain("5")
    world.of.restore(world.of.gpus[0])
    world.mps.sweep()
    assert lost(client) == ["CUDA_ERROR_DEVICE_UNAVAILABLE"]
    assert world.served.closed
    assert [context.lost is None for context in (alone, apart)] == [False, True]


def test_a_reboot_ends_every_process() -> None:
    world = World()
    client, _ = world.client()
    alone = world.peer()
    world.mps.open_(alone, world.found, mps_daemons.Wish())
    world.mps.end()
    assert all(peer.closed for peer in (client, alone, world.control, world.served))


def test_a_machine_that_starts_forgets_who_was_connected() -> None:
    world = World()
    world.client()
    cuda_contexts.forget(world.of)
    assert all(not board.processes for board in world.of.state.boards.values())


def test_an_upgraded_driver_takes_no_new_process() -> None:
    world = World()
    world.of.state.installed_driver = "590.44.01"
    with pytest.raises(CudaError) as refused:
        world.plain()
    assert refused.value.code is Result.SYSTEM_DRIVER_MISMATCH


def test_mps_dies_on_the_gpus_it_has() -> None:
    world = World(visible="0")
    world.client()
    server, daemon = world.served.pid, world.control.pid
    here, elsewhere = world.of.gpus[0], world.of.gpus[1]
    assert list(world.mps.victims(here, server_only=False)) == [server, daemon]
    assert list(world.mps.victims(here, server_only=True)) == [server]
    assert list(world.mps.victims(elsewhere, server_only=False)) == []


def test_a_mig_device_has_a_daemon_of_its_own() -> None:
    world = World()
    mig = partition.Partition(world.of, world.of.gpus[0])
    mig.set_mode(enabled=True)
    gpu_instances = [mig.create(mig.profile(9), geometry.Placement(start, 4)) for start in (0, 4)]
    compute = [mig.create_compute(instance, 2, None) for instance in gpu_instances]
    compute[1].compute_mode = codes.ComputeMode.EXCLUSIVE_PROCESS
    world.daemon.visible = compute[1].uuid
    world.daemon.defaults.memory["0"] = GIB
    for _ in range(20):
        _, context = world.client()
    assert context.devices == {compute[1].uuid}
    assert cuda_contexts.allocate(world.of, context, 0, None) == GIB
    assert code_of(world, world.peer()) is Result.MPS_MAX_CLIENTS_REACHED
    with pytest.raises(CudaError, match="Exclusive_Process"):
        world.plain(compute[1].uuid)
    assert world.plain(compute[0].uuid).lost is None


def test_a_client_whose_server_never_came_is_refused_and_the_next_one_tried() -> None:
    world, waiting = World(), Peer(7)
    assert code_of(world, waiting) is Result.NOT_READY
    world.daemon.exited(99, 1)
    assert code_of(world, waiting) is Result.MPS_CONNECTION_FAILED
    assert code_of(world, waiting) is Result.NOT_READY
    world.serve()
    world.daemon.exited(98, 1)
    assert world.join(waiting).mps


def test_a_killed_client_wedges_its_server_when_so_configured() -> None:
    world = World(visible="0")
    world.mps.deadly.add(world.of.gpus[0].slot.pci)
    killed, _ = world.client()
    world.mps.left(killed)
    assert world.server.status is mps_daemons.Status.ACTIVE
    waiting = world.peer()
    assert code_of(world, waiting) is Result.NOT_READY
    world.server.draining = True
    world.mps.close_if_idle(world.server)
    world.mps.left(world.served)
    assert code_of(world, waiting) is Result.NOT_READY
    world.serve()
    assert world.join(waiting).mps


def test_a_client_that_was_terminated_first_wedges_nothing() -> None:
    world = World(visible="0")
    world.mps.deadly.add(world.of.gpus[0].slot.pci)
    ended, context = world.client()
    world.mps.terminate(world.server, context)
    world.mps.left(ended)
    assert world.client()[1].mps
