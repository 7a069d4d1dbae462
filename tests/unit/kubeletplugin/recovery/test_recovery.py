import json
import shutil

import pytest

from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint
from simulator import machine, profile
from tests.fakes import gpunode, nvml
from tests.support.builders import allocated_claims
from tests.support.node import shares


def prepare(node: gpunode.GpuNode) -> ports.ClaimRef:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    assert isinstance(node.process().preparer.prepare(ref, gpunode.never), ports.Prepared)
    return ref


def test_devices_that_match_their_record_are_kept(node: gpunode.GpuNode) -> None:
    prepare(node)
    previous = node.files()
    report = node.process().recover()
    assert (report.unchanged, report.is_complete, node.files()) == (
        [allocated_claims.UID],
        True,
        previous,
    )


def test_specs_that_were_wiped_are_back_without_the_api(node: gpunode.GpuNode) -> None:
    prepare(node)
    previous = node.files()
    node.spec_path().unlink()
    node.reader.down = True
    assert node.process().recover().restored == [allocated_claims.UID]
    assert node.files() == previous


def put_back(node: gpunode.GpuNode) -> tuple[str, ...]:
    """Return what the minute's look does."""
    process = node.process()
    return process.recoverer().restore_specs()


def test_a_spec_that_somebody_removed_is_put_back_and_the_others_are_left_alone(
    node: gpunode.GpuNode,
) -> None:
    prepare(node)
    previous = node.files()
    node.spec_path().unlink()
    node.reader.down = True
    assert put_back(node) == ()
    assert node.files() == previous
    written = node.spec_path().stat().st_mtime_ns
    assert put_back(node) == ()
    assert node.spec_path().stat().st_mtime_ns == written


def test_a_spec_that_cannot_be_put_back_is_named_and_tried_again(node: gpunode.GpuNode) -> None:
    prepare(node)
    previous = node.files()
    shutil.rmtree(node.cdi)
    node.cdi.write_text("a file where the folder should be")
    (problem,) = put_back(node)
    assert problem.startswith(f"CDI spec of claim {allocated_claims.UID}: write ")
    node.cdi.unlink()
    assert put_back(node) == ()
    assert node.files() == previous


def test_a_spec_is_rewritten_only_when_driver_or_toolkit_were_replaced(
    node: gpunode.GpuNode,
) -> None:
    hook = node.host / "usr/bin/nvidia-cdi-hook"
    gpunode.write(hook, "")
    prepare(node)
    hooked = node.spec_path().read_bytes()
    process = node.process()

    def look() -> tuple[bytes, int]:
        assert process.recoverer().restore_specs() == ()
        return node.spec_path().read_bytes(), node.spec_path().stat().st_mtime_ns

    previous = look()
    assert previous[0] == hooked
    assert look() == previous
    hook.unlink()  # as when the toolkit goes elsewhere: no container could start with this spec
    after = look()
    assert b"nvidia-cdi-hook" not in after[0]
    assert look() == after
    gpunode.write(hook, "")
    assert look()[0] == hooked


def test_while_a_driver_is_replaced_specs_stay_as_they_are(node: gpunode.GpuNode) -> None:
    prepare(node)
    previous = node.spec_path().read_bytes()
    away = node.root.rename(node.root.with_name("away"))
    (problem,) = put_back(node)
    assert problem.startswith(f"CDI spec of claim {allocated_claims.UID}: ")
    assert node.spec_path().read_bytes() == previous
    away.rename(node.root)
    assert put_back(node) == ()
    assert node.spec_path().read_bytes() == previous


def test_partial_records_and_those_of_another_boot_are_not_restored(node: gpunode.GpuNode) -> None:
    ref = prepare(node)
    records = node.process().records
    record = records.read(ref.uid)
    assert record is not None
    node.spec_path().unlink()
    records.write_begun(record)
    assert put_back(node) == ()
    records.rewrite(record)
    node.boot = "boot-2"
    assert put_back(node) == ()
    assert not node.spec_path().exists()
    node.boot = "boot-1"
    assert put_back(node) == ()
    assert node.spec_path().exists()


