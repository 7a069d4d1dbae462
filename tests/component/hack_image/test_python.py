from pathlib import Path

import pytest

from hack.image import python


def test_bytecode_lies_beside_its_source_wherever_the_caller_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "cache"))
    source = tmp_path / "image" / python.PACKAGES / "one.py"
    source.parent.mkdir(parents=True)
    source.write_text("ONE = 1\n")
    python.compile_all(tmp_path / "image")
    assert [path.suffix for path in (source.parent / "__pycache__").iterdir()] == [".pyc"]
