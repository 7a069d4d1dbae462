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
        quantity = resource_quantities.parse(text)
        assert quantity.text == text
        assert quantity.units >= Fraction(quantity.nanos, _NANO) > quantity.units - 1
        assert quantity.millis >= Fraction(quantity.nanos * 1000, _NANO) > quantity.millis - 1
        for created in (
            resource_quantities.from_bytes(quantity.units),
            resource_quantities.from_units(quantity.units),
        ):
            assert resource_quantities.parse(created.text) == created
            assert created.nanos == quantity.units * _NANO
        canonical = resource_quantities.format_like(quantity.nanos, quantity)
        assert resource_quantities.parse(canonical.text) == quantity


def selectors(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    with refusing.refusals():
        compiled = _compiled(text)
        if isinstance(compiled, selector.UnusableSelector):
            assert compiled.why
            compiled.why.encode()
            return
        for device in (DEVICE, _BARE):
            answer = compiled.matches(device)
            assert isinstance(answer, bool | selector.EvaluationFailure)
            if isinstance(answer, selector.EvaluationFailure):
                answer.why.encode()
            assert compiled.matches(device) == answer


@functools.lru_cache(maxsize=1)
def _compiled(text: str) -> selector.Selector | selector.UnusableSelector:
    """Anew each time: what the cache of all texts remembers would fill memory."""
    return selector.compile_selector.__wrapped__(text)
