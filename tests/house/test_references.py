"""Every decision, record, fact and page that code, tests or docs cite is in the repository."""

import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADR = ROOT / "docs" / "adr"
FOLDERS = (
    *("driver", "simulator", "hack", "benchmarks", "tests", "docs"),
    *("deploy", "examples", "proto", "changelog.d"),
)
BESIDE = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "GOVERNANCE.md", "CHANGELOG.md"),
    *("Makefile", "pyproject.toml", "mkdocs.yml", "kind-config.yaml"),
)
WHOLE = {".md", ".yaml", ".yml", ".tpl", ".toml", ".c", ".h", ".go", ".sh", ".proto", ""}
"""Kinds of files that are read whole. Of Python codes are followed everywhere, words in remarks."""
MADE = {"hardware.md"}
"""Pages that programs write where a user asks for them."""
TEXTS_OF_OTHERS = (ROOT / "tests" / "data", ROOT / "tests" / "fuzz", ROOT / "driver" / "pb")
DEFINING = {ADR / "decisions.md", ADR / "facts.md"}
SELF = Path(__file__)
"""Plants what is wrong."""

CODE = re.compile(r"(?<![\w.-])(?:D\d{1,2}|(?:F|K|L|NV|R|S|SIM)-\d{1,3}|ADR (?!0)\d+)(?![\w-])")
MISSPELT = re.compile(r"\bADR-?0*\d|\bADR 0\d+|\bADRs \d|docs/adr/\d{4}\b(?!-)")
ABSENT = re.compile(
    r"§|\(row \d+\)|\brow \d+ of the catalogue|\breliability row \d+"
    r"|\bnode-layer\b|\bdra-contract\b|\barchitecture(?:,| decision) D\d+"
    r"|\bof the design\b|\b[Tt]he design (?:asks|says)|\bdesign's facts"
)
"""How documents that were never in the repository were cited."""
PAGE = re.compile(r"(?<![\w<>{*-])[\w][\w./-]*\.md\b")
ENTRY = re.compile(r"^### ([A-Z]+-?\d+)$", re.MULTILINE)


def entries(page: str) -> list[str]:
    return ENTRY.findall((ADR / page).read_text())


def records() -> list[str]:
    return [f"ADR {int(path.name[:4])}" for path in sorted(ADR.glob("0*.md"))]


KNOWN = {*entries("decisions.md"), *entries("facts.md"), *records()}


@functools.cache
def pages() -> set[str]:
    paths = (ROOT / folder for folder in FOLDERS)
    return {path.name for folder in paths for path in folder.rglob("*.md")} | set(BESIDE) | MADE


def unknown_codes(text: str) -> list[str]:
    """The codes of a text that have no entry."""
    return [code for code in CODE.findall(text) if code not in KNOWN]


def absent_documents(text: str, names: set[str]) -> list[str]:
    """Return citations of missing documents and pages, and of records in another form."""
    cited = (page for page in PAGE.findall(text) if page.rpartition("/")[2] not in names)
    return [*MISSPELT.findall(text), *ABSENT.findall(text), *cited]


def remarks(source: str) -> str:
    """The comments of a Python file, and the strings that are no part of an expression."""
    names = []
    fresh = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and fresh):
            names.append(token.string)
        elif token.type not in {tokenize.NL, tokenize.INDENT, tokenize.DEDENT}:
            fresh = token.type == tokenize.NEWLINE
    return "\n".join(names)


def problems(path: Path, text: str, names: set[str]) -> list[str]:
    """Return what a file cites that is not there, in the words that stand in it."""
    absent = absent_documents(text, names)
    if absent and path.suffix == ".py":
        absent = absent_documents(remarks(text), names)
    return [*unknown_codes(text), *absent]


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            granted = any(path.is_relative_to(data) for data in TEXTS_OF_OTHERS)
            if path.is_file() and not granted and path.suffix in {".py", *WHOLE}:
                yield path
    yield from (ROOT / name for name in BESIDE)


TEXTS = {path: path.read_text() for path in files() if path != SELF}


@pytest.mark.parametrize("top", [*FOLDERS, *BESIDE])
def test_cited_documents_exist(top: str) -> None:
    names = pages()
    wrong = {
        str(path.relative_to(ROOT)): texts
        for path, text in TEXTS.items()
        if path.relative_to(ROOT).parts[0] == top and (texts := problems(path, text, names))
    }
    assert not wrong


@pytest.mark.parametrize("code", [*entries("decisions.md"), *entries("facts.md")])
def test_each_entry_is_cited(code: str) -> None:
    texts = (text for path, text in TEXTS.items() if path not in DEFINING)
    assert any(code in CODE.findall(text) for text in texts)


def test_no_two_codes_differ_by_a_hyphen_alone() -> None:
    codes = [*entries("decisions.md"), *entries("facts.md")]
    assert len({code.replace("-", "") for code in codes}) == len(codes)


def test_the_tests_that_facts_name_exist() -> None:
    named = re.findall(r"`(tests/[^`:]+)(?:::(\w+))?`", (ADR / "facts.md").read_text())
    assert len(named) > 50
    assert [path for path, _ in named if not (ROOT / path).exists()] == []
    for path, name in named:
        assert not name or f"def {name}(" in (ROOT / path).read_text()


def test_every_record_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    assert all(f"adr/{path.name}" in nav for path in ADR.glob("*.md"))


@pytest.mark.parametrize(
    ("planted", "names"),
    [
        ("kept by one writer (D25)", ["D25"]),
        ("as R-99 says", ["R-99"]),
        ("F-99: ours", ["F-99"]),
        ("decided in ADR 99", ["ADR 99"]),
        ("D2, F-17 and ADR 18; S-1 and SIM-1", []),
        ("GPU-D99, a D9000 board, UTF-8", []),
    ],
)
def test_a_planted_code_without_an_entry_is_found(planted: str, names: list[str]) -> None:
    assert problems(Path("x.py"), f"x = 1  # {planted}\n", pages()) == names


@pytest.mark.parametrize(
    ("planted", "text"),
    [
        ("decided in ADR 0018", "ADR 0018"),
        ("(reliability row 29)", "reliability row 29"),
        ("released before (row 4)", "(row 4)"),
        ("see 3.2 of it, §3.2", "§"),
        ("as the design asks", "the design asks"),
        ("as architecture, D17 has it", "architecture, D17"),
        ("node-layer 5.1", "node-layer"),
        ("field.md tells", "field.md"),
        ("design/field.md tells", "design/field.md"),
        ("docs/adr/facts.md, by design, in row 4", None),
    ],
)
def test_a_planted_document_that_is_not_there_is_found(planted: str, text: str | None) -> None:
    wrong = problems(Path("x.py"), f'"""Work, {planted}."""\n', pages())
    assert wrong == ([] if text is None else [text])


def test_only_comments_and_docstrings_of_python_are_searched() -> None:
    source = '"""Module."""\nX = "some.md"  # a comment\n"""Attribute."""\n'
    assert remarks(source).split("\n") == ['"""Module."""', "# a comment", '"""Attribute."""']
