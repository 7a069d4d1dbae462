"""One target, led by coverage (Atheris, libFuzzer): `python -m tests.fuzz.led TARGET [options]`.

Runs in the environment of requirements/fuzz.lock. The process ends as libFuzzer ends it: 0 when the
time is over, something else when an input broke the target.
"""

import sys
from collections.abc import Sequence

import atheris
import structlog

with atheris.instrument_imports(include=["driver"], enable_loader_override=False):
    from tests.fuzz import mutating, targets

_SLOWER = 10.0
"""Instrumented code takes longer, and the machine is shared."""


def main(name: str, options: Sequence[str]) -> None:
    """Until libFuzzer has enough."""
    structlog.configure(processors=[_silent])
    target = targets.TARGETS[name]
    seeds = list(target.seeds())

    def hold(data: bytes) -> None:
        target.hold(data, _SLOWER)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, most))
        return mutating.mutated(data, seeds, seed)[:most]

    atheris.Setup([sys.argv[0], *options], hold, custom_mutator=mutate)
    atheris.Fuzz()


def _silent(*_: object) -> structlog.typing.EventDict:
    raise structlog.DropEvent


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
