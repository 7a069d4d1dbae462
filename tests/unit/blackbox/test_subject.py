"""Subject files: what is in them is read strictly, what is wrong with them is said in a line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.blackbox import subject

LEAST = """
name = "small"
driver = "small.example.com"
offers = []
[cluster]
account = "kube-system/small"
[plugin]
command = ["small", "--node", "{node}"]
[device]
request = {deviceClassName = "small.example.com"}
count = 4
look = "env"
"""
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def made(text: str) -> Path:
        path = tmp_path / "small.toml"
        path.write_text(text)
        return path

    return made


@pytest.mark.parametrize("path", sorted(subject.FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_the_subjects_of_this_repository_are_good(path: Path) -> None:
    read = subject.read(path)
    assert read.name == path.stem
    for name in read.cluster.manifests:
        assert (path.parent / name).exists()


def test_the_least_file_offers_nothing(write: Write) -> None:
    read = subject.read(write(LEAST))
    assert (read.offers, read.node.setup, read.device.pool) == (frozenset(), (), "{node}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('driver = "small.example.com"\n', "", "driver: is missing"),
        ("count = 4", "count = 2", "device.count: 2 will not do"),
        ("count = 4", "counts = 4", "is (missing|unknown)"),
        ("offers = []", 'offers = ["magic"]', "offers.0: 'magic' will not do"),
        ("offers = []", 'offers = ["health"]', r"health needs more; expected the table \[health\]"),
        ("offers = []", 'offers = ["rolling"]', "rolling needs more"),
        ("{node}", "{nodes}", r"plugin.command: \{nodes\} is unknown; expected one of python, "),
        ("{node}", "{node", "plugin.command: .* expected braces in pairs"),
        ("kube-system/small", "small", "cluster.account: 'small' will not do"),
        ('name = "small"', "name = small", "expected TOML"),
        ('command = ["small", "--node", "{node}"]', "command = []", "plugin.command"),
    ],
)
def test_errors_name_the_field(write: Write, old: str, new: str, message: str) -> None:
    path = write(LEAST.replace(old, new))
    with pytest.raises(subject.BadSubjectError, match=message) as refused:
        subject.read(path)
    assert str(refused.value).startswith(str(path))


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(subject.BadSubjectError, match=r"cannot be read .*; expected a subject"):
        subject.read(tmp_path / "nowhere.toml")


def test_a_subject_is_found_by_its_name_or_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert subject.find("ration") == subject.FOLDER / "ration.toml"
    monkeypatch.chdir(tmp_path)
    assert subject.find("mine.toml") == tmp_path / "mine.toml"


def test_placeholders_are_filled_in() -> None:
    assert subject.filled(("--node={node}", "x"), {"node": "a"}) == ("--node=a", "x")
