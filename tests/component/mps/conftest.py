import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import mpsnode, waiting

MINORS = itertools.cycle(range(8))


@pytest.fixture(scope="session")
def machine() -> Iterator[Path]:
    with mpsnode.machine() as base:
        yield base


@pytest.fixture(scope="session")
def node(machine: Path) -> Iterator[mpsnode.Node]:
    """One supervisor for all who use GPUs of their own."""
    created = mpsnode.Node(machine)
    created.supervise()
    waiting.until(created.layout.run_dir.is_dir, mpsnode.WITHIN_S)
    yield created
    created.close()


@pytest.fixture
def alone(machine: Path) -> Iterator[mpsnode.Node]:
    """State directories of one's own, and no supervisor yet."""
    created = mpsnode.Node(machine)
    yield created
    created.close()


@pytest.fixture
def minor(node: mpsnode.Node) -> Iterator[int]:
    """A GPU of one's own."""
    number = next(MINORS)
    yield number
    node.release(number)


@pytest.fixture
def other(node: mpsnode.Node) -> Iterator[int]:
    """Another one."""
    number = next(MINORS)
    yield number
    node.release(number)
