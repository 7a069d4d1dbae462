"""Which devices a selector matches: it is evaluated once for devices that look alike to it. Pure.

A cache of a pure function: what it forgets is evaluated again.
"""

import functools

from driver.cel import selector as cel
from driver.resources import attribute, slices

_MOST_LOOKS = 1 << 16
_MOST_SELECTORS = 4096


class Matcher:
    """A compiled selector with its answers, by what it can tell devices apart by."""

    def __init__(self, selector: cel.Selector) -> None:
        self._selector = selector
        self._answers: dict[object, bool | cel.Failed] = {}

    def says(self, driver: str, device: slices.Device) -> bool | cel.Failed:
        """Whether the selector is true for a device of a driver."""
        look = self._look(driver, device)
        answer = self._answers.get(look)
        if answer is None:
            if len(self._answers) >= _MOST_LOOKS:
                self._answers.clear()
            answer = self._answers[look] = self._selector.matches(seen(driver, device))
        return answer

    def _look(self, driver: str, device: slices.Device) -> object:
        shown = tuple((key, _distinct(value)) for key, value in device.attributes.items())
        amounts = tuple((key, amount.value.nanos) for key, amount in device.capacity.items())
        return driver, shown, amounts, device.allow_multiple


@functools.lru_cache(maxsize=_MOST_SELECTORS)
def of(expression: str) -> Matcher | cel.Unusable:
    """The one matcher of an expression."""
    compiled = cel.compile_selector(expression)
    return compiled if isinstance(compiled, cel.Unusable) else Matcher(compiled)


def _distinct(value: attribute.Value | None) -> object:
    """Equal only for what a selector sees as equal: `true` is not `1`."""
    return (type(value), value) if isinstance(value, bool) else value


def seen(driver: str, device: slices.Device) -> cel.Device:
    """What selectors see of a device of a driver."""
    return cel.Device(
        driver,
        {
            key: value if isinstance(value, bool | int | str) else str(value).encode()
            for key, value in device.attributes.items()
        },
        {key: amount.value for key, amount in device.capacity.items()},
        device.allow_multiple,
    )
