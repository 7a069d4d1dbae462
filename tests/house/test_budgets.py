"""The size budgets of the house: rooms that outgrow them say something about the design."""

import ast
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("driver", "simulator", "hack", "tests", "benchmarks")
FILE_MEDIAN, FILE_P90, FILE_MOST = 150, 400, 500
FUNCTION_P90, FUNCTION_MOST = 30, 60
PARAMETERS_MOST = 6
NESTING_MOST = 3
_DEEPER = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Measured:
    where: str
    size: int


def files() -> list[Path]:
    return [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "pb" not in path.relative_to(ROOT).parts and path.name != "__init__.py"
    ]


def p90(sizes: list[int]) -> float:
    return statistics.quantiles(sizes, n=10)[-1]


def functions() -> Iterator[tuple[Path, Function]]:
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield path, node


def lines_of(node: Function) -> int:
    """Lines of code, the docstring apart."""
    documented = ast.get_docstring(node, clean=False)
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    return total - (len(documented.splitlines()) if documented else 0)


def nesting(node: ast.AST, depth: int = 0) -> int:
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef | ast.Lambda):
            continue
        deeper = isinstance(child, _DEEPER) and not is_elif(node, child)
        deepest = max(deepest, nesting(child, depth + deeper))
    return deepest


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.If) and isinstance(child, ast.If) and parent.orelse == [child]


def shown(path: Path, node: Function) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_files_are_small() -> None:
    measurements = [
        Measured(str(p.relative_to(ROOT)), len(p.read_text().splitlines())) for p in files()
    ]
    sizes = [measured.size for measured in measurements]
    print(f"files: median {statistics.median(sizes):.0f}, p90 {p90(sizes):.0f}, most {max(sizes)}")
    assert statistics.median(sizes) <= FILE_MEDIAN
    assert p90(sizes) <= FILE_P90
    assert [measured for measured in measurements if measured.size > FILE_MOST] == []


def test_functions_are_small() -> None:
    measurements = [Measured(shown(path, node), lines_of(node)) for path, node in functions()]
    sizes = [measured.size for measured in measurements]
    print(f"functions: p90 {p90(sizes):.0f}, most {max(sizes)}")
    assert p90(sizes) <= FUNCTION_P90
    assert [measured for measured in measurements if measured.size > FUNCTION_MOST] == []


def test_constructors_take_few_things() -> None:
    crowded = [
        shown(path, node)
        for path, node in functions()
        if node.name == "__init__"
        and len(node.args.args) + len(node.args.kwonlyargs) - 1 > PARAMETERS_MOST
    ]
    assert crowded == []


def test_nothing_is_nested_deeply() -> None:
    deep = [shown(path, node) for path, node in functions() if nesting(node) > NESTING_MOST]
    assert deep == []


@pytest.mark.parametrize("name", ["utils", "common", "helpers", "manager", "misc"])
def test_no_module_is_a_drawer(name: str) -> None:
    assert [str(path) for path in files() if path.stem == name] == []
