import json
from pathlib import Path

import pytest

from driver import errors
from driver.mps import desired_state
from driver.mps.daemon import reconcile_policy

GPU = "GPU-8c40c0de-0000-1111-2222-333344445555"


def put(folder: Path, key: str, percentage: int = 50) -> Path:
    content = {
        "key": key,
        "devices": [GPU],
        "pinned_memory": [1 << 30],
        "active_thread_percentage": percentage,
    }
    path, new = folder / f"{key}.json", folder / f".{key}.json.new"
    new.write_text(json.dumps(content))
    return new.replace(path)


def percentage(goal: reconcile_policy.Goal) -> int:
    assert isinstance(goal, reconcile_policy.DesiredDaemon)
    return goal.desired.active_thread_percentage


def test_every_file_is_a_goal_and_a_temporary_is_none(tmp_path: Path) -> None:
    put(tmp_path, "a")
    put(tmp_path, "b")
    (tmp_path / ".c.json.new").write_text("half of")
    assert sorted(desired_state.DesiredFiles(tmp_path).read()) == ["a", "b"]


def test_a_file_is_read_again_when_it_was_replaced_only(tmp_path: Path) -> None:
    files = desired_state.DesiredFiles(tmp_path)
    put(tmp_path, "a", 50)
    first = files.read()["a"]
    assert files.read()["a"] is first
    put(tmp_path, "a", 60)
    assert percentage(files.read()["a"]) == 60
    (tmp_path / "a.json").unlink()
    assert not files.read()


def test_an_invalid_file_does_not_affect_others(tmp_path: Path) -> None:
    put(tmp_path, "a")
    (tmp_path / "b.json").write_text("[]")
    (tmp_path / "c.json").mkdir()
    (tmp_path / "d.json").write_bytes(b" " * (desired_state.MOST_BYTES + 1))
    put(tmp_path, "e").rename(tmp_path / "f.json")
    goals = dict(desired_state.DesiredFiles(tmp_path).read())
    assert percentage(goals.pop("a")) == 50
    words = {
        key: goal.problem
        for key, goal in goals.items()
        if isinstance(goal, reconcile_policy.UnreadableFile)
    }
    assert sorted(words) == ["b", "c", "d", "f"]
    assert f"{tmp_path}/c.json cannot be read" in words["c"]
    assert "is too long" in words["d"]
    assert words["f"] == f"{tmp_path}/f.json.key: is 'e'; expected 'f'"


def test_a_name_that_is_no_key_is_left_out_and_told(tmp_path: Path) -> None:
    files = desired_state.DesiredFiles(tmp_path)
    put(tmp_path, "a")
    (tmp_path / "a b.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("")
    assert sorted(files.read()) == ["a"]
    assert files.misnamed == ("a b.json", "notes.txt")


def test_more_files_than_are_served_are_a_fault_and_none_is_taken_for_absent(
    tmp_path: Path,
) -> None:
    for number in range(desired_state.MOST_FILES + 1):
        (tmp_path / f"k{number}.json").touch()
    with pytest.raises(errors.BadInput, match="257 files; expected at most 256"):
        desired_state.DesiredFiles(tmp_path).read()


def test_a_missing_folder_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(errors.NodeFault):
        desired_state.DesiredFiles(tmp_path / "none").read()
