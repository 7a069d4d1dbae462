"""The node process and its C clients, over the real socket."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator import builder, control, layout, machine, node, state, store


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A machine that does not run, deeper than a socket's address is long."""
    deep = tmp_path / ("a-directory-with-a-long-name-" * 4) / "m"
    builder.build(deep, store.create(deep, "hgx-h100", "node-1"))
    return deep


@pytest.fixture
def running(base: Path) -> Iterator[Path]:
    process = start(base)
    yield base
    stop(process)


def start(base: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "simulator", "run", str(base)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready: 8 GPUs")
    return process


def stop(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10)
    assert (process.returncode, out) == (0, "stopped\n")


def smi(root: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(root / "usr/bin/nvidia-smi"), *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def a_container(base: Path, *minors: int) -> Path:
    """A root like a container's: the driver's files, the socket, some of the GPUs."""
    position = layout.Layout(base)
    root = base / "container"
    shutil.copytree(position.driver_root / "usr", root / "usr", symlinks=True)
    (root / "run/nvidia-persistenced").mkdir(parents=True)
    (root / "run/nvidia-persistenced/socket").symlink_to(position.nvml_socket)
    (root / "dev").mkdir()
    for name in ("nvidiactl", *(f"nvidia{minor}" for minor in minors)):
        subprocess.run(
            ["cp", "-a", str(position.driver_root / "dev" / name), str(root / "dev")], check=True
        )
    return root


def expected(*minors: int) -> str:
    gpus = {gpu.slot.minor: gpu for gpu in machine.build("hgx-h100", seed="node-1").gpus}
    return "".join(
        f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: {gpus[minor].uuid})\n"
        for index, minor in enumerate(minors)
    )


def test_nvidia_smi_lists_the_gpus_of_its_root(running: Path) -> None:
    root = layout.Layout(running).driver_root
    assert smi(root, "-L") == (0, expected(*range(8)))


def test_a_container_sees_its_gpus_renumbered(running: Path) -> None:
    assert smi(a_container(running, 3), "-L") == (0, expected(3))


def test_a_container_without_gpus_is_told_so(running: Path) -> None:
    assert smi(a_container(running), "-L") == (6, "No devices were found\n")


def test_nvidia_smi_queries(running: Path) -> None:
    root = a_container(running, 7)
    uuid = expected(7).split("UUID: ")[1].rstrip(")\n")
    query = "--query-gpu=index,name,uuid,memory.total,pci.bus_id"
    line = f"0, NVIDIA H100 80GB HBM3, {uuid}, 81559 MiB, 00000000:CA:00.0\n"
    assert smi(root, query, "--format=csv,noheader") == (0, line)
    status, text = smi(root, "-q")
    assert status == 0
    assert "Attached GPUs                             : 1\n" in text
    assert f"    GPU UUID                              : {uuid}\n" in text
    assert smi(root, "--query-gpu=wings", "--format=csv")[0] == 2


def test_without_the_node_process_the_driver_is_not_loaded(base: Path) -> None:
    status, text = smi(layout.Layout(base).driver_root, "-L")
    assert status == 9
    assert text.startswith("NVIDIA-SMI has failed because it couldn't communicate")


@pytest.fixture
def nvml(base: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(layout.Layout(base).libraries / "libnvidia-ml.so.1"))


def count_of(nvml: ctypes.CDLL) -> tuple[int, int]:
    count = ctypes.c_uint()
    return nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value


def test_a_client_outlives_the_node_process(base: Path, nvml: ctypes.CDLL) -> None:
    assert nvml.nvmlInit_v2() == 9
    process = start(base)
    assert nvml.nvmlInit_v2() == 0
    assert count_of(nvml) == (0, 8)
    stop(process)
    assert count_of(nvml)[0] == 9
    process = start(base)
    assert count_of(nvml) == (0, 8)
    stop(process)


def test_a_child_of_fork_does_not_share_a_conversation(running: Path) -> None:
    library = layout.Layout(running).libraries / "libnvidia-ml.so.1"
    program = f"""
import ctypes, os
nvml = ctypes.CDLL({str(library)!r})
count = ctypes.c_uint()
assert nvml.nvmlInit_v2() == 0
child = os.fork()
ok = all(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 8
         for _ in range(200))
if child == 0:
    os._exit(0 if ok else 1)
assert ok and os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_threads_get_their_own_answers(base: Path, nvml: ctypes.CDLL) -> None:
    process = start(base)
    assert nvml.nvmlInit_v2() == 0
    wrong: list[str] = []

    def look(index: int) -> None:
        handle, minor = ctypes.c_void_p(), ctypes.c_uint()
        for _ in range(50):
            nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            nvml.nvmlDeviceGetMinorNumber(handle, ctypes.byref(minor))
            if minor.value != index:
                wrong.append(f"{index} got {minor.value}")

    threads = [threading.Thread(target=look, args=(i % 8,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    stop(process)


@pytest.mark.usefixtures("running")
def test_text_of_any_kind_crosses_the_socket_whole(nvml: ctypes.CDLL) -> None:
    handle = ctypes.c_void_p()
    assert nvml.nvmlInit_v2() == 0
    for uuid in (b"a\tb", b"line\nend", b"back\\slash\\", "ü".encode()):
        assert nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(handle)) == 6
    assert count_of(nvml) == (0, 8)


@pytest.mark.usefixtures("running")
def test_a_buffer_too_small_is_said_so_and_left_alone(nvml: ctypes.CDLL) -> None:
    assert nvml.nvmlInit_v2() == 0
    text = ctypes.create_string_buffer(b"kept", 5)
    assert nvml.nvmlSystemGetDriverVersion(text, 5) == 7
    assert text.value == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set the compute mode")
def test_settings_survive_the_process_but_not_a_reboot(base: Path, nvml: ctypes.CDLL) -> None:
    boot_id = layout.Layout(base).host_root / "proc/sys/kernel/random/boot_id"
    previous = boot_id.read_text()
    handle, mode = ctypes.c_void_p(), ctypes.c_uint()
    process = start(base)
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
    assert nvml.nvmlDeviceSetComputeMode(handle, 3) == 0
    stop(process)
    process = start(base)
    assert nvml.nvmlDeviceGetComputeMode(handle, ctypes.byref(mode)) == 0
    assert mode.value == 3
    assert boot_id.read_text() == previous
    control.send(base, "reboot")
    assert nvml.nvmlDeviceGetComputeMode(handle, ctypes.byref(mode)) == 0
    assert mode.value == 0
    assert boot_id.read_text() != previous
    stop(process)


def test_a_fault_reaches_a_running_and_a_stopped_machine(base: Path) -> None:
    root = layout.Layout(base).driver_root
    control.send(base, "lose", "1")
    process = start(base)
    assert smi(root, "-L")[0] == 15
    control.send(base, "restore", "1")
    assert smi(root, "-L") == (0, expected(*range(8)))
    stop(process)


def test_a_second_process_on_one_machine_is_refused(running: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "simulator", "run", str(running)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "in use by another process" in done.stderr


def test_a_machine_is_shown_as_json(base: Path) -> None:
    command = [sys.executable, "-m", "simulator", "show", str(base), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = json.loads(done.stdout)
    assert [gpu["minor"] for gpu in shown["gpus"]] == list(range(8))
    assert shown["bootID"] == machine.build("hgx-h100", seed="node-1").boot_id


def test_broken_lines_end_in_a_code_and_not_in_the_node(base: Path) -> None:
    running = node.Node(base)
    running.start()
    try:
        with pytest.raises(control.ControlError, match="no command 'explode'"):
            control.send(base, "explode")
        with pytest.raises(control.ControlError, match="no GPU '9'"):
            control.send(base, "lose", "9")
    finally:
        running.stop()
    assert not layout.Layout(base).nvml_socket.exists()


def simulator(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "simulator", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def board_of(base: Path, minor: str) -> state.Board:
    load = store.load(base)
    return load.board(load.find(minor))


@pytest.mark.parametrize(
    "arguments",
    [
        ("xid", "79", "--gpu", "3"),
        ("ecc", "--gpu", "3", "--corrected", "1", "--uncorrected", "2"),
        ("row-remap", "--gpu", "3", "--uncorrected"),
        ("recovery", "drain-and-reset", "--gpu", "3"),
        ("in-use", "--gpu", "3", "--times", "4"),
        ("insufficient-resources", "--gpu", "3"),
        ("memory-not-told", "--gpu", "3"),
        ("slow", "5"),
        ("driver-upgrade", "590.48.01"),
        ("reboot",),
        ("lost", "--gpu", "3"),
        ("gone", "--gpu", "3"),
    ],
)
def test_every_fault_is_a_command(base: Path, arguments: tuple[str, ...]) -> None:
    kind, *rest = arguments
    done = simulator("fault", kind, base, *rest)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_commands_change_the_state_that_the_machine_starts_from(base: Path) -> None:
    simulator("fault", "ecc", base, "--gpu", "3", "--uncorrected", "2")
    simulator("fault", "recovery", base, "gpu-reset", "--gpu", "3")
    simulator("process", base, "41", "--gpu", "3", "--memory-mib", "100")
    board = board_of(base, "3")
    assert (board.ecc.uncorrected, board.recovery) == (2, 1)
    assert board.processes == [state.Process(41, 100 << 20)]
    assert simulator("clear", base, "--gpu", "3").returncode == 0
    board = board_of(base, "3")
    assert (board.ecc.uncorrected, board.ecc_aggregate.uncorrected) == (0, 2)
    assert (board.recovery, board.processes) == (0, [])


def test_a_gpu_that_is_gone_has_no_node_and_no_pci_device(running: Path) -> None:
    position = layout.Layout(running)
    node_of, link = (
        position.driver_root / "dev/nvidia3",
        position.host_root / "sys/bus/pci/devices/0000:86:00.0",
    )
    control.send(running, "remove", "3")
    assert not node_of.exists()
    assert not link.is_symlink()
    assert smi(position.driver_root, "-L") == (0, expected(0, 1, 2, 4, 5, 6, 7))
    control.send(running, "restore", "3")
    assert node_of.exists()
    assert (link / "numa_node").read_text() == "0\n"
    assert smi(position.driver_root, "-L") == (0, expected(*range(8)))


def test_a_fault_that_cannot_happen_ends_with_the_reason(base: Path) -> None:
    done = simulator("fault", "xid", base, "43", "--gpu", "0", "--gi", "7")
    assert (done.returncode, done.stderr) == (1, "error: GPU 0 has no GPU instance 7\n")
