"""A few hundred inputs a target, the same each time: `make fuzz` tries more, led by coverage."""

import itertools

import pytest
from structlog import testing

from tests.fuzz import mutating, regressions, targets

INPUTS = 300


@pytest.mark.parametrize("name", targets.TARGETS)
def test_whatever_is_read_ends_in_a_value_or_a_typed_error(name: str) -> None:
    target = targets.TARGETS[name]
    seeds = list(target.seeds())
    bodies = (
        mutating.mutated(seeds[number % len(seeds)], seeds, number)
        for number in range(max(INPUTS, 2 * len(seeds)))
    )
    with testing.capture_logs():
        for data in itertools.chain(seeds, bodies):
            held(target, data)


@pytest.mark.parametrize(
    ("name", "data"),
    [(name, data) for name, bodies in regressions.FOUND.items() for data in bodies],
)
def test_past_failures_of_decoders_are_fixed(name: str, data: bytes) -> None:
    with testing.capture_logs():
        held(targets.TARGETS[name], data)


def held(target: targets.Target, data: bytes) -> None:
    try:
        target.hold(data)
    except Exception as error:
        error.add_note(f"of the input {data!r}")
        raise
