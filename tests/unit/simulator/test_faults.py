from collections.abc import Callable

import pytest

from simulator import codes, faults, library, machine, profile, sessions, state
from tests.support.nvml_codes import code_of

WHOLE = codes.WHOLE_GPU


def a_client(source: machine.Machine | None = None) -> library.Library:
    nvml = library.Library(source or machine.build("hgx-h100", seed="node-1"))
    nvml.init()
    return nvml


def test_starts_of_mps_and_of_cuda_programs_can_be_slow() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    faults.slow(built, "mps_server", 2000)
    assert built.state.slow == {"mps_server": 2000}
    assert set(faults.PROCESS_CALLS) <= sessions.CALLS


def test_memory_errors_are_counted_until_a_reset_and_for_ever() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(2)
    faults.ecc(source, source.gpus[2], 5, 1)
    total = nvml.device_get_total_ecc_errors
    assert [total(gpu, error, 0) for error in (0, 1)] == [5, 1]
    assert nvml.device_get_memory_error_counter(gpu, 0, 0, 2) == 5
    source.reboot()
    assert [total(gpu, error, 0) for error in (0, 1)] == [0, 0]
    assert [total(gpu, error, 1) for error in (0, 1)] == [5, 1]
    assert code_of(total, gpu, 7, 0) is codes.Return.INVALID_ARGUMENT


def test_a_row_to_remap_is_pending_until_a_reset() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    faults.remap(source, source.gpus[0], uncorrected=True, failed=False)
    rows = nvml.device_get_remapped_rows(gpu)
    assert (rows.corrected, rows.uncorrected, rows.pending, rows.failed) == (0, 1, True, False)
    assert nvml.device_get_row_remapper_histogram(gpu).max == 2559
    source.restore(source.gpus[0])
    rows = nvml.device_get_remapped_rows(gpu)
    assert (rows.uncorrected, rows.pending) == (1, False)
    assert code_of(nvml.device_get_retired_pages_pending_status, gpu) is codes.Return.NOT_SUPPORTED


def test_a_failed_remapping_stays() -> None:
    nvml = a_client()
    source = nvml.machine
    faults.remap(source, source.gpus[0], uncorrected=False, failed=True)
    source.reboot()
    assert nvml.device_get_remapped_rows(nvml.device_get_handle_by_index(0)).failed


def test_the_recovery_action_is_told_by_xid_154_and_read_from_field_230() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    waiting = nvml.event_set_create()
    nvml.device_register_events(gpu, 0x8008, waiting)
    faults.recovery(source, source.gpus[0], "DRAIN_AND_RESET")
    assert nvml.device_get_field_values(gpu, [230], [0])[0].value == 4
    seen = [nvml.event_set_wait(waiting, 0) for _ in range(2)]
    assert [(data.event_type, data.event_data) for data in seen] == [(8, 154), (0x8000, 4)]
    source.restore(source.gpus[0])
    assert nvml.device_get_field_values(gpu, [230], [0])[0].value == 0


def test_refusals_are_counted_down() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    faults.refuse(source, source.gpus[0], codes.Return.IN_USE, 1)
    assert nvml.device_set_mig_mode(gpu, 1) == codes.Return.IN_USE
    assert nvml.device_set_mig_mode(gpu, 1) == codes.Return.SUCCESS
    faults.refuse(source, source.gpus[0], codes.Return.INSUFFICIENT_RESOURCES, 2)
    for _ in range(2):
        refused = code_of(nvml.device_create_gpu_instance, gpu, 19)
        assert refused is codes.Return.INSUFFICIENT_RESOURCES
    instance = nvml.device_create_gpu_instance(gpu, 19)
    faults.refuse(source, source.gpus[0], codes.Return.IN_USE, 1)
    assert code_of(nvml.gpu_instance_destroy, instance) is codes.Return.IN_USE
    nvml.gpu_instance_destroy(instance)


