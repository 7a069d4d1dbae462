import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from driver import errors, ids
from driver.kubeletplugin.plan import planner, steps
from driver.kubeletplugin.records import checkpoint
from tests.support.builders import allocated_claims

GPU = ids.GpuUuid("GPU-1")
GOLDEN = (
    b'{"record":{"boot_id":"boot-1","claim":{"name":"one","namespace":"default","uid":"uid-1"},'
    b'"devices":[{"admin_access":false,"cdi_id":"gpu.ration.dev/claim=uid-1-gpu-0",'
    b'"device":"gpu-0","edits":{"daemon":"","environment":{},"gpus":["GPU-1"],"instance":null},'
    b'"gpu":"GPU-1","pool":"node-1",'
    b'"request":"gpu","share_id":"","shared_bytes":0,"subrequest":"","terms":null}],"facts":[],"pod_claim":"",'
    b'"state":"started","steps":[],"version":1},'
    b'"sha256":"6f3d"}\n'
)
UID = ids.ClaimUid("uid-1")
RECORDS = Path(__file__).parents[3] / "data/records"
"""One of each kind that a release has written; none is ever changed."""


def a_plan() -> planner.Plan:
    device = steps.PlannedDevice(
        "gpu",
        "node-1",
        ids.DeviceName("gpu-0"),
        GPU,
        "gpu.ration.dev/claim=uid-1-gpu-0",
        steps.Edits((GPU,)),
    )
    return planner.Plan((device,), ())


@pytest.fixture
def records(tmp_path: Path) -> checkpoint.Checkpoint:
    return checkpoint.Checkpoint(tmp_path, "boot-1")


