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
        return tuple(int(one) for one in re.findall(r"\d+", self.number))


def case(
    number: str, origin: str, *needs: subject.Feature, since: str = ""
) -> Callable[[Test], Test]:
    """Marks a test as a case; `since` is the first line of Kubernetes that has what it tries."""

    def marked(test: Test) -> Test:
        mark = pytest.mark.case(number=number, origin=origin, needs=needs, since=since)
        made: Test = mark(test)
        return made

    return marked


def of(test: object, file: Path) -> Case | None:
    """The case that a test function is."""
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "case":
            told = mark.kwargs
            title = getattr(test, "__name__", "").removeprefix("test_").replace("_", " ")
            needs = tuple(str(one) for one in told["needs"])
            return Case(told["number"], told["origin"], title, needs, told["since"], file)
    return None


def load() -> list[Case]:
    """All cases, in order."""
    found: list[Case] = []
    for file in sorted(CASES.glob("test_*.py")):
        module = importlib.import_module(f"tests.blackbox.cases.{file.stem}")
        tests = (one for _, one in inspect.getmembers(module, inspect.isfunction))
        found += [one for test in tests if (one := of(test, file)) is not None]
    return sorted(found, key=Case.order)


def chosen(cases: Iterable[Case], words: Iterable[str]) -> Iterator[Case]:
    """Yield the cases of the groups and numbers named; all where none is. Raises LookupError."""
    known, wanted = list(cases), [one.upper() for one in words]
    for word in wanted:
        if not any(word in {one.number, one.group} for one in known):
            groups = sorted({one.group for one in known}, key=lambda one: int(one[3:]))
            raise LookupError(f"--cases {word}: no such case; expected one of {', '.join(groups)}")
    for one in known:
        if not wanted or one.number in wanted or one.group in wanted:
            yield one
