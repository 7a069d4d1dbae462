"""The oracle lane: one program for all its tests; without Go there is none to build."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle import differential, oracle, program


@pytest.fixture(scope="session")
def built() -> Path:
    """The oracle's program."""
    if not program.can_be_had():
        pytest.skip(
            "the oracle is not in the cache and Go is not installed to build it (go.dev/dl)"
        )
    return program.ensure()


@pytest.fixture(scope="session")
def running_oracle(built: Path) -> Iterator[oracle.Oracle]:
    """The running oracle."""
    with oracle.Oracle(built) as running:
        yield running


@pytest.fixture(scope="module")
def judging(built: Path) -> Iterator[differential.Judges]:
    with differential.judges(built) as judges:
        yield judges
