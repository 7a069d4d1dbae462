"""A record is read as it was written, or known to be damaged."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import planner, steps
from driver.kubeletplugin.records import checkpoint

uids = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?", fullmatch=True).map(ids.ClaimUid)
gpus = st.uuids().map(lambda uuid: ids.GpuUuid(f"GPU-{uuid}"))
encodable = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
made_steps = st.builds(
    steps.Step,
    encodable,
    encodable,
    gpus,
    st.dictionaries(encodable, st.one_of(encodable, st.integers(-(2**53), 2**53)), max_size=3),
)
devices = st.builds(
    steps.PlannedDevice,
    request=encodable,
    pool=encodable,
    device=encodable.map(ids.DeviceName),
    gpu=gpus,
    cdi_id=encodable,
    edits=st.builds(steps.Edits, st.lists(gpus, max_size=2).map(tuple)),
    admin_access=st.booleans(),
    share_id=encodable,
)
plans = st.builds(
    planner.Plan,
    st.lists(devices, max_size=4).map(tuple),
    st.lists(made_steps, max_size=3).map(tuple),
)
refs = st.builds(ports.ClaimRef, encodable, encodable, uids)


@given(refs, plans, st.data())
@settings(max_examples=60)
def test_written_values_are_read_back(
    ref: ports.ClaimRef, intent: planner.Plan, data: st.DataObject
) -> None:
    facts = [data.draw(st.dictionaries(encodable, encodable, max_size=2)) for _ in intent.steps]
    with tempfile.TemporaryDirectory() as folder:
        records = checkpoint.Checkpoint(Path(folder), "boot")
        started = records.write_started(ref, intent)
        assert records.read(ref.uid) == started
        completed = records.write_completed(started, facts)
        assert checkpoint.Checkpoint(Path(folder), "boot").list_records() == (completed,)
        assert (completed.devices, completed.steps) == (intent.devices, intent.steps)
        assert completed.facts == tuple(facts)


@given(refs, plans, st.data())
@settings(max_examples=60)
def test_a_changed_or_shortened_file_is_never_taken_for_a_record(
    ref: ports.ClaimRef, intent: planner.Plan, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        records = checkpoint.Checkpoint(Path(folder), "boot")
        records.write_started(ref, intent)
        path = Path(folder) / f"{ref.uid}.json"
        whole = path.read_bytes()
        index = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            path.write_bytes(whole[:index])
        else:
            flipped = whole[index] ^ data.draw(st.integers(1, 255))
            path.write_bytes(whole[:index] + bytes([flipped]) + whole[index + 1 :])
        assert records.read(ref.uid) is None
        assert records.damaged_uids() == (ref.uid,)
        assert records.list_records() == ()


@given(refs, plans, st.dictionaries(st.sampled_from("xyz"), st.integers(), min_size=1))
@settings(max_examples=30)
def test_fields_of_a_newer_version_are_kept(
    ref: ports.ClaimRef, intent: planner.Plan, newer: dict[str, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        records = checkpoint.Checkpoint(Path(folder), "boot")
        records.write_started(ref, intent)
        path = Path(folder) / f"{ref.uid}.json"
        raw = json.loads(path.read_bytes())["record"]
        raw = {**raw, **newer, "devices": [{**device, **newer} for device in raw["devices"]]}
        path.write_bytes(checkpoint.seal(raw))
        started = records.read(ref.uid)
        assert started is not None
        records.write_completed(started, [{} for _ in intent.steps])
        record = json.loads(path.read_bytes())["record"]
        assert newer.items() <= record.items()
        assert all(newer.items() <= device.items() for device in record["devices"])
