"""Nothing that stays in the image takes a part of a package that is left out of it."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.image import build

DRIVER = build.CHECKOUT / "driver"
LEFT_OUT = build.left_out()


def folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def imported(path: Path, package: str) -> Iterator[str]:
    """Every module that a file may import, by its full name; `package` is the one it lies in."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            module = importlib.util.resolve_name(base, package) if node.level else base
            yield from (f"{module}.{alias.name}" for alias in node.names)


def modules(root: Path) -> Iterator[tuple[Path, str]]:
    """Every file of a package with the package that it lies in."""
    for path in sorted(root.rglob("*.py")):
        yield path, ".".join(path.parent.relative_to(root.parent).parts)


def takers(root: Path, name: str) -> list[str]:
    """Files below `root`, those of the part itself apart, that import the part."""
    part, word = name.replace("/", "."), name.rpartition("/")[2]
    return [
        str(path)
        for path, package in modules(root)
        if word in path.read_text()
        and not f"{package}.".startswith(f"{part}.")
        and any(f"{module}.".startswith(f"{part}.") for module in imported(path, package))
    ]


@pytest.mark.parametrize("name", LEFT_OUT)
def test_omitted_files_exist(name: str) -> None:
    package, _, inner = name.partition("/")
    assert inner, "a whole package is left out by the lock"
    assert (folder(package) / inner).is_dir()


@pytest.mark.parametrize("name", LEFT_OUT)
def test_neither_the_driver_nor_the_rest_of_the_package_imports_it(name: str) -> None:
    assert takers(DRIVER, name) == []
    assert takers(folder(name.partition("/")[0]), name) == []


@pytest.mark.parametrize("name", LEFT_OUT)
def test_no_extension_module_of_the_package_names_it(name: str) -> None:
    package, _, inner = name.partition("/")
    root = folder(package)
    spelled = name.replace("/", ".").encode()
    for path in root.rglob("*.so"):
        if not path.is_relative_to(root / inner):
            assert spelled not in path.read_bytes(), path


def test_an_import_of_a_part_is_seen_however_it_is_written(tmp_path: Path) -> None:
    root = tmp_path / "client"
    (root / "aio").mkdir(parents=True)
    (root / "aio" / "own.py").write_text("import client.aio.other\n")
    for name, line in {
        "plain": "import client.aio.rest",
        "named": "from client import aio",
        "inner": "from client.aio import rest",
        "relative": "from . import aio",
        "other": "from . import aiohttp, api",
    }.items():
        (root / f"{name}.py").write_text(f"def later():\n    {line}\n")
    stems = [Path(path).stem for path in takers(root, "client/aio")]
    assert stems == ["inner", "named", "plain", "relative"]
