"""Measures of the vocabulary and the layout of `driver/` and `tests/`.

Each measure is a number that must not grow; `ceilings.json` keeps the largest allowed value.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

ROOT = Path(__file__).parents[2]


def words(text: str) -> frozenset[str]:
    """Split a text into its words."""
    return frozenset(text.split())


FILLER_NAMES = words(
    "one found made known there told asked wanted said at place where of what kept given before"
)
RIDDLE_OPENINGS = words(
    "What Which Who Whose Whether Where Why How Of As By So For From Those That"
)
BANNED_PUBLIC_NAMES = words("of look tell told say said ask asked answer room law")
LOOSE_MODULES = 12
SHARED_BASENAMES = 3
PROGRAM_FILES = words("__init__ __main__ app config metrics ports command")
"""Basenames that each program or command has once."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
Graph = dict[str, set[str]]


def modules(root: Path = ROOT / "driver") -> Iterator[Path]:
    """Yield the Python files below a folder, generated stubs excepted."""
    return (path for path in sorted(root.rglob("*.py")) if "pb" not in path.relative_to(root).parts)


def bound_names(function: ast.FunctionDef) -> set[str]:
    """Return the parameters and variables that a function binds."""
    nodes = list(ast.walk(function))
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return parameters | {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def opens_with_riddle(node: ast.AST) -> bool:
    """Return whether a docstring opens with a question word or a preposition."""
    text = ast.get_docstring(node) or "" if isinstance(node, DOCUMENTED) else ""
    return text.split(" ", 1)[0].strip("`*,.\n") in RIDDLE_OPENINGS


def module_name(path: Path) -> str:
    """Return the dotted name of a file below the root of the repository."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def node_of(module: str) -> str:
    """Return the node of the import graph: a package two levels down, or a module above that."""
    return ".".join(module.split(".")[:3])


def imported(path: Path, names: AbstractSet[str]) -> Iterator[str]:
    """Yield the modules of `names` that a file imports."""
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            full = {f"{statement.module}.{alias.name}" for alias in statement.names}
            yield from full & names or {statement.module} & names


def import_graph() -> Graph:
    """Return the imports among the packages and loose modules of `driver`, two levels deep."""
    names = {module_name(path) for path in modules()}
    graph: Graph = defaultdict(set)
    for path in modules():
        source = node_of(module_name(path))
        graph[source] |= {node_of(target) for target in imported(path, names)} - {source}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            start = stack.index(node)
            components.append(stack[start:])
            del stack[start:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return [component for component in components if len(component) > 1]


def loose_modules() -> Mapping[str, int]:
    """Return the packages with more loose modules than `LOOSE_MODULES`, with their counts."""
    counts = Counter(
        str(path.parent.relative_to(ROOT))
        for path in modules()
        if path.stem not in ("__init__", "__main__")
    )
    return {package: count for package, count in counts.items() if count > LOOSE_MODULES}


def shared_basenames() -> Mapping[str, int]:
    """Return the basenames of more than `SHARED_BASENAMES` files, with their counts."""
    counts = Counter(path.stem for path in modules() if path.stem not in PROGRAM_FILES)
    return {name: count for name, count in counts.items() if count > SHARED_BASENAMES}


def gerund_packages() -> list[str]:
    """Return the packages that are called by a verb in -ing, except those the field uses."""
    field = {"scheduling", "provisioning", "sharing"}
    return [
        str(path.parent.relative_to(ROOT))
        for path in modules()
        if path.name == "__init__.py"
        and path.parent.name.endswith("ing")
        and path.parent.name not in field
    ]


def imports_among_tests() -> list[str]:
    """Return the test modules that import another test module."""
    return [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for statement in ast.walk(ast.parse(path.read_text()))
        if isinstance(statement, ast.ImportFrom)
        and any(
            part.startswith("test_")
            for part in (statement.module or "").split(".")
            + [alias.name for alias in statement.names]
            if (statement.module or "").startswith("tests")
        )
    ]


def long_test_names(words: int = 14) -> list[str]:
    """Return the tests whose names have more words than allowed."""
    return [
        f"{path.relative_to(ROOT)}::{node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and len(node.name.removeprefix("test_").split("_")) > words
    ]


def language(root: Path) -> tuple[int, int]:
    """Count the functions below a folder that bind a filler name, and the riddle docstrings."""
    nodes = [node for path in modules(root) for node in ast.walk(ast.parse(path.read_text()))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    fillers = sum(bool(bound_names(function) & FILLER_NAMES) for function in functions)
    return fillers, sum(opens_with_riddle(node) for node in nodes)


def measures() -> dict[str, int]:
    """Return every measure by its name."""
    trees = [ast.parse(path.read_text()) for path in modules()]
    functions = [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    fillers, riddles = language(ROOT / "driver")
    fillers_in_tests, riddles_in_tests = language(ROOT / "tests")
    return {
        "functions that bind a filler name": fillers,
        "docstrings that open with a riddle": riddles,
        "functions with a banned public name": sum(
            function.name in BANNED_PUBLIC_NAMES for function in functions
        ),
        "functions in tests that bind a filler name": fillers_in_tests,
        "docstrings in tests that open with a riddle": riddles_in_tests,
        "gerund packages": len(gerund_packages()),
        "packages with too many loose modules": len(loose_modules()),
        "basenames of too many files": len(shared_basenames()),
        "package circles": len(circles(import_graph())),
        "imports of one test module by another": len(imports_among_tests()),
        "tests with a name of more than 14 words": len(long_test_names()),
    }
