from pathlib import Path

import pytest

from hack.image import archive, oci

IMAGE = oci.Image("ration:test", "arm64", ("python",), ("PATH=/bin", "OPTIONS=a=b"))
FILES = (oci.Entry("usr/bin/python", b"program"), oci.Entry("bin/python", "../usr/bin/python"))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    oci.write(tmp_path / "image.tar", IMAGE, FILES)
    return tmp_path / "image.tar"


def test_the_configuration_that_was_written_is_read(image: Path) -> None:
    assert archive.config(image)["architecture"] == "arm64"
    assert archive.environment(image) == {"PATH": "/bin", "OPTIONS": "a=b"}


def test_files_are_laid_out_as_they_were_packed(image: Path, tmp_path: Path) -> None:
    archive.unpack(image, tmp_path / "root")
    assert (tmp_path / "root/bin/python").read_bytes() == b"program"
    assert (tmp_path / "root/bin/python").is_symlink()
    with archive.layer(image) as files:
        assert [member.name for member in files] == ["bin/python", "usr/bin/python"]