def test_after_a_reboot_minors_are_looked_up_anew(node: gpunode.GpuNode) -> None:
    prepare(node)
    old = node.nvml.machine
    turned = [
        gpu.model_copy(update={"minor": 7 - gpu.minor}) for gpu in profile.load("hgx-h100").gpus
    ]
    node.nvml = nvml.FakeNvml(
        machine.Machine(old.profile.model_copy(update={"gpus": turned}), old.seed)
    )
    node.boot = "boot-2"
    assert node.process().recover().restored == [allocated_claims.UID]
    (device,) = json.loads(node.spec_path().read_bytes())["devices"]
    assert device["containerEdits"]["deviceNodes"][0]["path"] == "/dev/nvidia7"


def test_specs_that_a_power_cut_tore_or_brought_back_do_not_last(node: gpunode.GpuNode) -> None:
    prepare(node)
    expected = node.spec_path().read_bytes()
    node.spec_path().write_bytes(b"")
    node.spec_path(allocated_claims.OTHER_UID).write_bytes(expected)
    node.boot = "boot-2"
    node.process().recover()
    assert node.spec_path().read_bytes() == expected
    assert not node.spec_path(allocated_claims.OTHER_UID).exists()


def test_after_a_reboot_prepare_does_the_same_without_recovery(node: gpunode.GpuNode) -> None:
    ref = prepare(node)
    node.spec_path().unlink()
    node.boot = "boot-2"
    process = node.process()
    assert isinstance(process.preparer.prepare(ref, gpunode.never), ports.Prepared)
    assert node.spec_path().exists()
    assert process.recover().unchanged == [allocated_claims.UID]


def test_a_gpu_that_did_not_come_back_leaves_no_old_spec(node: gpunode.GpuNode) -> None:
    prepare(node)
    node.nvml.machine.lose(node.nvml.machine.gpus[0])
    node.boot = "boot-2"
    report = node.process().recover()
    assert list(report.failed) == [allocated_claims.UID]
    assert not report.is_complete
    assert not node.spec_path().exists()


def test_an_unrestorable_claim_is_restored_once_the_driver_is_up(
    node: gpunode.GpuNode,
) -> None:
    prepare(node)
    node.spec_path().unlink()
    node.nvml.absent = True
    process = node.process()
    assert list(process.recover().failed) == [allocated_claims.UID]
    node.nvml.absent = False
    process.gpus.refresh()
    assert process.recover().restored == [allocated_claims.UID]


def test_specs_and_temporary_files_without_a_record_go_and_foreign_specs_stay(
    node: gpunode.GpuNode,
) -> None:
    prepare(node)
    keep = node.files()
    foreign = node.cdi / "k8s.gpu.nvidia.com-claim_x.json"
    foreign.write_bytes(b"{}")
    node.spec_path(allocated_claims.OTHER_UID).write_bytes(b"{}")
    (node.records / ".abc.json.new").write_bytes(b"torn")
    report = node.process().recover()
    assert report.orphans == [allocated_claims.OTHER_UID, "abc"]
    assert node.files() == {**keep, str(foreign.relative_to(node.base)): b"{}"}


def test_a_damaged_record_keeps_its_spec_until_unprepare(node: gpunode.GpuNode) -> None:
    ref = prepare(node)
    (record,) = node.records.iterdir()
    record.write_bytes(b"{")
    process = node.process()
    assert process.recover().damaged == [allocated_claims.UID]
    assert process.recover().damaged == [allocated_claims.UID]
    assert node.spec_path().exists()
    process.preparer.unprepare(ref)
    assert not node.spec_path().exists()


def test_a_half_done_claim_is_rolled_back(node: gpunode.GpuNode) -> None:
    ref = node.allocate(shares.a_share(1, "ts"))
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(3)).preparer.prepare(ref, gpunode.never)
    assert node.process().recover().rolled_back == [ref.uid]
    assert checkpoint.Checkpoint(node.records, node.boot).list_records() == ()


def test_a_half_done_claim_without_steps_is_completed(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(3)).preparer.prepare(ref, gpunode.never)
    assert node.process().recover().restored == [allocated_claims.UID]
    restored = node.files()
    assert node.process().preparer.unprepare(ref) is None
    prepare(node)
    assert node.files() == restored


def test_nothing_is_served_beside_a_record_of_a_version_too_new(node: gpunode.GpuNode) -> None:
    prepare(node)
    process = node.process()
    path = node.records / f"{allocated_claims.UID}.json"
    raw = json.loads(path.read_bytes())["record"]
    path.write_bytes(checkpoint.seal({**raw, "version": checkpoint.VERSION + 2}))
    previous = node.files()
    with pytest.raises(checkpoint.NewerSchema):
        process.recover()
    assert node.files() == previous
