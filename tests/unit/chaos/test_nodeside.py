from pathlib import Path

import pytest

from tests.chaos import nodeside

MPS = Path("/state/mps")


def test_a_daemon_has_a_file_system_for_sockets_and_another_for_shared_memory() -> None:
    points = [MPS / "run" / "GPU-1" / "pipe", MPS / "shm" / "GPU-1" / "shm"]
    assert nodeside.mounted(points) == {"GPU-1"}


def test_a_record_or_spec_alone_belongs_to_no_claim() -> None:
    assert nodeside.mounted([MPS / "shm" / "GPU-1" / "shm"]) == {"GPU-1, shm alone"}


def test_a_folder_that_goes_while_it_is_read_has_no_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda _: True)
    assert nodeside.json_files(tmp_path / "claims") == []


def test_records_are_the_json_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("a.json", "b.json.new"):
        (tmp_path / name).touch()
    assert nodeside.json_files(tmp_path) == [tmp_path / "a.json"]
