import gc
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from driver import errors
from driver.devices import mps_files

GPU = "GPU-8c40c0de-0000-1111-2222-333344445555"
OTHER = "GPU-8c40c0de-0000-1111-2222-333344446666"


def desired(**changes: Any) -> bytes:
    content = {"key": GPU, "devices": [GPU], "pinned_memory": [4606 * mps_files.MIB]}
    return json.dumps({**content, **changes}).encode()


def test_a_desired_file_is_read_with_its_defaults() -> None:
    read = mps_files.Desired.parse(desired(), "d.json")
    assert (read.devices, read.pinned_memory) == ((GPU,), (4606 * mps_files.MIB,))
    assert (read.active_thread_percentage, read.multi_user, read.shm_bytes) == (100, False, None)


def test_unknown_fields_are_kept() -> None:
    read = mps_files.Desired.parse(desired(priority=1), "d.json")
    assert json.loads(read.render())["priority"] == 1
    assert mps_files.Desired.parse(read.render(), "d.json") == read


@pytest.mark.parametrize(
    ("changes", "location", "words"),
    [
        ({"key": "../etc"}, "d.json.key", "expected letters, digits"),
        ({"key": 7}, "d.json.key", "valid string"),
        ({"devices": []}, "d.json.devices", "one device at least"),
        ({"devices": [GPU, GPU]}, "d.json.devices", "each once"),
        ({"devices": ["0"]}, "d.json.devices", "expected GPU-... or MIG-..."),
        ({"devices": [f"{GPU},{OTHER}"]}, "d.json.devices", "is no UUID"),
        ({"devices": [GPU, OTHER]}, "d.json", "expected one for each of 2 devices"),
        ({"pinned_memory": [0]}, "d.json.pinned_memory.0", "whole number of MiB"),
        ({"pinned_memory": [mps_files.MIB + 1]}, "d.json.pinned_memory.0", "whole number of MiB"),
        ({"pinned_memory": ["1G"]}, "d.json.pinned_memory.0", "valid integer"),
        ({"active_thread_percentage": 0}, "d.json.active_thread_percentage", "greater"),
        ({"active_thread_percentage": 101}, "d.json.active_thread_percentage", "less"),
        ({"multi_user": "yes"}, "d.json.multi_user", "valid boolean"),
        ({"shm_bytes": 5}, "d.json.shm_bytes", "whole number of MiB"),
        ({"version": 2}, "d.json.version", "a newer program wrote this"),
    ],
)
def test_errors_name_file_and_field(changes: dict[str, Any], location: str, words: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        mps_files.Desired.parse(desired(**changes), "d.json")
    assert caught.value.location == location
    assert words in caught.value.problem


def test_a_file_cut_short_is_named() -> None:
    with pytest.raises(errors.BadInput, match=r"d\.json: Invalid JSON"):
        mps_files.Desired.parse(desired()[:-5], "d.json")


def test_a_status_serves_only_the_file_and_the_boot_it_names() -> None:
    status = mps_files.Status(
        key=GPU,
        state=mps_files.State.READY,
        boot_id="b1",
        since="2026-11-21T09:00:00.000000Z",
        pipe_dir="/s/run/k/pipe",
        log_dir="/s/run/k/log",
        applied="d1",
        processes=(mps_files.Process(pid=7, started=99),),
    )
    assert mps_files.Status.parse(status.render(), "s.json") == status
    assert status.serves("d1", "b1")
    assert not status.serves("d2", "b1")
    assert not status.serves("d1", "b2")
    starting = status.model_copy(update={"state": mps_files.State.STARTING})
    assert not starting.serves("d1", "b1")


@pytest.mark.parametrize("key", [GPU, "a", "a" * 63, "0f9c-1"])
def test_uuids_may_be_keys(key: str) -> None:
    assert mps_files.is_key(key)
    assert mps_files.Layout(Path("/s")).pipe(key) == Path(f"/s/run/{key}/pipe")


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "-a", "a-", "a" * 64, "a\n", "ä"])
def test_nothing_that_leads_elsewhere_is_a_key(key: str) -> None:
    assert not mps_files.is_key(key)


def test_nothing_of_a_file_is_kept_once_it_is_gone() -> None:
    def files(first: int, count: int) -> int:
        for number in range(first, first + count):
            mps_files.Desired.parse(desired(devices=[f"MIG-{number:08}{GPU[12:]}"]), "d.json")
        gc.collect()
        return sys.getallocatedblocks()

    previous = files(0, 100)
    assert files(100, 1000) < previous + 500
