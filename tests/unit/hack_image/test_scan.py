"""Each fault of an image is named, and an image without one is not."""

import importlib.util
import tarfile
from pathlib import Path

import pytest

from hack.image import oci, scan

PACKAGES = "usr/local/lib/python3.11/site-packages"
SOURCE = b"ONE = 1\n"
LOCK = "client==1.0 \\\n    --hash=a\ncolorama==0.4 ; sys_platform == 'win32' \\\n    --hash=b\n"


def bytecode(source: bytes, flags: int = 0b01) -> bytes:
    return b"magi" + flags.to_bytes(4, "little") + importlib.util.source_hash(source) + b"code"


def files() -> dict[str, bytes]:
    """Files of an image without a fault: one package, its record, its bytecode."""
    record = f"client/__init__.py,{scan._digest(SOURCE)},8\nclient-1.0.dist-info/METADATA,,\n"
    return {
        "usr/local/bin/python3.11": b"\x7fELF",
        f"{PACKAGES}/client/__init__.py": SOURCE,
        f"{PACKAGES}/client/__pycache__/__init__.cpython-311.pyc": bytecode(SOURCE),
        f"{PACKAGES}/client-1.0.dist-info/METADATA": b"Name: client\nVersion: 1.0\n\nText\n",
        f"{PACKAGES}/client-1.0.dist-info/RECORD": (
            f"{record}client-1.0.dist-info/RECORD,,\n".encode()
        ),
    }


def judged(folder: Path, contents: dict[str, bytes], *more: oci.Entry) -> list[str]:
    entries = [oci.Entry(name, content, 0o644) for name, content in contents.items()]
    image = oci.Image("ration:test", "amd64", ("python",))
    oci.write(folder / "image.tar", image, [*entries, *more, oci.Entry("tmp/", mode=0o1777)])
    return scan.problems(folder / "image.tar", LOCK)


def test_an_image_without_a_fault_has_no_problem(tmp_path: Path) -> None:
    assert judged(tmp_path, files()) == []


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("usr/bin/sh", b"", "a shell or a package manager"),
        ("root/.cache/pip/wheel", b"", "a cache, or the files of a person"),
        (f"{PACKAGES}/stray.py", b"", "no package brought it"),
        (f"{PACKAGES}/client/__init__.py", b"ONE = 2\n", "not as its package brought it"),
        (
            f"{PACKAGES}/client/__pycache__/__init__.cpython-311.pyc",
            bytecode(b"ONE = 2\n"),
            "bytecode of another source",
        ),
        (
            f"{PACKAGES}/client/__pycache__/__init__.cpython-311.pyc",
            bytecode(SOURCE, flags=0b11),
            "bytecode that depends on a date or is checked at each start",
        ),
        (
            f"{PACKAGES}/client/__pycache__/gone.cpython-311.pyc",
            bytecode(SOURCE),
            "bytecode without its source",
        ),
        (
            "etc/key.pem",
            b"-----BEGIN EC " + b"PRIVATE KEY-----\n" + b"A" * 64,
            "holds a private key",
        ),
    ],
)
def test_a_fault_of_a_file_is_named(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    assert f"{name}: {problem}" in judged(tmp_path, files() | {name: content})


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (b"Name: client\nVersion: 2.0\n\n", "client: 2.0 in the image, 1.0 in the lock"),
        (b"Name: other\nVersion: 1.0\n\n", "other: 1.0 in the image, not in the lock"),
    ],
)
def test_packages_that_are_not_the_locks_are_named(
    tmp_path: Path, version: bytes, problem: str
) -> None:
    changed = files() | {f"{PACKAGES}/client-1.0.dist-info/METADATA": version}
    assert problem in judged(tmp_path, changed)


def test_bytecode_of_a_linked_source_is_held_against_what_the_link_leads_to(
    tmp_path: Path,
) -> None:
    link = oci.Entry("usr/lib/python3.11/site.py", "../../../etc/site.py")
    cached = "usr/lib/python3.11/__pycache__/site.cpython-311.pyc"
    same = files() | {"etc/site.py": SOURCE, cached: bytecode(SOURCE)}
    assert judged(tmp_path, same, link) == []
    other = same | {"etc/site.py": b"ONE = 2\n"}
    assert judged(tmp_path, other, link) == [f"{cached}: bytecode of another source"]


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        (0o4755, "runs with the rights of its owner (setuid, setgid)"),
        (0o2755, "runs with the rights of its owner (setuid, setgid)"),
        (0o666, "everybody may write it"),
    ],
)
def test_rights_that_no_file_should_have_are_named(mode: int, problem: str) -> None:
    member = tarfile.TarInfo("usr/bin/program")
    member.mode = mode
    assert list(scan.rights(member)) == [f"usr/bin/program: {problem}"]


def test_a_file_of_another_owner_and_a_device_are_named() -> None:
    member = tarfile.TarInfo("dev/null")
    member.type, member.uid = tarfile.CHRTYPE, 65532
    assert list(scan.rights(member)) == [
        "dev/null: owned by 65532:0, expected root",
        "dev/null: neither a file nor a folder nor a link",
    ]