def test_after_a_driver_upgrade_new_clients_mismatch_until_the_reboot() -> None:
    nvml = a_client()
    source = nvml.machine
    faults.upgrade(source, "590.48.01")
    assert code_of(library.Library(source).init) is codes.Return.LIB_RM_VERSION_MISMATCH
    assert nvml.system_get_driver_version() == "580.105.08"
    source.reboot()
    later = a_client(source)
    assert later.system_get_driver_version() == "590.48.01"
    assert later.system_get_nvml_version() == "13.590.48.01"


def test_an_older_driver_does_not_have_the_recovery_field() -> None:
    text = profile.text_of("hgx-h100").replace("580.105.08", "550.90.07")
    nvml = a_client(machine.Machine(profile.parse("old", text), "node-1"))
    gpu = nvml.device_get_handle_by_index(0)
    answer = nvml.device_get_field_values(gpu, [230], [0])[0]
    assert answer.code == codes.Return.NOT_SUPPORTED


def test_processes_use_memory_and_end_with_a_reset() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    faults.process(source, source.gpus[0], state.Process(41, 3 << 30))
    faults.process(source, source.gpus[0], state.Process(42, 1 << 30))
    faults.process(source, source.gpus[0], state.Process(41, 2 << 30))
    processes = nvml.device_get_compute_running_processes(gpu)
    assert [(p.pid, p.used_gpu_memory) for p in processes] == [(41, 2 << 30), (42, 1 << 30)]
    assert nvml.device_get_memory_info(gpu).used == 3 << 30
    source.restore(source.gpus[0])
    assert nvml.device_get_compute_running_processes(gpu) == []


def test_a_veiled_gpu_does_not_tell_what_a_process_uses() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    faults.process(source, source.gpus[0], state.Process(41, 3 << 30))
    faults.veil(source, source.gpus[0], on=True)
    (process,) = nvml.device_get_compute_running_processes(gpu)
    assert (process.pid, process.used_gpu_memory) == (41, codes.NOT_AVAILABLE)
    assert nvml.device_get_memory_info(gpu).used == 3 << 30
    faults.veil(source, source.gpus[0], on=False)
    assert nvml.device_get_compute_running_processes(gpu)[0].used_gpu_memory == 3 << 30


def test_a_process_at_work_keeps_its_gpu_busy_until_it_ends() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    for pid in (41, 42):
        faults.process(source, source.gpus[0], state.Process(pid, 1 << 30))
        faults.work(source, source.gpus[0], pid, 70)
    process_samples = nvml.device_get_process_utilization(gpu, 0)
    assert [(process_sample.pid, process_sample.sm_util) for process_sample in process_samples] == [
        (41, 70),
        (42, 70),
    ]
    assert nvml.device_get_utilization_rates(gpu).gpu == 100
    faults.process(source, source.gpus[0], state.Process(41, 0))
    faults.work(source, source.gpus[0], 42, 0)
    with pytest.raises(codes.NvmlError) as refused:
        nvml.device_get_process_utilization(gpu, 0)
    assert refused.value.code == codes.Return.NOT_FOUND
    assert nvml.device_get_utilization_rates(gpu).gpu == 0


@pytest.mark.parametrize(
    ("pid", "percent", "words"), [(41, 101, "0 to 100"), (41, -1, "0 to 100"), (7, 5, "process 7")]
)
def test_only_a_process_that_runs_works_and_at_most_all_the_time(
    pid: int, percent: int, words: str
) -> None:
    source = a_client().machine
    faults.process(source, source.gpus[0], state.Process(41, 1 << 30))
    with pytest.raises(faults.BadFaultError, match=words):
        faults.work(source, source.gpus[0], pid, percent)


