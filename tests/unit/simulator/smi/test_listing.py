"""Tests of what nvidia-smi says of every machine: as text, as XML, as columns."""

from xml.etree import ElementTree as ET

import pytest

from simulator import codes, library, profile, state
from simulator.smi import command, selection
from tests.support.smi import a_client

NOW = "Sat Nov 21 15:00:00 2026"
SUMMARY = """\
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:53:00.0 Off |                    0 |
| N/A   31C    P0             71W /  700W |       0MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |
|  0    1   0   0  |              0MiB /  40448MiB    | 60      0 |  3   0    3    0    3 |
|                  |              0MiB /  65535MiB    |           |                       |
|    1   N/A  N/A             4711      C   N/A                                   2048MiB |
"""


def said(nvml: selection.Nvml, line: str) -> str:
    answer = command.run(nvml, line.split(), NOW)
    assert answer.status == 0
    return answer.text


def log(nvml: selection.Nvml) -> ET.Element:
    return ET.fromstring(said(nvml, "-q -x"))  # noqa: S314 - our own program's


@pytest.mark.parametrize("name", profile.names())
def test_the_xml_log_tells_every_gpu_as_nvml_does(name: str) -> None:
    nvml = a_client(name)
    root = log(nvml)
    machine = nvml.machine
    assert root.findtext("driver_version") == machine.driver_version
    assert root.findtext("cuda_version") == machine.profile.driver.cuda
    assert root.findtext("attached_gpus") == str(len(machine.gpus))
    for match, gpu in zip(root.findall("gpu"), machine.gpus, strict=True):
        total = gpu.product.memory_mib.total
        assert match.get("id") == match.findtext("pci/pci_bus_id") == gpu.bus_id
        assert match.findtext("uuid") == gpu.uuid
        assert match.findtext("product_name") == gpu.product.name
        assert match.findtext("minor_number") == str(gpu.slot.minor)
        assert match.findtext("fb_memory_usage/total") == f"{total} MiB"
        assert match.findtext("compute_mode") == "Default"
        module = match.findtext("platformInfo/module_id")
        assert module in {"N/A", str(gpu.slot.module or 1)}
        mig = "Disabled" if gpu.product.mig else "N/A"
        assert match.findtext("mig_mode/current_mig") == mig
        assert (match.findtext("remapped_rows") == "N/A") == (not gpu.remaps_rows)
        fabric = "Completed" if machine.profile.fabric else "N/A"
        assert match.findtext("fabric/state") == fabric


def test_mig_devices_and_processes_are_told_below_their_gpu() -> None:
    nvml = a_client("hgx-h100")
    handle = nvml.device_get_handle_by_index(0)
    nvml.device_set_mig_mode(handle, 1)
    gpu_instance = nvml.device_create_gpu_instance_with_placement(handle, 9, 4, 4)
    nvml.gpu_instance_create_compute_instance(gpu_instance, 2)
    gpu = nvml.machine.gpus[0]
    nvml.machine.board(gpu).processes.append(state.Process(41, 300 << 20, 2, 0))
    element = log(nvml).findall("gpu")[0]
    device = element.find("mig_devices/mig_device")
    assert device is not None
    assert device.findtext("gpu_instance_id") == "2"
    assert device.findtext("device_attributes/shared/multiprocessor_count") == "60"
    assert device.findtext("fb_memory_usage/used") == "300 MiB"
    assert device.findtext("bar1_memory_usage/total") == "65535 MiB"
    assert device.findtext("bar1_memory_usage/used") == "2 MiB"
    process = element.find("processes/process_info")
    assert process is not None
    assert [part.text for part in process] == ["2", "0", "41", "C", "N/A", "300 MiB"]
    assert element.findtext("utilization/gpu_util") == "N/A"


def test_memory_that_is_not_told_is_told_as_such() -> None:
    nvml = a_client("hgx-h100")
    board = nvml.machine.board(nvml.machine.gpus[0])
    board.processes.append(state.Process(41, 300 << 20))
    board.veiled = True
    assert log(nvml).findall("gpu")[0].findtext("processes/process_info/used_memory") == "N/A"
    assert f"{'N/A':<34} {'N/A':>10} |" in said(nvml, "-i 0")


def test_errors_and_repairs_are_told() -> None:
    nvml = a_client("hgx-h100")
    board = nvml.machine.board(nvml.machine.gpus[0])
    board.remap.uncorrected, board.remap.pending = 2, True
    board.ecc.uncorrected = 5
    board.recovery = codes.RecoveryAction.DRAIN_AND_RESET
    element = log(nvml).findall("gpu")[0]
    assert element.findtext("remapped_rows/remapped_row_unc") == "2"
    assert element.findtext("remapped_rows/remapped_row_pending") == "Yes"
    assert element.findtext("ecc_errors/volatile/dram_uncorrectable") == "5"
    assert element.findtext("gpu_recovery_action") == "Drain and Reset"
    assert log(a_client("t4")).findtext("gpu/retired_pages/pending_retirement") == "No"


