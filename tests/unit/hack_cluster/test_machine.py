"""Tests of what is read from the machine's tables, given as text."""

import io
import tarfile
from pathlib import Path

import pytest

from hack.cluster import cgroups, errors, mounts, prerequisites, processes, releases

MOUNTS = (
    "25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "26 25 0:23 / /sys/fs/cgroup/pids rw shared:5 - cgroup cgroup rw,pids\n"
    "27 25 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "40 1 8:1 / /var/lib/x rw - ext4 /dev/a rw\n"
    "41 40 0:30 / /var/lib/x/a\\040b rw - tmpfs tmpfs rw\n"
    "42 1 0:31 / /var/lib/xy rw - tmpfs tmpfs rw\n"
)


def test_mounts_below_a_folder_are_undone_last_made_first() -> None:
    assert mounts.below(Path("/var/lib/x"), MOUNTS) == (
        Path("/var/lib/x/a b"),
        Path("/var/lib/x"),
    )


def test_the_unified_hierarchy_is_preferred_where_both_are_mounted() -> None:
    assert cgroups.hierarchies(MOUNTS) == (
        Path("/sys/fs/cgroup/unified"),
        Path("/sys/fs/cgroup/pids"),
    )


def test_a_process_name_with_brackets_does_not_confuse_its_start_time() -> None:
    fields = " ".join(str(number) for number in range(4, 30))
    assert processes.parse_stat(f"7 (a) b) S {fields}") == ("S", 22)


def test_a_program_with_a_dynamic_loader_is_not_static() -> None:
    assert prerequisites.is_static(b"\x7fELF...nothing")
    assert not prerequisites.is_static(b"\x7fELF.../lib64/ld-linux-x86-64.so.2")
    assert not prerequisites.is_static(b"#!/bin/sh")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc\n", "abc"),
        ("abc  other\ndef  wanted.tgz\n", "def"),
        ("def *./dir/wanted.tgz\n", "def"),
        ("abc  other\n", None),
    ],
)
def test_a_checksum_is_found_in_every_project_s_format(text: str, expected: str | None) -> None:
    assert releases.checksum_of(text, "wanted.tgz") == expected


def test_an_archive_that_lacks_a_program_is_refused_by_name(tmp_path: Path) -> None:
    archive = tmp_path / "release.tar"
    with tarfile.open(archive, "w") as packed:
        entry = tarfile.TarInfo("v1/etcd")
        entry.size = 3
        packed.addfile(entry, io.BytesIO(b"abc"))
    releases.unpack(archive, frozenset({"etcd"}), tmp_path)
    assert (tmp_path / "etcd").read_bytes() == b"abc"
    with pytest.raises(errors.ClusterError, match="lacks ctr"):
        releases.unpack(archive, frozenset({"etcd", "ctr"}), tmp_path)
