"""MPS and CUDA clients as real processes of one machine; each test has a GPU to itself."""

import itertools
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator import builder, client, codes, control, layout, library, store
from tests.fakes import waiting
from tests.fakes.gpu_programs import WITHIN_S, Gpu, ask, ended, running, said

GIB = 1 << 30
NOBODY = 65534
INTERPRETER = 3
"""Of an ELF file's program headers: PT_INTERP."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to start processes of others")


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A machine that runs, where every user finds it and paths are as short as sockets want."""
    with tempfile.TemporaryDirectory(prefix="mps-") as temporary_directory:
        Path(temporary_directory).chmod(0o755)
        directory = Path(temporary_directory) / "m"
        builder.build(directory, store.create(directory, "hgx-h100", "node-1"))
        with running(directory):
            yield directory


MINORS = itertools.cycle(range(8))


@pytest.fixture
def gpu(base: Path) -> Iterator[Gpu]:
    created = Gpu(base, next(MINORS))
    yield created
    created.close()


@pytest.fixture
def exclusive(gpu: Gpu) -> Iterator[Gpu]:
    """A GPU that takes one process."""
    handle = ask(gpu, "device_get_handle_by_uuid", gpu.uuid)[0]
    ask(gpu, "device_set_compute_mode", handle, codes.ComputeMode.EXCLUSIVE_PROCESS.value)
    yield gpu
    ask(gpu, "device_set_compute_mode", handle, codes.ComputeMode.DEFAULT.value)


