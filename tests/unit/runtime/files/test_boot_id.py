from pathlib import Path

import pytest

from driver import errors
from driver.runtime.files import boot_id


def test_the_boot_id_is_read_under_the_host_root(tmp_path: Path) -> None:
    path = tmp_path / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True)
    path.write_text("b0\n")
    assert boot_id.read_boot_id(tmp_path) == "b0"
    with pytest.raises(errors.NodeFault, match="boot_id"):
        boot_id.read_boot_id(tmp_path / "elsewhere")
