"""Every case there is: its number, where it comes from, what it needs."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from tests.blackbox import subject

Test = TypeVar("Test", bound=Callable[..., None])
CASES = Path(__file__).parent / "cases"
NODE = "e2e_node"
"""Upstream's test/e2e_node/dra_test.go: kubelet and plugin alone."""
CLUSTER = "e2e"
"""Upstream's test/e2e/dra/dra.go: a whole cluster."""
OURS = "ours"
"""A failure of docs/adr/facts.md that upstream has no test for."""


@dataclass(frozen=True, slots=True)
class Case:
    """`origin` is upstream's name of the test; `title` this one's, as a sentence."""

    number: str
    origin: str
    title: str
    needs: tuple[str, ...]
    since: str
    file: Path

    @property
    def group(self) -> str:
        """`BB-2` of `BB-2.3`."""
        return self.number.partition(".")[0]

    def order(self) -> tuple[int, ...]:
        """Return the sort key."""
        return tuple(int(match) for match in re.findall(r"\d+", self.number))


def case(
    number: str, origin: str, *needs: subject.Feature, since: str = ""
) -> Callable[[Test], Test]:
    """Marks a test as a case; `since` is the first line of Kubernetes that has what it tries."""

    def marked(test: Test) -> Test:
        mark = pytest.mark.case(number=number, origin=origin, needs=needs, since=since)
        created: Test = mark(test)
        return created

    return marked


def of(test: object, file: Path) -> Case | None:
    """The case that a test function is."""
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "case":
            kwargs = mark.kwargs
            title = getattr(test, "__name__", "").removeprefix("test_").replace("_", " ")
            needs = tuple(str(need) for need in kwargs["needs"])
            return Case(kwargs["number"], kwargs["origin"], title, needs, kwargs["since"], file)
    return None


def load() -> list[Case]:
    """All cases, in order."""
    cases: list[Case] = []
    for file in sorted(CASES.glob("test_*.py")):
        module = importlib.import_module(f"tests.blackbox.cases.{file.stem}")
        tests = (
            function_type for _, function_type in inspect.getmembers(module, inspect.isfunction)
        )
        cases += [item for test in tests if (item := of(test, file)) is not None]
    return sorted(cases, key=Case.order)


def chosen(cases: Iterable[Case], words: Iterable[str]) -> Iterator[Case]:
    """Yield the cases of the groups and numbers named; all where none is. Raises LookupError."""
    existing, expected = list(cases), [word.upper() for word in words]
    for word in expected:
        if not any(word in {item.number, item.group} for item in existing):
            groups = sorted({item.group for item in existing}, key=lambda name: int(name[3:]))
            raise LookupError(f"--cases {word}: no such case; expected one of {', '.join(groups)}")
    for entry in existing:
        if not expected or entry.number in expected or entry.group in expected:
            yield entry
