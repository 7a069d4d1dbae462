from pathlib import Path

import pytest

from driver import errors
from driver.runtime.files import yaml_files


@pytest.mark.parametrize(
    "text",
    [
        "a: 2024-13-45",  # a 13th month, which PyYAML lets out as a ValueError
        "a: !!bool x",  # KeyError
        "a: !!timestamp x",  # AttributeError
        "a: !!int ''",  # IndexError
        "[" * 3000,  # RecursionError
        "a: [",
        "a: \x00",
        "- a list",
        "",
    ],
)
def test_an_invalid_document_is_refused_with_its_location(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shapes.yaml"
    path.write_text(text)
    with pytest.raises(errors.BadInput, match=r"shapes\.yaml"):
        yaml_files.read_document(path, "NodeShapes")


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    for name in ("bytes", "nothing"):
        with pytest.raises(errors.BadInput, match="NodeShapes"):
            yaml_files.read_document(tmp_path / name, "NodeShapes")
