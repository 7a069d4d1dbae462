"""The command line of nvidia-smi: what is asked, changed and refused."""

import pytest

from simulator import codes, machine, profile, state
from simulator.smi import command, selection
from tests.support.smi import a_client

NOW = "Sat Nov 21 15:00:00 2026"


def run(nvml: selection.Nvml, line: str) -> tuple[int, str]:
    answer = command.run(nvml, line.split(), NOW)
    return answer.status, answer.text


def refused(nvml: selection.Nvml, line: str, status: int) -> str:
    count, text = run(nvml, line)
    assert count == status
    return text


def reset(nvml: selection.Nvml) -> tuple[int, str]:
    """The first GPU, which nothing but persistence mode keeps open."""
    run(nvml, "-pm 0 -i 0")
    return run(nvml, "--gpu-reset -i 0")


def timeslices(nvml: selection.Nvml) -> list[int]:
    return [nvml.machine.board(gpu).timeslice for gpu in nvml.machine.gpus]


def test_a_gpu_is_named_by_number_uuid_or_address() -> None:
    nvml = a_client("hgx-h100")
    gpu = nvml.machine.gpus[3]
    for name in ("3", gpu.uuid, gpu.bus_id, gpu.slot.pci):
        line = f"GPU 3: NVIDIA H100 80GB HBM3 (UUID: {gpu.uuid})\n"
        assert run(nvml, f"-i {name} -L") == (0, line)
    assert run(nvml, "--list-gpus --id=0,7")[1].count("\n") == 2
    assert run(nvml, "-L -i 8") == (6, "No devices were found\n")


def test_a_lost_gpu_ends_a_listing_with_words() -> None:
    nvml = a_client("hgx-h100")
    nvml.machine.lose(nvml.machine.gpus[1])
    text = refused(nvml, "-L", codes.Return.GPU_IS_LOST)
    assert text.startswith("GPU 0: ")
    assert "Unable to determine the device handle for GPU1: 00000000:64:00.0: GPU is lost" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--wings", 'Option "--wings" is not recognized'),
        ("-L=3", 'Option "-L" is not recognized'),
        ("-i", 'Option "-i" is missing its value'),
        ("-c 1", '"1" is not a value of compute mode: 0=DEFAULT, 2=PROHIBITED'),
        ("compute-policy", "compute-policy takes -l or --set-timeslice"),
        ("compute-policy --set-timeslice=4", '"4" is not a value of timeslice: 0=DEFAULT'),
        ("--query-gpu=name", "--query-gpu takes --format=csv"),
        ("--query-gpu=wings --format=csv", 'Field "wings" is not a valid field to query'),
        ("-x", "Invalid combination of input arguments."),
    ],
)
def test_invalid_arguments_are_refused_with_a_message(line: str, words: str) -> None:
    assert words in refused(a_client("t4"), line, 2)


def test_help_is_help_and_no_refusal() -> None:
    assert run(a_client("t4"), "-h")[0] == 0
    assert run(a_client("t4"), "--help")[1].startswith("This nvidia-smi is simulated. It knows:")


@pytest.mark.parametrize("value", ["2", "medium", "MEDIUM"])
def test_the_time_slice_is_set_on_the_gpus_named(value: str) -> None:
    nvml = a_client("t4")
    status, text = run(nvml, f"compute-policy -i 1,2 --set-timeslice={value}")
    assert (status, timeslices(nvml)) == (0, [0, 2, 2, 0])
    assert text == (
        "Successfully set timeslice policy with value Medium for GPU 1\n"
        "Successfully set timeslice policy with value Medium for GPU 2\n"
    )
    listed = run(nvml, "-i 2 compute-policy -l")[1]
    assert "|   2   Timeslice       Medium        |\n" in listed
    assert "|   0" not in listed


def test_the_time_slice_is_lost_at_a_reset_and_at_a_reboot() -> None:
    nvml = a_client("t4")
    run(nvml, "compute-policy --set-timeslice 3")
    assert reset(nvml) == (
        0,
        "GPU 00000000:17:00.0 was successfully reset.\nAll done.\n",
    )
    assert timeslices(nvml) == [0, 3, 3, 3]
    nvml.machine.reboot()
    assert timeslices(nvml) == [0, 0, 0, 0]


def test_a_vgpu_guest_has_no_time_slice_and_no_reset() -> None:
    nvml = a_client("vgpu-guest")
    text = refused(nvml, "compute-policy --set-timeslice=1", codes.Return.NOT_SUPPORTED)
    assert text.endswith("Failed to set timeslice for requested devices : Not Supported\n")
    assert "Timeslice       N/A" in run(nvml, "compute-policy -l")[1]
    text = refused(nvml, "--gpu-reset -i 0", codes.Return.NOT_SUPPORTED)
    assert text == "Resetting GPU 00000000:02:00.0 is not supported.\n"


