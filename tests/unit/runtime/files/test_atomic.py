import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import errors
from driver.runtime.files import atomic, failpoints
from tests.fakes import gpunode


@pytest.fixture
def private_umask() -> Iterator[None]:
    previous = os.umask(0o077)
    yield
    os.umask(previous)


@pytest.mark.usefixtures("private_umask")
def test_modes_are_as_asked_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "folder/file"
    atomic.replace(path, b"x", 0o644, failpoints.NO_OBSERVER)
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.parent.stat().st_mode & 0o777 == 0o755


def test_a_death_before_the_rename_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic.replace(path, b"old", 0o644, failpoints.NO_OBSERVER)
    with pytest.raises(gpunode.Killed):
        atomic.replace(path, b"new", 0o644, gpunode.DiesAt(0))
    assert path.read_bytes() == b"old"
    atomic.replace(path, b"newer", 0o644, failpoints.NO_OBSERVER)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_missing_file_is_none_and_an_unreadable_one_a_fault(tmp_path: Path) -> None:
    assert atomic.read(tmp_path / "file") is None
    with pytest.raises(errors.NodeFault, match=tmp_path.name):
        atomic.read(tmp_path)


def test_an_unwritable_file_is_a_fault_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("no folder")
    with pytest.raises(errors.NodeFault, match="folder/file"):
        atomic.replace(tmp_path / "folder/file", b"x", 0o644, failpoints.NO_OBSERVER)


def test_removing_takes_the_temporary_along_and_nothing_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic.temporary_path(path).touch()
    atomic.remove(path, failpoints.NO_OBSERVER)
    atomic.remove(path, failpoints.NO_OBSERVER)
    atomic.remove(tmp_path / "none/file", failpoints.NO_OBSERVER)
    assert list(tmp_path.iterdir()) == []


def test_removing_a_file_below_no_folder_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("no folder")
    atomic.remove(tmp_path / "folder/file", failpoints.NO_OBSERVER)
    assert (tmp_path / "folder").read_text() == "no folder"


def test_a_temporary_belongs_to_its_file(tmp_path: Path) -> None:
    assert atomic.target_name(atomic.temporary_path(tmp_path / "a.json").name) == "a.json"
    assert atomic.target_name("a.json") == "a.json"
