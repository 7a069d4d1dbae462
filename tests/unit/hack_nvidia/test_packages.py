import hashlib
import re
from pathlib import Path

import pytest

from hack.cluster import errors
from hack.nvidia import packages


@pytest.mark.parametrize("name", packages.systems())
def test_a_system_has_a_libc_and_all_of_the_driver_by_version_and_content(name: str) -> None:
    system = packages.systems()[name]
    needed = {package for package, _ in (*packages.PROGRAMS, *packages.LIBRARIES)}
    assert set(system.packages) == {*needed, "libc6"}
    assert all(re.fullmatch("[0-9a-f]{64}", pin.sha256) for pin in system.packages.values())
    assert {system.packages[package].version.partition("-")[0] for package in needed} == {
        system.driver
    }
    assert system.packages["libc6"].version.startswith(f"{system.libc}-")


def test_an_archive_of_other_content_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "libc6.deb"
    archive.write_bytes(b"pinned")
    pin = packages.Package(version="1", sha256=hashlib.sha256(b"pinned").hexdigest())
    packages.verify(archive, pin)
    archive.write_bytes(b"another")
    with pytest.raises(errors.ClusterError, match=r"libc6.deb is [0-9a-f]{64}, and"):
        packages.verify(archive, pin)


def test_a_missing_package_is_named_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(errors.ClusterError, match=r"debian-12 are not here: make real-programs"):
        packages.lay_system("debian-12", tmp_path / "root")