def test_only_root_changes_anything() -> None:
    nvml = a_client("hgx-h100", root=False)
    previous = nvml.machine.changes
    for line in (*("compute-policy --set-timeslice=1", "-c 3 -i 0", "-pm 0", "-mig 1", "-r -i 0"),):
        assert "Insufficient Permissions" in refused(nvml, line, codes.Return.NO_PERMISSION)
    assert nvml.machine.changes == previous
    assert run(nvml, "compute-policy -l")[0] == 0


@pytest.mark.parametrize("value", ["3", "EXCLUSIVE_PROCESS", "exclusive_process"])
def test_the_compute_mode_is_set_once(value: str) -> None:
    nvml = a_client("t4")
    line = f"-c {value} -i 0"
    set_now = "Set compute mode to EXCLUSIVE_PROCESS for GPU 00000000:17:00.0.\nAll done.\n"
    already = (
        "Compute mode is already set to EXCLUSIVE_PROCESS for GPU 00000000:17:00.0.\nAll done.\n"
    )
    assert run(nvml, line) == (0, set_now)
    assert run(nvml, line) == (0, already)
    assert nvml.machine.board(nvml.machine.gpus[0]).compute_mode == 3


def test_persistence_is_set() -> None:
    nvml = a_client("t4")
    assert "Disabled persistence mode for GPU 00000000:17:00.0." in run(nvml, "-pm 0 -i 0")[1]
    assert "Persistence mode is already Disabled" in run(nvml, "-pm DISABLED -i 0")[1]


def test_the_mig_mode_is_set_at_once_or_pending_or_not_there() -> None:
    assert run(a_client("hgx-h100"), "-i 0 -mig 1") == (
        0,
        "Enabled MIG Mode for GPU 00000000:53:00.0\nAll done.\n",
    )
    ampere = a_client("a30")
    status, text = run(ampere, "-i 0 -mig 1")
    assert status == 0
    assert text.startswith("Warning: MIG mode is in pending enable state")
    assert reset(ampere)[0] == 0
    assert ampere.machine.board(ampere.machine.gpus[0]).mig
    assert "Not Supported\nTreating as warning and moving on." in run(a_client("t4"), "-mig 1")[1]


def test_an_ampere_gpu_behind_a_hypervisor_waits_for_the_next_boot() -> None:
    text = profile.text_of("a30") + "virtualization: PASSTHROUGH\n"
    nvml = selection.Nvml(machine.Machine(profile.parse("passed", text), "node-1"))
    nvml.init()
    words = run(nvml, "-i 0 -mig 1")[1]
    assert "is in pending enable state for GPU 00000000:17:00.0:Not Supported\nReboot" in words
    assert "is not supported" in refused(nvml, "-r -i 0", codes.Return.NOT_SUPPORTED)
    nvml.machine.reboot()
    assert nvml.machine.board(nvml.machine.gpus[0]).mig


IN_USE = (
    "The following GPUs could not be reset:\n"
    "  GPU 00000000:53:00.0: In use by another client\n\n"
    "1 device is currently being used by one or more other processes"
)


def test_a_gpu_with_processes_is_not_reset_and_its_mig_mode_is_pending() -> None:
    nvml = a_client("hgx-h100")
    gpu = nvml.machine.gpus[0]
    nvml.machine.board(gpu).processes.append(state.Process(7, 1 << 20))
    status, text = reset(nvml)
    assert (status, text.startswith(IN_USE)) == (255, True)
    assert "is currently being used by one or more other processes" in run(nvml, "-mig 1 -i 0")[1]


def test_a_gpu_that_persistence_mode_keeps_open_is_not_reset() -> None:
    nvml = a_client("hgx-h100")
    assert refused(nvml, "-r -i 0", 255).startswith(IN_USE)
    assert reset(nvml) == (0, "GPU 00000000:53:00.0 was successfully reset.\nAll done.\n")
    assert "Persistence mode is already Disabled" in run(nvml, "-pm 0 -i 0")[1]


def test_a_gpu_that_another_client_has_open_is_not_reset_and_the_others_are() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    nvml = selection.Nvml(built, others=1, held={built.gpus[0].bus_id})
    nvml.init()
    status, text = reset(nvml)
    assert (status, text.startswith(IN_USE)) == (255, True)
    run(nvml, "-pm 0 -i 1")
    assert run(nvml, "-r -i 1")[0] == 0
