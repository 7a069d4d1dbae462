"""Which devices a selector matches: it is evaluated once for devices that look alike to it. Pure.

A cache of a pure function: what it forgets is evaluated again.
"""

import functools

from driver.resources.cel import selector as cel
from driver.resources.dra import slices

_MAX_RESULTS = 1 << 16
_MAX_SELECTORS = 4096


class Matcher:
    """A compiled selector with its answers, by what it can tell devices apart by."""

    def __init__(self, selector: cel.Selector) -> None:
        self._selector = selector
        self._reads = None if selector.reads is None else tuple(sorted(selector.reads))
        self._results: dict[object, bool | cel.Failed] = {}

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The names `domain/id` that the answers depend on; None: everything."""
        return self._reads

    def matches(self, driver: str, device: slices.Device) -> bool | cel.Failed:
        """Whether the selector is true for a device of a driver."""
        look = self._device_key(driver, device)
        answer = self._results.get(look)
        if answer is None:
            if len(self._results) >= _MAX_RESULTS:
                self._results.clear()
            answer = self._results[look] = self._selector.matches(cel_device(driver, device))
        return answer

    def _device_key(self, driver: str, device: slices.Device) -> object:
        """All that the answer depends on: what the selector reads, or everything."""
        names = self._reads
        if names is None:
            names = (*sorted(device.attributes), *sorted(device.capacity))
            return driver, device.allow_multiple, names, self._device_values(driver, device, names)
        return driver, device.allow_multiple, self._device_values(driver, device, names)

    def _device_values(self, driver: str, device: slices.Device, names: tuple[str, ...]) -> object:
        attributes, capacity = device.attributes, device.capacity
        found: list[object] = []
        for full, bare in _lookup_names(driver, names):
            value = attributes.get(full)
            if value is None:
                value = attributes.get(bare)
            # In a set of looks `true` would be `1`.
            found.append((value,) if value is True or value is False else value)
            amount = capacity.get(full) or capacity.get(bare)
            found.append(None if amount is None else amount.value.nanos)
        return tuple(found)


@functools.lru_cache(maxsize=_MAX_SELECTORS)
def _lookup_names(driver: str, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each name as `attribute.lookup` tries it: in full, then bare in the driver's own domain.

    Where there is no bare one it is the full one again.
    """
    return tuple((name, name.removeprefix(f"{driver}/") or name) for name in names)


@functools.lru_cache(maxsize=_MAX_SELECTORS)
def get_matcher(expression: str) -> Matcher | cel.Unusable:
    """The one matcher of an expression."""
    compiled = cel.compile_selector(expression)
    return compiled if isinstance(compiled, cel.Unusable) else Matcher(compiled)


def cel_device(driver: str, device: slices.Device) -> cel.Device:
    """What selectors see of a device of a driver."""
    return cel.Device(
        driver,
        device.attributes,
        {key: amount.value for key, amount in device.capacity.items()},
        device.allow_multiple,
    )