def test_errors_of_the_sram_are_told_to_root_alone() -> None:
    exceeded = "gpu/ecc_errors/aggregate/sram_threshold_exceeded"
    assert log(a_client("hgx-h100")).findtext(exceeded) == "No"
    assert log(a_client("hgx-h100", root=False)).findtext(exceeded) == "N/A"


def test_the_text_log_has_titles_at_one_column() -> None:
    text = said(a_client("t4"), "-q -i 1")
    assert text.startswith("\n==============NVSMI LOG==============\n\nTimestamp      ")
    assert "Attached GPUs                             : 4\nGPU 00000000:28:00.0\n" in text
    lines = [line for line in text.splitlines() if " : " in line]
    assert {line.index(": ") for line in lines} == {42}
    assert "    FB Memory Usage\n        Total                             : 15360 MiB\n" in text


def test_the_summary_has_the_columns_of_the_real_one() -> None:
    nvml = a_client("hgx-h100")
    handle = nvml.device_get_handle_by_index(0)
    nvml.device_set_mig_mode(handle, 1)
    instance = nvml.device_create_gpu_instance(handle, 9)
    nvml.gpu_instance_create_compute_instance(instance, 2)
    nvml.machine.board(nvml.machine.gpus[1]).processes.append(state.Process(4711, 2 << 30))
    lines = said(nvml, "-i 0,1").splitlines()
    assert lines[0] == NOW
    assert {len(line) for line in lines[1:]} == {0, 91}
    for expected in SUMMARY.splitlines():
        assert expected in lines


def test_a_summary_without_parts_or_processes_says_so() -> None:
    nvml = a_client("hgx-h100")
    nvml.device_set_mig_mode(nvml.device_get_handle_by_index(0), 1)
    text = said(nvml, "-i 0")
    assert "|  No MIG devices found    " in text
    assert "|  No running processes found    " in text
    assert "MIG devices:" not in said(nvml, "-i 1")
    pro = said(a_client("rtx-pro-6000"), "-i 0")
    assert "|   0  NVIDIA RTX PRO 6000 Blac...    On  |" in pro


def test_columns_have_units_and_headers_unless_told_otherwise() -> None:
    nvml = a_client("t4")
    fields = "--query-gpu=index,name,memory.total,power.draw,temperature.gpu,mig.mode.current"
    assert said(nvml, f"{fields} --format=csv -i 0").splitlines() == [
        "index, name, memory.total [MiB], power.draw [W], temperature.gpu, mig.mode.current",
        "0, Tesla T4, 15360 MiB, 9.00 W, 33, [N/A]",
    ]
    bare = said(nvml, f"{fields} --format=csv,noheader,nounits -i 0")
    assert bare == "0, Tesla T4, 15360, 9.00, 33, [N/A]\n"


def test_the_time_slice_of_the_kernel_is_not_in_nvml() -> None:
    assert not hasattr(library.Library, "device_set_timeslice")


# Covers SIM-6.
@pytest.mark.parametrize("name", profile.names())
def test_every_field_that_the_help_lists_is_answered_on_every_machine(name: str) -> None:
    nvml = a_client(name)
    listed = [line.strip('"') for line in said(nvml, "--help-query-gpu").splitlines()[2:]]
    rows = said(nvml, f"--query-gpu={','.join(listed)} --format=csv").splitlines()
    assert len(rows) == 1 + len(nvml.gpus)
    assert {row.count(", ") for row in rows} == {len(listed) - 1}


def test_gputils_question_is_answered_without_units() -> None:
    question = (
        "index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,"
        "gpu_serial,display_active,display_mode,temperature.gpu"
    )
    nvml = a_client("t4")
    row = said(nvml, f"--query-gpu={question} --format=csv,noheader,nounits").splitlines()[0]
    cells = row.split(", ")
    assert (cells[0], cells[1]) == ("0", nvml.gpus[0].uuid)
    assert cells[9:11] == ["Disabled", "Disabled"]
    assert all(cell.isdigit() for cell in (*cells[2:6], cells[11]))


def test_compute_apps_are_listed_by_process() -> None:
    nvml = a_client("l4")
    board = nvml.machine.board(nvml.gpus[0])
    board.processes.append(state.Process(4711, 2048 << 20))
    question = "--query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader"
    assert said(nvml, question) == f"4711, {nvml.gpus[0].uuid}, 2048 MiB\n"


def test_the_version_names_driver_and_cuda() -> None:
    lines = said(a_client("hgx-h100"), "--version").splitlines()
    assert lines[2:] == ["DRIVER version      : 580.105.08", "CUDA Version        : 13.0"]
