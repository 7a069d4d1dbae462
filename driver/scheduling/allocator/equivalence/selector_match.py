"""Cached selector evaluation, once for devices that are equal in what the selector reads. Pure.

A cache of a pure function: dropped entries are evaluated again.
"""

import functools

from driver.resources.cel import selector as cel
from driver.resources.dra import slices

_MAX_RESULTS = 1 << 16
_MAX_SELECTORS = 4096


class Matcher:
    """A compiled selector with its results, by what it can distinguish devices by."""

    def __init__(self, selector: cel.Selector) -> None:
        self._selector = selector
        self._reads = None if selector.reads is None else tuple(sorted(selector.reads))
        self._results: dict[object, bool | cel.EvaluationFailure] = {}

    @property
    def reads(self) -> tuple[str, ...] | None:
        """Names `domain/id` that the results depend on; None: all."""
        return self._reads

    def matches(self, driver: str, device: slices.Device) -> bool | cel.EvaluationFailure:
        """Return whether the selector is true for a device of a driver."""
        key = self._device_key(driver, device)
        result = self._results.get(key)
        if result is None:
            if len(self._results) >= _MAX_RESULTS:
                self._results.clear()
            result = self._results[key] = self._selector.matches(cel_device(driver, device))
        return result

    def _device_key(self, driver: str, device: slices.Device) -> object:
        """Return all that the result depends on: what the selector reads, or everything."""
        names = self._reads
        if names is None:
            names = (*sorted(device.attributes), *sorted(device.capacity))
            return driver, device.allow_multiple, names, self._device_values(driver, device, names)
        return driver, device.allow_multiple, self._device_values(driver, device, names)

    def _device_values(self, driver: str, device: slices.Device, names: tuple[str, ...]) -> object:
        attributes, capacity = device.attributes, device.capacity
        values: list[object] = []
        for full, bare in _lookup_names(driver, names):
            value = attributes.get(full)
            if value is None:
                value = attributes.get(bare)
            # As a dictionary key `True` would equal `1`.
            values.append((value,) if value is True or value is False else value)
            amount = capacity.get(full) or capacity.get(bare)
            values.append(None if amount is None else amount.value.nanos)
        return tuple(values)


@functools.lru_cache(maxsize=_MAX_SELECTORS)
def _lookup_names(driver: str, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each name as `attribute.lookup` tries it: in full, then bare in the driver's own domain.

    Where there is no bare one it is the full one again.
    """
    return tuple((name, name.removeprefix(f"{driver}/") or name) for name in names)


@functools.lru_cache(maxsize=_MAX_SELECTORS)
def get_matcher(expression: str) -> Matcher | cel.UnusableSelector:
    """Return the one matcher of an expression."""
    compiled = cel.compile_selector(expression)
    return compiled if isinstance(compiled, cel.UnusableSelector) else Matcher(compiled)


def cel_device(driver: str, device: slices.Device) -> cel.Device:
    """Return a device of a driver as selectors see it."""
    return cel.Device(
        driver,
        device.attributes,
        {key: amount.value for key, amount in device.capacity.items()},
        device.allow_multiple,
    )
