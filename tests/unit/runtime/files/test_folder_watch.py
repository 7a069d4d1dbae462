"""Names of changed files, as the kernel reports them."""

from pathlib import Path

from driver.runtime.files import folder_watch


def test_changes_of_each_kind_are_reported_once(tmp_path: Path) -> None:
    for name in ("changed", "moved", "removed", "same"):
        (tmp_path / name).write_text("")
    watch = folder_watch.FolderWatch(str(tmp_path))
    assert watch.changed_names() is None
    assert watch.changed_names() == frozenset()
    (tmp_path / "new").write_text("")
    (tmp_path / "changed").write_text("x")
    (tmp_path / "moved").rename(tmp_path / "target")
    (tmp_path / "removed").unlink()
    assert watch.changed_names() == frozenset({"new", "changed", "moved", "target", "removed"})
    assert watch.changed_names() == frozenset()


def test_a_folder_is_watched_once_it_is_there(tmp_path: Path) -> None:
    watch = folder_watch.FolderWatch(str(tmp_path / "folder"))
    assert [watch.changed_names(), watch.changed_names()] == [None, None]
    (tmp_path / "folder").mkdir()
    assert watch.changed_names() is None
    (tmp_path / "folder/file").write_text("")
    assert watch.changed_names() == frozenset({"file"})


def test_a_folder_that_was_removed_is_not_known(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    watch = folder_watch.FolderWatch(str(folder))
    assert watch.changed_names() is None
    folder.rmdir()
    folder.mkdir()
    assert watch.changed_names() is None
    assert watch.changed_names() == frozenset()


def test_dropped_events_make_the_changes_unknown(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watch = folder_watch.FolderWatch(str(tmp_path))
    watch.changed_names()
    for number in range(limit // 2 + 2):
        (tmp_path / str(number % 2)).write_bytes(b"")
        (tmp_path / str(number % 2)).unlink()
    assert watch.changed_names() is None
    assert watch.changed_names() == frozenset()
