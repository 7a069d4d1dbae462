"""Quantities and device selectors: texts that users write."""

import functools
from fractions import Fraction

from driver import names
from driver.devices import attributes
from driver.resources import quantities as resource_quantities
from driver.resources.cel import selector
from tests.fuzz.judging import refusing

DEVICE = selector.Device(
    driver=names.DRIVER,
    attributes={
        "type": "gpu",
        "healthy": True,
        "cores": 132,
        "driverVersion": attributes.Version("580.95.5"),
        "numbers": (1, 2, 3),
        "example.com/other": "x",
    },
    capacity={"memory": resource_quantities.parse("80Gi")},
)
_BARE = selector.Device("other.dev", {}, {})
_NANO = 10**9


def quantities(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    with refusing.refusals():
        found = resource_quantities.parse(text)
        assert found.text == text
        assert found.units >= Fraction(found.nanos, _NANO) > found.units - 1
        assert found.millis >= Fraction(found.nanos * 1000, _NANO) > found.millis - 1
        for made in (
            resource_quantities.from_bytes(found.units),
            resource_quantities.from_units(found.units),
        ):
            assert resource_quantities.parse(made.text) == made
            assert made.nanos == found.units * _NANO
        canonical = resource_quantities.format_like(found.nanos, found)
        assert resource_quantities.parse(canonical.text) == found


def selectors(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    with refusing.refusals():
        found = _compiled(text)
        if isinstance(found, selector.UnusableSelector):
            assert found.why
            found.why.encode()
            return
        for device in (DEVICE, _BARE):
            answer = found.matches(device)
            assert isinstance(answer, bool | selector.EvaluationFailure)
            if isinstance(answer, selector.EvaluationFailure):
                answer.why.encode()
            assert found.matches(device) == answer


@functools.lru_cache(maxsize=1)
def _compiled(text: str) -> selector.Selector | selector.UnusableSelector:
    """Anew each time: what the cache of all texts remembers would fill memory."""
    return selector.compile_selector.__wrapped__(text)
