import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hack import audit, debian, scan
from hack.cluster import errors
from hack.image import oci

SYSTEM = b'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n'
RECORD = b"Package: libssl3\nVersion: 3.0.19-1\nArchitecture: arm64\nSource: openssl (3.0.19-1)\n"


def an_image(folder: Path, *files: oci.Entry) -> Path:
    oci.write(folder / "image.tar", oci.Image("ration:test", "arm64", ("python",)), files)
    return folder / "image.tar"


def test_the_packages_of_an_image_and_their_release_are_read_from_its_files(
    tmp_path: Path,
) -> None:
    image = an_image(
        tmp_path,
        oci.Entry("usr/lib/os-release", SYSTEM),
        oci.Entry("var/lib/dpkg/status.d/libssl3", RECORD),
    )
    present, release = scan.system_packages(image)
    assert present == {"libssl3": "3.0.19-1"}
    assert (release.suite, release.architecture) == ("bookworm", "arm64")


@pytest.mark.parametrize(
    "files",
    [
        (),
        (oci.Entry("usr/lib/os-release", SYSTEM),),
        (
            oci.Entry("usr/lib/os-release", b"ID=fedora\n"),
            oci.Entry("var/lib/dpkg/status.d/libssl3", RECORD),
        ),
    ],
)
def test_an_image_that_names_no_packages_of_debian_is_not_asked_about(
    tmp_path: Path, files: tuple[oci.Entry, ...]
) -> None:
    report = scan.scan_system_packages(an_image(tmp_path, *files))
    assert list(report.lines()) == [
        "not asked: whether Debian has newer packages: the image names no packages of Debian"
    ]


def test_a_package_with_a_newer_version_is_named_and_one_without_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debian, "is_older", lambda version, other: version != other)
    present = {"libssl3": "1", "libc6": "2", "local": "3"}
    assert list(scan.outdated(present, {"libssl3": "4", "libc6": "2"})) == [
        "libssl3 1: Debian has 4"
    ]


def test_a_known_vulnerability_is_a_problem_and_a_missing_answer_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask_all(_pins: Sequence[audit.Pin]) -> list[audit.Verdict]:
        return [
            audit.Verdict(("urllib3", "2.7.0"), ("CVE-1: reads too far",)),
            audit.Verdict(("certifi", "1"), None),
            audit.Verdict(("click", "8"), ()),
        ]

    monkeypatch.setattr(audit, "ask_all", ask_all)
    assert list(scan.scan_python_packages().lines()) == [
        "urllib3 2.7.0: CVE-1: reads too far",
        "Python packages: 3 releases are pinned; of 1 something is known",
        "not asked: PyPI, of releases that are not their newest: certifi 1",
    ]


def test_an_index_that_does_not_answer_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_all(_pins: Sequence[audit.Pin]) -> list[audit.Verdict]:
        raise audit.Unanswered("https://index.example: HTTP 503")

    monkeypatch.setattr(audit, "ask_all", ask_all)
    (line,) = scan.scan_python_packages().lines()
    assert line.startswith("not asked: what PyPI knows of the Python packages: https://index")


def test_a_machine_without_debians_package_manager_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    files = (
        oci.Entry("usr/lib/os-release", SYSTEM),
        oci.Entry("var/lib/dpkg/status.d/libssl3", RECORD),
    )
    report = scan.scan_system_packages(an_image(tmp_path, *files))
    assert report.unasked == (
        "whether Debian has newer packages: this machine has no apt-get and no dpkg-deb",
    )


def test_files_of_no_package_are_owned_by_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert debian.owners([Path("/lib/libc.so.6")]) == {}
    with pytest.raises(errors.ClusterError, match="no apt-get"):
        debian.Archive(debian.Release("bookworm", "arm64"), Path("/nowhere"))
