from pathlib import Path

from driver.runtime.files import flock


def test_an_open_file_holds_the_lock_until_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as second:
        with path.open("w") as first:
            assert flock.try_lock(first.fileno())
            assert not flock.try_lock(second.fileno())
        assert flock.try_lock(second.fileno())
