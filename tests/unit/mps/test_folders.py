from pathlib import Path

import pytest

from driver import errors
from driver.mps import daemon, folders

MIB = 1 << 20


@pytest.fixture
def place(tmp_path: Path) -> daemon.Place:
    run = tmp_path / "k"
    return daemon.Place(run / "pipe", run / "log", tmp_path / "shm")


def test_any_user_may_use_the_directories_and_nobody_replace_them(place: daemon.Place) -> None:
    folders.make(place)
    assert place.pipe.parent.stat().st_mode & 0o7777 == 0o755
    assert {path.stat().st_mode & 0o7777 for path in (place.pipe, place.log)} == {0o1777}


def test_what_a_dead_daemon_left_is_cleaned_and_its_logs_are_kept(place: daemon.Place) -> None:
    folders.make(place)
    inode = place.pipe.stat().st_ino
    (place.pipe / "control").write_text("")
    (place.pipe / "more").mkdir()
    (place.log / "control.log").write_text("last words")
    folders.make(place)
    assert (list(place.pipe.iterdir()), place.pipe.stat().st_ino) == ([], inode)
    assert (place.log / "control.log.1").read_text() == "last words"
    assert not (place.log / "control.log").exists()


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    with pytest.raises(errors.BadInput, match=r"--state-dir: the socket .* expected at most 107"):
        folders.make(daemon.Place(deep / "pipe", deep / "log", deep))
    assert not deep.exists()


def test_last_words_are_few_and_say_whose_they_are(place: daemon.Place) -> None:
    folders.make(place)
    assert not folders.last_words(place)
    lines = [f"[2026 Control 1] event {number}" for number in range(9)]
    (place.log / "control.log").write_text("\n".join([*lines, "[2026 Control 1] Cmd:ps", ""]))
    (place.log / "stderr").write_text("Cannot listen\n")
    assert folders.last_words(place) == (
        "stderr: Cannot listen; control.log: " + " | ".join(lines[-folders.WORDS_LINES :])
    )


def test_a_log_grows_to_its_bound_and_its_end_is_kept(place: daemon.Place) -> None:
    folders.make(place)
    log = place.log / "control.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * MIB)
        folders.bound_logs(place)
        assert log.stat().st_size == MIB
        writer.write(b"y" * 4 * MIB)
        folders.bound_logs(place)
        writer.write(b"goes on")
    assert log.read_bytes() == b"goes on"
    kept = (place.log / "control.log.1").read_bytes()
    assert 0 < len(kept) < MIB
    assert set(kept) == {ord("y")}


def test_removing_leaves_nothing_and_nothing_is_fine(place: daemon.Place) -> None:
    folders.make(place)
    folders.remove(place)
    folders.remove(place)
    assert not place.pipe.parent.exists()