def test_a_process_on_a_mig_device_is_that_devices() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    nvml.device_set_mig_mode(gpu, 1)
    devices = []
    for start in (0, 1):
        handle = nvml.device_create_gpu_instance_with_placement(gpu, 19, start, 1)
        compute = nvml.gpu_instance_create_compute_instance(handle, 0)
        devices.append(nvml.compute_instance_get_info(compute).device)
    faults.process(source, source.gpus[0], state.Process(41, 1 << 30, 8, 0))
    processes = nvml.device_get_compute_running_processes
    assert [len(processes(handle)) for handle in (gpu, *devices)] == [1, 0, 1]
    assert nvml.device_get_memory_info(devices[1]).used == 1 << 30
    assert nvml.device_get_memory_info(devices[0]).used == 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda m: faults.xid(m, m.gpus[0], 0, WHOLE, WHOLE), "Xid 0: expected 1 to 999"),
        (lambda m: faults.xid(m, m.gpus[0], 43, 7, 0), "GPU 0 has no GPU instance 7"),
        (lambda m: faults.xid(m, m.gpus[0], 43, WHOLE, 0), "together with its GPU instance"),
        (lambda m: faults.ecc(m, m.gpus[0], 0, 0), "a positive number of errors"),
        (lambda m: faults.recovery(m, m.gpus[0], "PRAY"), "recovery action 'PRAY'"),
        (lambda m: faults.refuse(m, m.gpus[0], codes.Return.IN_USE, -1), "-1 times"),
        (lambda m: faults.refuse(m, m.gpus[0], 4, 1), "code 4: expected 19"),
        (lambda m: faults.slow(m, "*", -1), "-1 ms"),
        (lambda m: faults.slow(m, "device_get_wings", 1), "no call 'device_get_wings'"),
        (lambda m: faults.upgrade(m, "new"), "driver version 'new'"),
        (lambda m: faults.upgrade(m, "470.57.02"), "does not know this machine: it takes 515"),
        (lambda m: faults.process(m, m.gpus[0], state.Process(1, 1 << 40)), "does not have"),
        (lambda m: faults.process(m, m.gpus[0], state.Process(1, 1, 7, 0)), "when MIG is on"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused_in_words(
    fault: Callable[[machine.Machine], None], words: str
) -> None:
    built = machine.build("hgx-h100", seed="node-1")
    with pytest.raises(faults.BadFaultError, match=words):
        fault(built)


def test_every_state_survives_being_written_down() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    nvml.device_set_mig_mode(gpu, 1)
    nvml.gpu_instance_create_compute_instance(nvml.device_create_gpu_instance(gpu, 9), 0)
    faults.process(source, source.gpus[0], state.Process(41, 1 << 30, 1, 0))
    faults.slow(source, "device_get_count", 5)
    text = machine.STATE_FORMAT.dump_json(source.state)
    assert machine.STATE_FORMAT.validate_json(text, extra="forbid") == source.state


def test_errors_of_the_sram_are_counted_and_too_many_of_them_stay_known() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    faults.sram(source, source.gpus[0], state.Errors(3, 2), exceeded=True)
    status = nvml.device_get_sram_ecc_error_status(gpu)
    assert (status.volatile_cor, status.volatile_unc_sec_ded) == (3, 2)
    assert (status.aggregate_unc_bucket_l2, status.threshold_exceeded) == (2, True)
    source.restore(source.gpus[0])
    status = nvml.device_get_sram_ecc_error_status(gpu)
    assert (status.volatile_cor, status.aggregate_cor, status.threshold_exceeded) == (0, 3, True)
    user = library.Library(source, root=False)
    user.init()
    refused = code_of(user.device_get_sram_ecc_error_status, gpu)
    assert refused is codes.Return.NO_PERMISSION


def test_repairs_are_done_at_a_reset_and_some_memory_is_beyond_repair() -> None:
    text = profile.text_of("hgx-h100").replace("580.105.08", "590.48.01")
    nvml = a_client(machine.Machine(profile.parse("new", text), "node-1"))
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    for part in ("channel", "tpc", "memory"):
        faults.repair(source, source.gpus[0], part)
    assert nvml.device_get_repair_status(gpu) == (True, True)
    assert nvml.device_get_unrepairable_memory_flag(gpu)
    source.restore(source.gpus[0])
    assert nvml.device_get_repair_status(gpu) == (False, False)
    assert nvml.device_get_unrepairable_memory_flag(gpu)
    with pytest.raises(faults.BadFaultError, match="expected channel, tpc or memory"):
        faults.repair(source, source.gpus[0], "fan")


def test_turing_retires_pages_and_nothing_newer_does() -> None:
    nvml = a_client(machine.build("t4", seed="node-1"))
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    for double_bit in (False, True, True):
        faults.retire(source, source.gpus[0], double_bit=double_bit)
    assert [len(nvml.device_get_retired_pages(gpu, cause)) for cause in (0, 1)] == [1, 2]
    assert nvml.device_get_retired_pages_pending_status(gpu)
    source.reboot()
    assert not nvml.device_get_retired_pages_pending_status(gpu)
    assert len(nvml.device_get_retired_pages(gpu, 1)) == 2
    assert code_of(nvml.device_get_retired_pages, gpu, 2) is codes.Return.INVALID_ARGUMENT
    hopper = a_client()
    handle = hopper.device_get_handle_by_index(0)
    assert code_of(hopper.device_get_retired_pages, handle, 0) is codes.Return.NOT_SUPPORTED
    with pytest.raises(faults.BadFaultError, match="HOPPER retires no pages"):
        faults.retire(hopper.machine, hopper.machine.gpus[0], double_bit=False)
    with pytest.raises(faults.BadFaultError, match="does not count errors of its SRAM"):
        faults.sram(source, source.gpus[0], state.Errors(1, 0), exceeded=False)
    with pytest.raises(faults.BadFaultError, match="TURING does not tell repairs of tpc"):
        faults.repair(source, source.gpus[0], "tpc")


def test_a_gpu_that_moves_gets_another_minor_with_its_mig_mode_until_a_reboot() -> None:
    nvml = a_client()
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(2)
    faults.moves(source, source.gpus[2])
    assert nvml.device_get_minor_number(gpu) == 2
    nvml.device_set_mig_mode(gpu, 1)
    assert nvml.device_get_minor_number(gpu) == 8
    nvml.device_set_mig_mode(gpu, 0)
    assert nvml.device_get_minor_number(gpu) == 8
    assert source.find("8") is source.gpus[2]
    source.reboot()
    assert nvml.device_get_minor_number(gpu) == 2


def test_an_ampere_gpu_moves_at_the_reset_that_makes_its_mode_current() -> None:
    nvml = a_client(machine.build("dgx-a100", seed="node-1"))
    source, gpu = nvml.machine, nvml.device_get_handle_by_index(0)
    faults.moves(source, source.gpus[0])
    source.restore(source.gpus[0])
    nvml.device_set_mig_mode(gpu, 1)
    assert nvml.device_get_minor_number(gpu) == 0
    source.restore(source.gpus[0])
    assert nvml.device_get_minor_number(gpu) == 8


def test_only_a_shy_gpu_minds_other_clients() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    nvml = library.Library(built, others=1)
    nvml.init()
    gpu = nvml.device_get_handle_by_index(0)
    assert nvml.device_set_mig_mode(gpu, 1) == codes.Return.SUCCESS
    faults.shy(built, built.gpus[0], on=True)
    assert nvml.device_set_mig_mode(gpu, 0) == codes.Return.IN_USE
    alone = a_client(built)
    assert alone.device_set_mig_mode(gpu, 0) == codes.Return.SUCCESS
    faults.shy(built, built.gpus[0], on=False)
    assert nvml.device_set_mig_mode(gpu, 1) == codes.Return.SUCCESS


def test_a_moved_gpu_is_seen_until_another_has_its_old_minor() -> None:
    built = machine.build("hgx-h100", seed="node-1")
    nvml = library.Library(built, visible={0})
    nvml.init()

    def moves(index: int) -> list[str]:
        faults.moves(built, built.gpus[index])
        a_client(built).device_set_mig_mode(a_client(built).device_get_handle_by_index(index), 1)
        return [gpu.uuid for gpu in nvml.gpus]

    assert moves(0) == [built.gpus[0].uuid]
    assert moves(1) == [built.gpus[1].uuid]
    assert [built.minor(gpu) for gpu in built.gpus[:3]] == [8, 0, 2]
