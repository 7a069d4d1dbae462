from pathlib import Path

import pytest

from driver.kubeletplugin.host import process_owner

POD = "0f7a4a80-5c1e-4d6b-9d0e-3c2b1a09f8e7"


def test_a_process_is_looked_up_under_the_host_root(tmp_path: Path) -> None:
    (tmp_path / "proc/4711").mkdir(parents=True)
    (tmp_path / "proc/4711/cgroup").write_text(f"0::/kubepods/pod{POD}/7cbd\n")
    assert process_owner.ProcessOwners(tmp_path)(4711) == (POD,)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_dead_or_unreadable_process_belongs_to_no_pod(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "proc/4711").mkdir(parents=True)
        (tmp_path / "proc/4711/cgroup").write_bytes(content)
    assert process_owner.ProcessOwners(tmp_path)(4711) == ()
