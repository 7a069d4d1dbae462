import sys

import pytest

from hack.cluster import errors
from hack.image import foreign, python


def test_wheels_are_those_of_the_processor_and_of_this_python() -> None:
    platform, version, only = foreign.wheels("arm64")
    assert platform == "--python-platform=aarch64-manylinux_2_28"
    assert version == f"--python-version=3.{sys.version_info.minor}"
    assert only == "--only-binary=:all:"


def test_a_python_that_no_release_of_debian_has_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python, "VERSION", "python3.12")
    expected = r"takes python3\.11 or python3\.13, and this is python3\.12"
    with pytest.raises(errors.ClusterError, match=expected):
        foreign.suite()