def test_a_file_is_json_with_the_checksum_of_its_own_bytes(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    records.write_started(allocated_claims.a_ref(UID), a_plan())
    path = tmp_path / "uid-1.json"
    written = json.loads(path.read_bytes())
    assert written["record"] == json.loads(GOLDEN)["record"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_spaces_in_the_record_do_not_matter_but_the_checksum_does(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    path = tmp_path / "uid-1.json"
    raw = json.loads(GOLDEN)["record"]
    path.write_bytes(checkpoint.seal(raw))
    assert records.read(UID) is not None
    path.write_bytes(GOLDEN)
    assert records.read(UID) is None


def test_a_record_under_another_claims_name_is_damaged(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    records.write_started(allocated_claims.a_ref(UID), a_plan())
    (tmp_path / "uid-1.json").rename(tmp_path / "uid-2.json")
    assert records.read(ids.ClaimUid("uid-2")) is None
    assert records.damaged_uids() == ("uid-2",)


def test_a_record_that_is_nested_too_deeply_is_damaged(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    """Its checksum fits: nothing but the parser can say so."""
    record = b"[" * 5000
    digest = hashlib.sha256(record).hexdigest().encode()
    (tmp_path / "uid-1.json").write_bytes(
        b'{"record":' + record + b',"sha256":"' + digest + b'"}\n'
    )
    assert records.read(UID) is None
    assert records.damaged_uids() == (UID,)


def test_each_damaged_record_of_a_claim_is_kept_apart(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    for text in ("a", "b"):
        (tmp_path / "uid-1.json").write_text(text)
        assert records.read(UID) is None
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["uid-1.json.damaged-1", "uid-1.json.damaged-2"]
    assert records.uids() == ()


def test_the_answer_comes_from_the_record(records: checkpoint.Checkpoint) -> None:
    records.write_completed(records.write_started(allocated_claims.a_ref(UID), a_plan()), [])
    record = records.read(UID)
    assert record is not None
    (device,) = record.response().devices
    assert device.cdi_ids == ("gpu.ration.dev/claim=uid-1-gpu-0",)
    assert record.state is checkpoint.State.COMPLETED


def test_a_record_of_another_boot_is_known_as_such(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    record = records.write_started(allocated_claims.a_ref(UID), a_plan())
    assert records.is_current_boot(record)
    assert not checkpoint.Checkpoint(tmp_path, "boot-2").is_current_boot(record)


def test_completing_a_record_that_is_gone_is_a_fault(records: checkpoint.Checkpoint) -> None:
    record = records.write_started(allocated_claims.a_ref(UID), a_plan())
    records.remove(UID)
    with pytest.raises(errors.NodeFault, match="gone"):
        records.write_completed(record, [])


def test_a_folder_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    records = checkpoint.Checkpoint(tmp_path / "none", "boot-1")
    assert (records.list_records(), records.damaged_uids(), records.read(UID)) == ((), (), None)
    records.remove(UID)


def two_steps() -> planner.Plan:
    values = (
        steps.Step("mig-on", "mig-off-again", GPU),
        steps.Step("mig-make", "mig-destroy", GPU, {"profile": 19, "start": 4, "size": 1}),
    )
    return planner.Plan(a_plan().devices, values)


def test_a_record_can_be_narrowed_to_what_was_begun(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    record = records.write_started(allocated_claims.a_ref(UID), two_steps())
    raw = json.loads((tmp_path / "uid-1.json").read_bytes())["record"]
    newer = {**raw, "newer": 1, "steps": [{**step, "newer": 2} for step in raw["steps"]]}
    (tmp_path / "uid-1.json").write_bytes(checkpoint.seal(newer))
    begun = dataclasses.replace(record, steps=record.steps[:1], facts=({},))
    assert records.write_begun(begun) == begun == records.read(UID)
    retained = json.loads((tmp_path / "uid-1.json").read_bytes())["record"]
    assert (retained["newer"], retained["steps"]) == (1, newer["steps"][:1])


def test_a_record_is_put_back_as_it_was(tmp_path: Path) -> None:
    first = checkpoint.Checkpoint(tmp_path, "boot-1")
    done = first.write_completed(
        first.write_started(allocated_claims.a_ref(UID), two_steps()), [{}, {"uuid": "MIG-1"}]
    )
    second = checkpoint.Checkpoint(tmp_path, "boot-2")
    begun = second.write_begun(dataclasses.replace(done, facts=()))
    assert (begun.state, begun.boot_id) == (checkpoint.State.STARTED, "boot-2")
    assert second.rewrite(done) == done == second.read(UID)


@pytest.mark.parametrize("path", sorted(RECORDS.iterdir()), ids=lambda path: path.stem)
def test_every_record_ever_written_is_read(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / f"{allocated_claims.UID}.json")
    records = checkpoint.Checkpoint(tmp_path, "boot-1")
    record = records.read(allocated_claims.UID)
    assert record is not None
    assert record.state is checkpoint.State.COMPLETED
    (device,) = record.response().devices
    assert device.cdi_ids == (f"gpu.ration.dev/claim={allocated_claims.UID}-{device.device}",)
    assert (record.devices[0].edits.instance is not None) is ("-mig-" in device.device)
    assert records.rewrite(record) == record
    assert (tmp_path / f"{allocated_claims.UID}.json").read_bytes() == path.read_bytes()


def test_a_new_record_is_not_moved_aside_for_the_damaged_one_before_it(
    records: checkpoint.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "uid-1.json"
    path.write_bytes(b"{")
    unsealed = checkpoint._unseal

    def meanwhile(data: bytes) -> object:
        """Another thread meets the damaged file first, and the claim is prepared anew."""
        monkeypatch.setattr(checkpoint, "_unseal", unsealed)
        assert records.read(UID) is None
        records.write_started(allocated_claims.a_ref(UID), a_plan())
        return unsealed(data)

    monkeypatch.setattr(checkpoint, "_unseal", meanwhile)
    assert records.read(UID) is None
    assert records.read(UID) is not None
    assert [path.name for path in tmp_path.glob("*.damaged-*")] == ["uid-1.json.damaged-1"]


def of_schema(records: checkpoint.Checkpoint, folder: Path, version: int) -> bytes:
    """A completed record as a later version may write it; the bytes of its file."""
    records.write_completed(
        records.write_started(allocated_claims.a_ref(UID), two_steps()), [{}, {"uuid": "MIG-1"}]
    )
    raw = json.loads((folder / "uid-1.json").read_bytes())["record"]
    later = {"version": version, "later": {"a": [1]}}
    steps_of_it = [{**step, "later": 1} for step in raw["steps"]]
    (folder / "uid-1.json").write_bytes(checkpoint.seal({**raw, **later, "steps": steps_of_it}))
    return (folder / "uid-1.json").read_bytes()


def test_a_record_of_the_next_version_is_read_and_stays_of_that_version(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    written = of_schema(records, tmp_path, checkpoint.VERSION + 1)
    record = records.read(UID)
    assert record is not None
    assert (record.version, record.state) == (checkpoint.VERSION + 1, checkpoint.State.COMPLETED)
    records.write_begun(record)
    assert records.rewrite(record) == record
    assert (tmp_path / "uid-1.json").read_bytes() == written
    records.remove(UID)
    assert list(tmp_path.iterdir()) == []


def test_a_record_of_a_version_later_than_the_next_is_neither_read_nor_touched(
    records: checkpoint.Checkpoint, tmp_path: Path
) -> None:
    done = records.write_completed(
        records.write_started(allocated_claims.a_ref(UID), two_steps()), [{}, {}]
    )
    written = of_schema(records, tmp_path, checkpoint.VERSION + 2)
    message = f"schema {checkpoint.VERSION + 2}, .* reads {checkpoint.VERSION + 1} at most"
    with pytest.raises(checkpoint.NewerSchema, match=message):
        records.read(UID)
    with pytest.raises(checkpoint.NewerSchema, match=message):
        records.list_records()
    with pytest.raises(checkpoint.NewerSchema, match=message):
        records.rewrite(done)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [written]
    assert records.uids() == (UID,)


def test_the_disk_is_waited_for_where_a_step_outlives_the_machine(
    records: checkpoint.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr("os.fsync", waits.append)
    for number, outlives, acts in (
        (1, False, ()),
        (2, False, ("time-slice", "mig-make")),
        (3, True, ("mig-on", "mig-make")),
        (4, True, ("mig-off",)),
    ):
        plan_steps = tuple(steps.Step(act, f"{act}-undone", GPU) for act in acts)
        claim = allocated_claims.a_ref(ids.ClaimUid(f"uid-{number}"))
        record = records.write_started(claim, dataclasses.replace(a_plan(), steps=plan_steps))
        assert len(waits) == 2 * outlives, "the file, then its folder"
        records.write_completed(record, ({},) * len(plan_steps))
        assert len(waits) == 4 * outlives
        records.rewrite(record)
        assert len(waits) == 6 * outlives
        waits.clear()
