from pathlib import Path

import pytest

from hack import debian
from hack.cluster import errors, shell

TARGETS = (
    "http://mirror.example/debian/ Debian Debian\n"
    "http://mirror.example/security/ Debian Debian-Security\n"
    "http://other.example/ Example Debian\n"
)


def settings(monkeypatch: pytest.MonkeyPatch, work: Path, targets: str) -> dict[str, str]:
    monkeypatch.setattr(shell, "run", lambda *_words, **_options: targets)
    release = debian.Release("bookworm", "arm64", present=("dpkg",))
    options = debian._options(release, work)
    pairs = (option.removeprefix("--option=").partition("=") for option in options)
    return {name: value for name, _, value in pairs}


def test_a_release_is_sought_where_the_machine_has_it_with_its_security_updates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = settings(monkeypatch, tmp_path, TARGETS)
    assert options["APT::Architecture"] == "arm64"
    lines = Path(options["Dir::Etc::SourceList"]).read_text().splitlines()
    assert [line.partition("] ")[2] for line in lines] == [
        "http://mirror.example/debian/ bookworm main",
        "http://mirror.example/security/ bookworm-security main",
    ]
    assert "Package: dpkg\n" in Path(options["Dir::State::status"]).read_text()


def test_all_that_is_read_or_written_is_the_callers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = settings(monkeypatch, tmp_path, TARGETS)
    folders = {name: value for name, value in options.items() if name.startswith("Dir::")}
    assert folders.pop("Dir::Etc::SourceParts") == "/dev/null"
    assert all(Path(value).is_relative_to(tmp_path) for value in folders.values())


def test_a_machine_of_another_system_is_told_that_it_has_no_mirror(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    targets = "http://archive.example/ubuntu/ Ubuntu Ubuntu\n"
    with pytest.raises(errors.ClusterError, match="has no mirror of Debian"):
        settings(monkeypatch, tmp_path, targets)
