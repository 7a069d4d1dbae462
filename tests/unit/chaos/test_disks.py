import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests.chaos import disks


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_disk_is_full_to_the_last_byte_and_has_room_again(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=65536", "tmpfs", tmp_path], check=True)
    try:
        with disks.filled(tmp_path), pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            (tmp_path / "other").write_bytes(b"x")
        (tmp_path / "other").write_bytes(b"x")
    finally:
        subprocess.run(["umount", tmp_path], check=True)