def test_clients_get_unequal_limits_at_once_and_no_more(gpu: Gpu) -> None:
    gpu.daemon()
    assert gpu.say(
        "set_default_active_thread_percentage 50", "set_default_device_pinned_mem_limit 0 30G"
    ) == ["50.0"]
    _, large = gpu.start("--allocate", "40Gi")
    _, small = gpu.start(
        "--allocate",
        "max",
        CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=20G",
        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10",
        CUDA_MPS_CLIENT_PRIORITY="1",
    )
    assert [client["devices"][0]["allocated"] for client in (large, small)] == [30 * GIB, 20 * GIB]
    assert large["refused"]["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert large["refused"]["words"] == f"{40 * GIB} bytes wanted, {30 * GIB} left"
    assert small["refused"] is None
    server = int(gpu.say("get_server_list")[0])
    assert large["mps"] == {"server": server, "threadPercentage": 50.0, "priority": 0}
    assert small["mps"] == {"server": server, "threadPercentage": 10.0, "priority": 1}
    listed = {p.pid: (p.memory, p.mps) for p in gpu.processes}
    assert listed == {
        large["pid"]: (30 * GIB, True),
        small["pid"]: (20 * GIB, True),
        server: (0, False),
    }
    used = ["--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    assert gpu.run("nvidia-smi", *used)[1].splitlines()[gpu.minor] == "51200"


def test_processes_with_a_gpu_open_are_in_the_hosts_proc_until_they_end(gpu: Gpu) -> None:
    proc = layout.Layout(gpu.base).host_root / "proc"
    process, answer = gpu.start("--allocate", "1Gi")
    shown = proc / str(answer["pid"])
    assert (shown / "cgroup").read_text() == Path(f"/proc/{process.pid}/cgroup").read_text()
    process.kill()
    ended(process)
    waiting.until(lambda: not shown.is_symlink(), WITHIN_S)


@needs_root
def test_in_a_root_without_proc_the_daemon_finds_its_server(gpu: Gpu) -> None:
    """A pod that changes its root to the driver's has no other."""
    root = layout.Layout(gpu.base).driver_root
    inside = f"/tmp/{gpu.pipe.parent.name}"
    (root / inside[1:]).mkdir(parents=True)
    gpu.pipe = root / inside[1:]
    folders = {"CUDA_MPS_PIPE_DIRECTORY": inside, "CUDA_MPS_LOG_DIRECTORY": inside}
    environment = gpu.environment(PATH="/usr/sbin:/usr/bin", **folders)
    command = ["chroot", str(root), "/usr/bin/nvidia-cuda-mps-control"]
    subprocess.run([*command, "-d"], env=environment, check=True, timeout=WITHIN_S)
    try:
        assert gpu.once()["mps"]["server"]
    finally:
        subprocess.run(
            command, input="quit -t 1\n", text=True, env=environment, check=True, timeout=WITHIN_S
        )


def test_the_server_is_a_process_of_its_own_program(gpu: Gpu) -> None:
    daemon = gpu.daemon()
    _, client = gpu.start()
    server = Path(f"/proc/{client['mps']['server']}")
    assert server.joinpath("exe").readlink().name == "nvidia-cuda-mps-server"
    assert f"PPid:\t{daemon}\n" in server.joinpath("status").read_text()


def test_a_limit_by_uuid_binds_where_the_index_has_none(gpu: Gpu) -> None:
    gpu.daemon()
    assert gpu.say(f"set_default_device_pinned_mem_limit {gpu.uuid} 5G") == []
    assert gpu.say(f"get_default_device_pinned_mem_limit {gpu.uuid}") == ["5G"]
    assert gpu.once("--allocate", "6Gi")["allocated"] == 5 * GIB
    server = gpu.say("get_server_list")[0]
    gpu.say(f"set_device_pinned_mem_limit {server} 0 4G")
    assert gpu.once("--allocate", "6Gi")["allocated"] == 4 * GIB


def test_a_limit_shows_as_free_memory_and_no_limit_as_the_whole_gpu(gpu: Gpu) -> None:
    """Match cudaMemGetInfo on r615: a program that sizes itself by the total takes too much."""
    gpu.daemon()
    gpu.say("set_default_device_pinned_mem_limit 0 5G")
    (device,) = gpu.once()["devices"]
    assert (device["free"], device["limit"]) == (5 * GIB, 5 * GIB)
    assert device["total"] > 79 * GIB


def test_a_limit_for_an_invisible_gpu_lifts_every_limit_of_the_client(gpu: Gpu) -> None:
    gpu.daemon()
    gpu.say("set_default_device_pinned_mem_limit 0 5G")
    escaped = gpu.once("--allocate", "6Gi", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=1G,1=1G")
    assert (escaped["devices"][0]["limit"], escaped["allocated"]) == (None, 6 * GIB)
    once = gpu.once("--allocate", "6Gi", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=f"{gpu.uuid}=1G")
    assert once["allocated"] == GIB


def test_a_fault_takes_the_neighbours_and_new_clients_wait_for_them_to_leave(gpu: Gpu) -> None:
    gpu.daemon()
    neighbour, present = gpu.start("--allocate", "1Gi", "--stay")
    bad, _ = gpu.start("--fault")
    assert said(bad)["lost"] == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert ended(bad) == 1
    lost = said(neighbour)
    assert (lost["lost"], lost["code"]) == ("CUDA_ERROR_ILLEGAL_ADDRESS", 700)
    server = present["mps"]["server"]
    assert lost["words"] == f"client {bad.pid} of MPS server {server} had a fatal fault"
    assert gpu.say(f"get_server_status {server}") == ["FAULT"]
    assert gpu.once()["error"] == "CUDA_ERROR_MPS_SERVER_NOT_READY"
    neighbour.terminate()
    assert ended(neighbour) == 1
    waiting.until(lambda: gpu.say(f"get_server_status {server}") == ["ACTIVE"], WITHIN_S)
    assert gpu.once()["mps"]["server"] == server


def test_a_daemon_that_dies_takes_server_and_clients_and_its_directory_is_used_again(
    gpu: Gpu,
) -> None:
    daemon = gpu.daemon()
    holder, present = gpu.start("--allocate", "1Gi")
    os.kill(daemon, signal.SIGKILL)
    assert said(holder)["lost"] == "CUDA_ERROR_MPS_RPC_FAILURE"
    assert ended(holder) == 1
    waiting.until(lambda: not Path(f"/proc/{present['mps']['server']}/exe").exists(), WITHIN_S)
    assert (gpu.pipe / "control").is_socket()
    missing = (1, "Cannot find MPS control daemon process\n")
    assert gpu.run("nvidia-cuda-mps-control", typed="get_server_list\n") == missing
    assert gpu.once()["mps"] is None
    assert gpu.daemon() != daemon
    assert gpu.once()["mps"] is not None


def test_the_fault_mps_death_kills_as_a_crash_does(gpu: Gpu) -> None:
    with pytest.raises(control.ControlError, match=f"no MPS process runs on GPU {gpu.minor}"):
        control.send(gpu.base, "mps_death", str(gpu.minor), "0")
    daemon = gpu.daemon()
    first, present = gpu.start()
    simulator = [sys.executable, "-m", "simulator", "fault", "mps-death", str(gpu.base)]
    subprocess.run([*simulator, "--gpu", str(gpu.minor), "--server-only"], check=True)
    assert said(first)["lost"] == "CUDA_ERROR_MPS_RPC_FAILURE"
    waiting.until(lambda: gpu.say("get_server_list") == [], WITHIN_S)
    second, again = gpu.start()
    assert again["mps"]["server"] != present["mps"]["server"]
    control.send(gpu.base, "mps_death", str(gpu.minor), "0")
    assert said(second)["lost"] == "CUDA_ERROR_MPS_RPC_FAILURE"
    waiting.until(lambda: not Path(f"/proc/{daemon}/exe").exists(), WITHIN_S)


def test_a_directory_has_one_daemon(gpu: Gpu) -> None:
    gpu.daemon()
    taken = (1, "An instance of this daemon is already running\n")
    assert gpu.run("nvidia-cuda-mps-control", "-d") == taken
    assert gpu.say("get_default_active_thread_percentage") == ["100.0"]


def test_quit_leaves_the_directory_without_its_pid_and_defaults_with_nobody(gpu: Gpu) -> None:
    gpu.daemon()
    assert gpu.say("set_default_active_thread_percentage 30", "quit") == ["30.0"]
    assert sorted(path.name for path in gpu.pipe.iterdir()) == ["control", "control_lock"]
    gpu.daemon()
    assert gpu.say("get_default_active_thread_percentage") == ["100.0"]


def test_quit_with_a_timeout_does_not_wait_for_clients(gpu: Gpu) -> None:
    gpu.daemon()
    holder, _ = gpu.start()
    assert gpu.say("quit -t 1") == []
    assert said(holder)["lost"] == "CUDA_ERROR_MPS_RPC_FAILURE"
    assert not (gpu.pipe / "nvidia-cuda-mps-control.pid").exists()


def test_an_exclusive_gpu_takes_one_process_or_one_server(exclusive: Gpu) -> None:
    gpu = exclusive
    first, _ = gpu.start()
    second = gpu.once()
    assert (second["error"], second["code"]) == ("CUDA_ERROR_DEVICE_UNAVAILABLE", 46)
    assert f"process {first.pid} has it" in second["words"]
    gpu.daemon()
    refused = gpu.once()
    assert refused["error"] == "CUDA_ERROR_MPS_CONNECTION_FAILED"
    first.terminate()
    assert ended(first) == 0
    waiting.until(lambda: gpu.processes == [], WITHIN_S)
    gpu.start()
    assert gpu.once()["mps"] is not None
    unaware = gpu.once(CUDA_MPS_PIPE_DIRECTORY=str(gpu.pipe / "elsewhere"))
    assert unaware["error"] == "CUDA_ERROR_DEVICE_UNAVAILABLE"


def test_a_client_of_a_frozen_daemon_waits_and_can_be_ended(gpu: Gpu) -> None:
    daemon = gpu.daemon()
    os.kill(daemon, signal.SIGSTOP)
    try:
        waits = gpu.begin()
        signals = Path(f"/proc/{waits.pid}/status")
        waiting.until(lambda: "SigCgt:\t0000000000004002" in signals.read_text(), WITHIN_S)
        waits.terminate()
        assert ended(waits) == 0
    finally:
        os.kill(daemon, signal.SIGCONT)


def test_memory_is_gone_with_the_process_however_it_ends(gpu: Gpu) -> None:
    holder, _ = gpu.start("--allocate", "1Gi")
    assert [p.memory for p in gpu.processes] == [GIB]
    holder.kill()
    waiting.until(lambda: gpu.processes == [], WITHIN_S)


@needs_root
def test_users_take_turns_unless_one_server_is_for_all(gpu: Gpu) -> None:
    gpu.daemon()
    mine, first = gpu.start()
    theirs = gpu.begin(user=NOBODY)
    log = gpu.logs / "control.log"
    waits = f"NEW CLIENT {theirs.pid} from user {NOBODY}: Server is not ready"
    waiting.until(lambda: waits in log.read_text(), WITHIN_S)
    mine.terminate()
    second = said(theirs)
    assert second["mps"]["server"] != first["mps"]["server"]
    assert Path(f"/proc/{second['mps']['server']}").stat().st_uid == NOBODY
    gpu.say("quit -t 1")
    gpu.daemon("-multiuser-server")
    _, root = gpu.start()
    _, nobody = gpu.start(user=NOBODY)
    assert root["mps"]["server"] == nobody["mps"]["server"]


def test_in_the_foreground_the_daemon_prints_its_log(gpu: Gpu) -> None:
    process = subprocess.Popen(
        [str(gpu.bin / "nvidia-cuda-mps-control"), "-f"],
        env=gpu.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert f"Starting control daemon using socket {gpu.pipe}/control" in process.stdout.readline()
    gpu.once()
    process.terminate()
    text, _ = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    assert "NEW SERVER" in text
    assert "Server has started" in text
    assert not gpu.logs.exists() or not list(gpu.logs.iterdir())


def test_a_path_longer_than_a_socket_takes_is_refused(gpu: Gpu) -> None:
    far = str(gpu.pipe.parent / ("x" * 90))
    refused = (1, "Cannot find MPS control daemon process\n")
    assert gpu.run("nvidia-cuda-mps-control", "-d", CUDA_MPS_PIPE_DIRECTORY=far) == refused
    assert not Path(far).exists()


@pytest.mark.parametrize(
    ("program", "options", "status"),
    [
        ("nvidia-cuda-mps-control", ["-S"], 1),
        ("nvidia-cuda-mps-control", ["-d", "-f"], 1),
        ("nvidia-cuda-mps-control", ["-h"], 0),
        ("nvidia-cuda-mps-server", [], 1),
        ("simclient", ["--allocate", "4Ti"], 2),
        ("simclient", ["--allocate", "-1"], 2),
        ("simclient", ["--hold"], 2),
        ("simclient", ["--help"], 0),
    ],
)
def test_options_are_explained(gpu: Gpu, program: str, options: list[str], status: int) -> None:
    count, text = gpu.run(program, *options)
    assert (count, program in text) == (status, True)


def container(gpu: Gpu, *nodes: str) -> Path:
    """A root like a container's with nothing but the socket, these device nodes and the client."""
    position = layout.Layout(gpu.base)
    root = Path(tempfile.mkdtemp(prefix="root-", dir=gpu.base.parent))
    for folder in ("usr/bin", "run/nvidia-persistenced", "dev/nvidia-caps"):
        (root / folder).mkdir(parents=True)
    (root / "run/nvidia-persistenced/socket").symlink_to(position.nvml_socket)
    files = [f"dev/{name}" for name in ("nvidiactl", *nodes)]
    for name in ("usr/bin/simclient", *files):
        subprocess.run(["cp", "-a", str(position.driver_root / name), str(root / name)], check=True)
    return root


def test_in_a_container_a_client_has_the_gpus_it_can_open(gpu: Gpu) -> None:
    gpu.bin = container(gpu, f"nvidia{gpu.minor}") / "usr/bin"
    assert gpu.once(CUDA_VISIBLE_DEVICES="0")["devices"][0]["uuid"] == gpu.uuid
    assert gpu.once(CUDA_VISIBLE_DEVICES="1")["error"] == "CUDA_ERROR_NO_DEVICE"


@needs_root
def test_a_client_in_a_pid_namespace_is_known_by_its_pid_on_the_host(gpu: Gpu) -> None:
    command = ["unshare", "--pid", "--fork", str(gpu.bin / "simclient"), "--hold", "60"]
    process = subprocess.Popen(
        command, env={**os.environ, **gpu.environment()}, stdout=subprocess.PIPE, text=True
    )
    try:
        pid = said(process)["pid"]
        assert Path(f"/proc/{pid}/exe").readlink().name == "simclient"
        assert [p.pid for p in gpu.processes] == [pid]
        os.kill(pid, signal.SIGTERM)
    finally:
        process.communicate(timeout=WITHIN_S)


def test_in_a_container_a_client_has_the_mig_device_it_can_open(gpu: Gpu) -> None:
    handle = ask(gpu, "device_get_handle_by_uuid", gpu.uuid)[0]
    ask(gpu, "device_set_mig_mode", handle, 1)
    try:
        text = ask(gpu, "device_create_gpu_instance", handle, 9)[0]
        ask(gpu, "gpu_instance_create_compute_instance", text, 2)
        result = library.Library(store.load(gpu.base))
        result.init()
        mig = result.device_get_mig_device_handle_by_index(client.Handle(handle), 0)
        uuid = result.device_get_uuid(mig)
        caps = [f"nvidia-caps/{path.name}" for path in capability_nodes(gpu)]
        gpu.bin = container(gpu, f"nvidia{gpu.minor}", *caps) / "usr/bin"
        got = gpu.once("--allocate", "max", CUDA_VISIBLE_DEVICES="0")
        assert [device["uuid"] for device in got["devices"]] == [uuid]
        assert got["allocated"] == 40448 << 20
        gpu.bin = container(gpu, f"nvidia{gpu.minor}") / "usr/bin"
        assert gpu.once(CUDA_VISIBLE_DEVICES="0")["error"] == "CUDA_ERROR_NO_DEVICE"
    finally:
        control.send(gpu.base, "restore", str(gpu.minor))
        ask(gpu, "device_set_mig_mode", handle, 0)


def capability_nodes(gpu: Gpu) -> list[Path]:
    """Return the capability nodes of this GPU's instances."""
    nodes = layout.Layout(gpu.base).capability_nodes
    return [path for path in nodes.iterdir() if int(path.name.removeprefix("nvidia-cap")) > 2]


def test_a_reset_ends_what_runs_on_the_gpu(gpu: Gpu) -> None:
    gpu.daemon()
    holder, _ = gpu.start()
    control.send(gpu.base, "restore", str(gpu.minor))
    assert said(holder)["lost"] == "CUDA_ERROR_DEVICE_UNAVAILABLE"
    assert ended(holder) == 1


@pytest.mark.parametrize("program", ["nvidia-smi", "simclient"])
def test_programs_that_containers_have_need_no_loader(gpu: Gpu, program: str) -> None:
    assert INTERPRETER not in headers(gpu.bin / program)


@pytest.mark.parametrize("program", ["nvidia-cuda-mps-control", "nvidia-cuda-mps-server"])
def test_the_daemons_take_the_roots_loader_as_real_ones_do(gpu: Gpu, program: str) -> None:
    assert INTERPRETER in headers(gpu.bin / program)


def headers(program: Path) -> list[int]:
    """The kinds of an ELF file's program headers."""
    elf = program.read_bytes()
    start, size, count = (
        struct.unpack_from(form, elf, index)[0]
        for form, index in (("<Q", 32), ("<H", 54), ("<H", 56))
    )
    return [struct.unpack_from("<I", elf, start + size * i)[0] for i in range(count)]


def test_without_the_node_process_nothing_starts_and_what_ran_is_over() -> None:
    with tempfile.TemporaryDirectory(prefix="mps-") as temporary_directory:
        directory = Path(temporary_directory) / "m"
        builder.build(directory, store.create(directory, "l4", "node-2"))
        gpu = Gpu(directory, 0)
        assert gpu.once()["words"] == "the driver does not answer"
        with pytest.raises(control.ControlError, match="no MPS process runs on GPU 0"):
            control.send(directory, "mps_death", "0", "0")
        silent = (1, "The NVIDIA driver does not answer\n")
        assert gpu.run("nvidia-cuda-mps-control", "-d") == silent
        with running(directory):
            daemon = gpu.daemon()
            holder, _ = gpu.start()
        assert said(holder)["words"] != ""
        assert ended(holder) == 1
        waiting.until(lambda: not Path(f"/proc/{daemon}/exe").exists(), WITHIN_S)
        with running(directory):
            gpu.close()
