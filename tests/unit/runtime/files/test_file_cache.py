"""Values of files are parsed once, and anew when a file was replaced."""

import os
from pathlib import Path

import pytest

from driver import errors
from driver.runtime.files import file_cache, folder_watch

SECOND_NS = 1_000_000_000


class Reader:
    """A cache of a folder with one file, an hour after that was written; `parsed` is what was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.age_ns = 3600 * SECOND_NS
        self.parsed: list[bytes] = []
        self._cache = file_cache.FileCache(
            str(path.parent), lambda name: name.startswith("file"), self._parse, self._now_ns
        )

    def read(self) -> str | None:
        return self._cache.read(self.path.name)

    def read_all(self) -> tuple[str, ...]:
        return self._cache.read_all()

    def list_names(self) -> set[str]:
        return set(self._cache.list_names())

    def add(self, content: str) -> None:
        """Write the file, and add its value."""
        self.replace(content)
        self._cache.add(self.path.name, content)

    def replace(self, content: str) -> None:
        """Replace the file as `atomic` does, with the times of the previous one."""
        status = self.path.stat()
        new = self.path.with_name("new")
        new.write_text(content)
        os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
        new.replace(self.path)

    def _now_ns(self) -> int:
        return self.path.stat().st_mtime_ns + self.age_ns

    def _parse(self, name: str, data: bytes) -> str | None:
        assert name.startswith("file")
        self.parsed.append(data)
        return data.decode() or None


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    path = tmp_path / "file"
    path.write_text("first")
    return Reader(path)


def test_an_unchanged_file_is_parsed_once(reader: Reader) -> None:
    assert [reader.read(), reader.read()] == ["first", "first"]
    assert reader.parsed == [b"first"]


def test_a_replaced_file_of_the_same_size_and_times_is_parsed_again(reader: Reader) -> None:
    reader.read()
    reader.replace("other")
    assert reader.read() == "other"


def test_a_file_that_may_change_within_a_tick_is_not_remembered(reader: Reader) -> None:
    reader.age_ns = 1_000_000
    reader.read()
    status = reader.path.stat()
    reader.path.write_text("other")
    os.utime(reader.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert reader.read() == "other"


def test_a_clock_that_was_put_back_only_costs_another_read(reader: Reader) -> None:
    reader.age_ns = -3600 * SECOND_NS
    assert [reader.read(), reader.read()] == ["first", "first"]
    assert len(reader.parsed) == 2


def test_a_missing_file_has_no_value_and_is_read_when_it_is_back(reader: Reader) -> None:
    reader.read()
    content = reader.path.rename(reader.path.with_name("aside"))
    assert reader.read() is None
    content.rename(reader.path)
    assert reader.read() == "first"
    assert len(reader.parsed) == 2


def test_a_file_without_a_value_is_parsed_each_time(reader: Reader) -> None:
    reader.path.write_text("")
    assert [reader.read(), reader.read()] == [None, None]
    assert len(reader.parsed) == 2


def test_all_files_whose_names_match_are_read_in_order(reader: Reader) -> None:
    for name in ("file-2", "file-1", "other"):
        reader.path.with_name(name).write_text(name)
    assert reader.read_all() == ("first", "file-1", "file-2")
    assert reader.list_names() == {"file", "file-1", "file-2", "other"}
    reader.replace("other")
    assert reader.read_all() == ("other", "file-1", "file-2")


def test_only_changed_files_are_looked_at_again(reader: Reader) -> None:
    reader.path.with_name("file-1").write_text("second")
    reader.age_ns = 0  # too young to be remembered by their times
    assert [reader.read_all(), reader.read_all()] == [("first", "second")] * 2
    reader.replace("other")
    assert reader.read_all() == ("other", "second")
    assert reader.parsed == [b"first", b"second", b"other"]


def test_a_file_changed_in_place_is_read_again(reader: Reader) -> None:
    reader.read_all()
    reader.path.write_text("other")
    assert reader.read_all() == ("other",)


def test_an_added_value_is_not_parsed_until_the_file_is_replaced(reader: Reader) -> None:
    reader.read_all()
    reader.add("other")
    assert (reader.read(), reader.read_all()) == ("other", ("other",))
    assert reader.parsed == [b"first"]
    reader.replace("third")
    assert reader.read_all() == ("third",)


def test_a_removed_file_has_no_value(reader: Reader) -> None:
    reader.read_all()
    reader.path.unlink()
    assert (reader.read_all(), reader.list_names()) == ((), set())


def test_a_folder_that_was_made_anew_is_listed_again(reader: Reader) -> None:
    reader.read_all()
    reader.path.unlink()
    reader.path.parent.rmdir()
    assert reader.read_all() == ()
    reader.path.parent.mkdir()
    reader.path.write_text("other")
    assert reader.read_all() == ("other",)


def test_without_a_watch_files_are_parsed_once_too(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_watch.FolderWatch, "changed_names", lambda _: None)
    assert [reader.read_all(), reader.read_all()] == [("first",)] * 2
    assert reader.parsed == [b"first"]
    reader.path.unlink()
    assert (reader.read_all(), reader.list_names()) == ((), set())


def test_a_file_that_comes_back_is_read_again(reader: Reader) -> None:
    reader.read_all()
    aside = reader.path.rename(reader.path.with_name("aside"))
    assert reader.read_all() == ()
    aside.rename(reader.path)
    assert reader.read_all() == ("first",)
    assert len(reader.parsed) == 2


def test_a_file_that_could_not_be_read_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    reader = Reader(tmp_path / "file")
    for _ in range(2):
        with pytest.raises(errors.NodeFault, match="read"):
            reader.read_all()
    (tmp_path / "file").rmdir()
    assert reader.read_all() == ()


def test_a_folder_that_is_missing_has_no_files(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "missing/file")
    assert reader.read_all() == ()
    assert reader.read() is None


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    reader = Reader(tmp_path / "file")
    with pytest.raises(errors.NodeFault, match="read"):
        reader.read()
    (tmp_path / "folder").write_text("")
    with pytest.raises(errors.NodeFault, match="list"):
        Reader(tmp_path / "folder/file").read_all()
