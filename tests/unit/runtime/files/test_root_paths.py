from pathlib import Path

import pytest

from driver import errors
from driver.runtime.files import root_paths


def test_an_absolute_link_means_a_path_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/tool").write_text("")
    (tmp_path / "bin").symlink_to("/usr/bin")
    assert root_paths.Root(tmp_path).resolve("bin/tool") == tmp_path / "usr/bin/tool"


def test_no_path_leads_out_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to("../../..")
    assert root_paths.Root(tmp_path).resolve("up/etc") == tmp_path / "etc"


def test_links_in_a_circle_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(errors.NodeFault, match="too many links"):
        root_paths.Root(tmp_path).resolve("a")


def test_a_folder_of_libraries_that_goes_by_two_names_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "usr/lib64").mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("usr/lib64")
    assert root_paths.Root(tmp_path).library_folders() == (("usr", "lib64"),)
