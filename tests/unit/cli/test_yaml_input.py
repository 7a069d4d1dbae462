import io
from pathlib import Path

import pytest

from driver import errors
from driver.cli import yaml_input


def test_json_and_yaml_say_the_same() -> None:
    assert yaml_input.load('{"a": [1, "b"]}', "f") == yaml_input.load("a: [1, b]", "f")


def test_documents_come_one_by_one_and_empty_ones_not_at_all() -> None:
    assert yaml_input.load("---\na: 1\n---\n---\nb: 2\n", "f") == [{"a": 1}, {"b": 2}]


def test_broken_yaml_is_told_with_its_file_and_line() -> None:
    with pytest.raises(errors.BadInput, match=r"^pods\.yaml line 3: is no YAML: .*mapping values"):
        yaml_input.load("kind: Pod\nmetadata:\n  name: x: y\n", "pods.yaml")


def test_a_key_that_stands_twice_is_refused_with_its_line() -> None:
    with pytest.raises(errors.BadInput, match=r"^f line 3: b stands twice"):
        yaml_input.load("a: 1\nb: 1\nb: 2\n", "f")


@pytest.mark.parametrize(
    "text", ["[1, 2", "? [a]\n: b\n? {a", "\x00", "a: !!python/none x", "&a [*b]"]
)
def test_invalid_yaml_is_bad_input(text: str) -> None:
    with pytest.raises(errors.BadInput, match=r"^f( line \d+)?: is no YAML"):
        yaml_input.load(text, "f")


def test_dates_and_keys_are_texts_as_in_json() -> None:
    assert yaml_input.load("at: 2026-11-22T09:00:00Z\n1: x\ntrue: y\n", "f") == [
        {"at": "2026-11-22T09:00:00Z", "1": "x", "true": "y"}
    ]


def test_a_folder_is_its_yaml_and_json_files_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"b": 1}')
    (tmp_path / "a.yaml").write_text("a: 1")
    (tmp_path / "notes.txt").write_text("a: [")
    assert yaml_input.read(str(tmp_path)) == [{"a": 1}, {"b": 1}]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text(text)
    with pytest.raises(errors.BadInput, match="is empty; expected Kubernetes objects"):
        yaml_input.read(str(path))


def test_a_folder_without_files_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(errors.BadInput, match="is empty"):
        yaml_input.read(str(tmp_path))


def test_an_absent_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(errors.BadInput, match="No such file"):
        yaml_input.read(str(tmp_path / "none.yaml"))


def test_bytes_that_are_no_text_are_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "image.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(errors.BadInput, match="is no text"):
        yaml_input.read(str(path))


def test_standard_input_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a: ["))
    with pytest.raises(errors.BadInput, match=r"^standard input line \d"):
        yaml_input.read("-")
