import dataclasses
import json
import shutil

import pytest

from driver import errors, ids, reasons
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from tests.fakes import gpunode
from tests.fakes.migclaims import prepared, refused
from tests.support.builders import allocated_claims

CONFIG = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "GpuConfig"}


def test_a_whole_gpu_is_prepared_and_named_by_claim_and_device(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    assert prepared(node, ref).devices == (
        ports.PreparedDevice(
            "gpu",
            "node-1",
            "gpu-0000-53-00-0",
            (f"gpu.ration.dev/claim={allocated_claims.UID}-gpu-0000-53-00-0",),
        ),
    )
    spec = json.loads(node.spec_path().read_bytes())
    (device,) = spec["devices"]
    assert device["name"] == f"{allocated_claims.UID}-gpu-0000-53-00-0"
    (gpu,) = device["containerEdits"]["deviceNodes"]
    assert (gpu["path"], gpu["major"], gpu["minor"]) == ("/dev/nvidia0", 195, 0)
    assert gpu["hostPath"] == str(node.root / "dev/nvidia0")


def test_a_subrequest_is_answered_under_its_requests_own_name(node: gpunode.GpuNode) -> None:
    ref = node.allocate(
        allocated_claims.an_allocated_claim(allocated_claims.a_result(request="gpu/big"))
    )
    assert prepared(node, ref).devices[0].request == "gpu"


def test_the_same_claim_gets_the_same_answer_without_the_api_and_without_writes(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    first = prepared(node, ref)
    previous = {
        path: path.stat().st_mtime_ns for path in (node.spec_path(), *node.records.iterdir())
    }
    node.reader.down = True
    assert prepared(node, ref) == first
    assert {path: path.stat().st_mtime_ns for path in previous} == previous


def test_a_spec_that_went_missing_is_written_again(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    prepared(node, ref)
    spec = node.spec_path().read_bytes()
    node.spec_path().unlink()
    node.cdi.rmdir()
    prepared(node, ref)
    assert node.spec_path().read_bytes() == spec


def test_unprepare_leaves_nothing_and_needs_no_api(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    prepared(node, ref)
    node.reader.down = True
    node.nvml.absent = True
    for _ in range(2):
        assert node.process().preparer.unprepare(ref) is None
        assert node.files() == {}


def test_unprepare_of_an_unknown_claim_succeeds(node: gpunode.GpuNode) -> None:
    assert node.process().preparer.unprepare(allocated_claims.a_ref()) is None


def test_a_claim_with_another_uid_is_replaced(node: gpunode.GpuNode) -> None:
    node.allocate(allocated_claims.an_allocated_claim(uid=allocated_claims.OTHER_UID))
    answer = refused(node, allocated_claims.a_ref())
    assert answer.reason is reasons.Reason.CLAIM_REPLACED
    assert allocated_claims.OTHER_UID in answer.message
    assert node.files() == {}


def test_a_claim_without_an_allocation_is_refused(node: gpunode.GpuNode) -> None:
    claim = dataclasses.replace(allocated_claims.an_allocated_claim(), allocation=None)
    assert refused(node, node.allocate(claim)).reason is reasons.Reason.CLAIM_NOT_ALLOCATED


def test_results_of_other_drivers_and_pools_are_not_ours(node: gpunode.GpuNode) -> None:
    foreign = allocated_claims.a_result("nic-0", driver="nic.example.com")
    elsewhere = allocated_claims.a_result(pool="node-2")
    ref = node.allocate(allocated_claims.an_allocated_claim(foreign, elsewhere))
    assert refused(node, ref).reason is reasons.Reason.CLAIM_NOT_ALLOCATED
    ref = node.allocate(
        allocated_claims.an_allocated_claim(foreign, allocated_claims.a_result(), elsewhere)
    )
    assert [device.device for device in prepared(node, ref).devices] == ["gpu-0000-53-00-0"]


def test_a_device_that_is_not_here_is_named_after_looking_again(node: gpunode.GpuNode) -> None:
    ref = node.allocate(
        allocated_claims.an_allocated_claim(allocated_claims.a_result("gpu-0000-99-00-0"))
    )
    answer = refused(node, ref)
    assert answer.reason is reasons.Reason.DEVICE_UNKNOWN
    assert "gpu-0000-99-00-0" in answer.message
    assert node.nvml.readings == 2


def test_a_gpu_that_appears_later_is_found(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    gpu = node.nvml.machine.gpus[0]
    node.nvml.machine.lose(gpu)
    process = node.process()
    node.nvml.machine.restore(gpu)
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)


def test_without_the_driver_library_a_claim_waits(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    node.nvml.absent = True
    assert refused(node, ref).reason is reasons.Reason.DRIVER_NOT_READY


def test_a_prepared_claim_waits_after_a_boot_until_the_driver_is_loaded(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    first = prepared(node, ref)
    shutil.rmtree(node.cdi)  # /var/run is empty after a boot
    node.nvml.absent = True
    process = node.process()
    with pytest.raises(errors.DeviceFault):
        process.gpus.refresh()
    answer = process.preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reasons.Reason.DRIVER_NOT_READY
    assert "Driver Not Loaded" in answer.message
    node.nvml.absent = False
    assert process.preparer.prepare(ref, gpunode.never) == first


def test_without_libcuda_a_claim_waits_and_nothing_stays(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    library = node.root / gpunode.LIBRARIES / "libcuda.so.1"
    library.unlink()
    answer = refused(node, ref)
    assert answer.reason is reasons.Reason.DRIVER_NOT_READY
    assert "libcuda.so.1" in answer.message
    assert node.files() == {}
    library.symlink_to(f"libcuda.so.{gpunode.VERSION}")
    assert len(prepared(node, ref).devices) == 1


def test_an_unknown_config_field_is_refused_for_good(node: gpunode.GpuNode) -> None:
    claim = allocated_claims.an_allocated_claim(configs=[CONFIG, {**CONFIG, "wings": 2}])
    answer = refused(node, node.allocate(claim))
    assert (answer.reason, answer.permanent) == (reasons.Reason.CONFIG_INVALID, True)
    assert "config[1].opaque.parameters.wings" in answer.message


def test_an_empty_gpu_config_is_a_whole_gpu(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim(configs=[CONFIG]))
    assert len(prepared(node, ref).devices) == 1


def test_a_gpu_is_refused_while_another_claim_holds_it(node: gpunode.GpuNode) -> None:
    first = node.allocate(allocated_claims.an_allocated_claim())
    second = node.allocate(
        allocated_claims.an_allocated_claim(uid=allocated_claims.OTHER_UID, name="two")
    )
    prepared(node, first)
    answer = refused(node, second)
    assert (answer.reason, answer.permanent) == (reasons.Reason.DEVICE_OVERLAP, False)
    assert f"default/one ({allocated_claims.UID})" in answer.message
    assert node.process().preparer.unprepare(first) is None
    prepared(node, second)


def test_a_half_prepared_claim_holds_its_gpu_too(node: gpunode.GpuNode) -> None:
    first = node.allocate(allocated_claims.an_allocated_claim())
    second = node.allocate(
        allocated_claims.an_allocated_claim(uid=allocated_claims.OTHER_UID, name="two")
    )
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(1)).preparer.prepare(first, gpunode.never)
    assert refused(node, second).reason is reasons.Reason.DEVICE_OVERLAP


def test_a_gpu_given_twice_within_one_claim_is_refused(node: gpunode.GpuNode) -> None:
    claim = allocated_claims.an_allocated_claim(
        allocated_claims.a_result(), allocated_claims.a_result(request="more")
    )
    assert refused(node, node.allocate(claim)).reason is reasons.Reason.DEVICE_OVERLAP


def test_admin_access_shares_a_gpu_that_is_held(node: gpunode.GpuNode) -> None:
    held = node.allocate(allocated_claims.an_allocated_claim())
    watching = allocated_claims.an_allocated_claim(
        allocated_claims.a_result(admin_access=True), uid=allocated_claims.OTHER_UID, name="monitor"
    )
    admin = node.allocate(watching)
    prepared(node, admin)
    prepared(node, held)
    assert node.spec_path(allocated_claims.OTHER_UID).exists()


def test_all_eight_gpus_are_one_spec_with_eight_devices(node: gpunode.GpuNode) -> None:
    names = [faces.device_name(gpu.pci) for gpu in node.nvml.inventory().gpus]
    ref = node.allocate(allocated_claims.an_allocated_claim(*map(allocated_claims.a_result, names)))
    answer = prepared(node, ref)
    spec = json.loads(node.spec_path().read_bytes())
    cdi_ids = {f"{spec['kind']}={device['name']}" for device in spec["devices"]}
    assert cdi_ids == {cdi for device in answer.devices for cdi in device.cdi_ids}
    assert len(cdi_ids) == 8


@pytest.mark.parametrize("calls", range(3))
def test_nothing_is_prepared_for_a_cancelled_call(node: gpunode.GpuNode, calls: int) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    answers = iter([False] * calls + [True] * 9)
    answer = node.process().preparer.prepare(ref, lambda: next(answers))
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reasons.Reason.PREPARE_FAILED
    assert node.files() == {}


def test_an_api_failure_is_raised_and_keeps_nothing(node: gpunode.GpuNode) -> None:
    node.reader.down = True
    with pytest.raises(errors.Unreachable):
        node.process().preparer.prepare(allocated_claims.a_ref(), gpunode.never)
    assert node.files() == {}


@pytest.mark.parametrize("uid", ["../x", "", "a/b", "a" * 64, "-a"])
def test_a_uid_that_is_no_file_name_is_bad_input(node: gpunode.GpuNode, uid: str) -> None:
    ref = allocated_claims.a_ref(uid=ids.ClaimUid(uid))
    with pytest.raises(errors.BadInput, match="claim UID"):
        node.process().preparer.prepare(ref, gpunode.never)
    with pytest.raises(errors.BadInput, match="claim UID"):
        node.process().preparer.unprepare(ref)


def test_a_damaged_record_is_moved_aside_and_the_claim_prepared_anew(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    first = prepared(node, ref)
    (record,) = node.records.iterdir()
    record.write_bytes(record.read_bytes()[:-9])
    assert prepared(node, ref) == first
    aside = f"{allocated_claims.UID}.json.damaged-1"
    assert aside in {path.name for path in node.records.iterdir()}


def test_unprepare_with_a_damaged_record_still_removes_the_spec(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    prepared(node, ref)
    (record,) = node.records.iterdir()
    record.write_bytes(b"\x00" * 40)
    assert node.process().preparer.unprepare(ref) is None
    assert not node.spec_path().exists()


def test_a_cdi_folder_that_cannot_be_made_fails_the_claim_until_it_can(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    node.cdi.write_text("a file where the folder should be")
    with pytest.raises(errors.NodeFault, match="cdi"):
        node.process().preparer.prepare(ref, gpunode.never)
    assert list(node.records.iterdir()) == []
    node.cdi.unlink()
    assert len(prepared(node, ref).devices) == 1


def test_a_monitor_is_the_gpu_for_administrators_beside_its_holder(node: gpunode.GpuNode) -> None:
    held = node.allocate(allocated_claims.an_allocated_claim())
    prepared(node, held)
    monitor = allocated_claims.an_allocated_claim(
        allocated_claims.a_result("gpu-0000-53-00-0-monitor", admin_access=True),
        uid=allocated_claims.OTHER_UID,
        name="monitor",
    )
    prepared(node, node.allocate(monitor))
    assert node.spec_path(allocated_claims.OTHER_UID).exists()


def test_a_monitor_without_admin_access_is_refused(node: gpunode.GpuNode) -> None:
    result = allocated_claims.a_result("gpu-0000-53-00-0-monitor")
    answer = refused(node, node.allocate(allocated_claims.an_allocated_claim(result)))
    assert (answer.reason, answer.permanent) == (reasons.Reason.ADMIN_ACCESS_REQUIRED, True)


def damaged(node: gpunode.GpuNode, uid: ids.ClaimUid = allocated_claims.UID) -> None:
    (node.records / f"{uid}.json").write_bytes(b"{")


def another(*results: claims.Result) -> claims.Claim:
    return allocated_claims.an_allocated_claim(*results, uid=allocated_claims.OTHER_UID, name="two")


def test_a_gpu_of_a_claim_whose_record_is_damaged_is_given_to_no_other(
    node: gpunode.GpuNode,
) -> None:
    first = node.allocate(allocated_claims.an_allocated_claim())
    prepared(node, first)
    damaged(node)
    answer = refused(node, node.allocate(another()))
    assert answer.reason is reasons.Reason.DEVICE_OVERLAP
    assert allocated_claims.UID in answer.message
    part = another(allocated_claims.a_result("gpu-0000-53-00-0-mig-1g10gb-0"))
    assert refused(node, node.allocate(part)).reason is reasons.Reason.DEVICE_OVERLAP
    prepared(node, node.allocate(another(allocated_claims.a_result("gpu-0000-64-00-0"))))


@pytest.mark.parametrize("how", ["prepared again", "unprepared"])
def test_a_damaged_record_counts_until_the_kubelet_comes_back_to_its_claim(
    node: gpunode.GpuNode, how: str
) -> None:
    first = node.allocate(allocated_claims.an_allocated_claim())
    prepared(node, first)
    damaged(node)
    second = node.allocate(another())
    refused(node, second)
    if how == "prepared again":
        prepared(node, first)
        assert refused(node, second).holders == (first,)
    node.process().preparer.unprepare(first)
    prepared(node, second)


def test_an_administrator_may_look_at_the_gpu_of_a_damaged_record(node: gpunode.GpuNode) -> None:
    prepared(node, node.allocate(allocated_claims.an_allocated_claim()))
    damaged(node)
    prepared(node, node.allocate(another(allocated_claims.a_result(admin_access=True))))


def test_a_torn_spec_beside_a_damaged_record_names_no_gpu(node: gpunode.GpuNode) -> None:
    prepared(node, node.allocate(allocated_claims.an_allocated_claim()))
    damaged(node)
    node.spec_path().write_bytes(b'{"devices"')
    prepared(node, node.allocate(another()))


def test_a_claim_on_a_hanging_gpu_is_refused_at_once_and_can_be_retried(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    process = node.process()
    sick = process.gpus.current().gpus[0].uuid
    readings = node.nvml.readings
    node.nvml.hangs[sick] = errors.Hung(sick, "nvmlDeviceGetMemoryInfo", 8.0)
    answer = process.preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Refused)
    assert (answer.reason, answer.permanent) == (reasons.Reason.GPU_UNREADABLE, False)
    assert "nvmlDeviceGetMemoryInfo hangs: it has not returned for 8 s" in answer.message
    assert process.preparer.check(ref) == answer
    assert node.nvml.readings == readings, "nothing is read for it"
    assert process.preparer.unprepare(ref) is None
    node.nvml.hangs.clear()
    again = node.allocate(allocated_claims.an_allocated_claim(uid=ids.ClaimUid("uid-2")))
    assert isinstance(process.preparer.prepare(again, gpunode.never), ports.Prepared)


def test_a_prepared_claim_on_a_hanging_gpu_is_answered_and_unprepared(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    process = node.process()
    first = process.preparer.prepare(ref, gpunode.never)
    sick = process.gpus.current().gpus[0].uuid
    node.nvml.hangs[sick] = errors.Hung(sick, "nvmlDeviceGetMemoryInfo", 8.0)
    assert process.preparer.prepare(ref, gpunode.never) == first
    assert process.preparer.unprepare(ref) is None
    assert not node.files()
