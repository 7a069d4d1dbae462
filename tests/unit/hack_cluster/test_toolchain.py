from pathlib import Path

import pytest

from hack.cluster import toolchain


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_kept_folder_is_made_once(tmp_path: Path) -> None:
    paths: list[Path] = []

    def make(part: Path) -> None:
        paths.append(part)
        (part / "program").touch()

    for _ in range(2):
        assert names(toolchain.keep(tmp_path / "tool-0a1b", make)) == {"program"}
    assert len(paths) == 1


def test_a_folder_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    def make(part: Path) -> None:
        (part / "half").touch()
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - ours, without words
        toolchain.keep(tmp_path / "tool-0a1b", make)
    assert names(tmp_path) == {"tool.lock"}


def test_leftovers_of_a_killed_builder_are_removed_and_other_tools_stay(tmp_path: Path) -> None:
    for name in (".tool-xyz", ".tools-xyz", "tool-old"):
        (tmp_path / name).mkdir()
    toolchain.keep(tmp_path / "tool-0a1b", lambda part: part.touch())
    assert names(tmp_path) == {"tool.lock", "tool-0a1b", ".tools-xyz", "tool-old"}
