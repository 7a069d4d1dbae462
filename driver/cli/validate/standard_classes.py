"""The DeviceClasses that the chart installs unless told otherwise, for files that name them. Pure.

A test holds them against the chart.
"""

from typing import TYPE_CHECKING

from driver import names
from driver.resources.dra import device_classes as dra_device_classes

if TYPE_CHECKING:
    from driver.resources import fields

_KINDS = (
    (names.CLASS_GPU, names.TYPE_GPU, ""),
    (names.CLASS_MIG, names.TYPE_MIG, ""),
    (names.CLASS_MPS, names.TYPE_SHARE, names.SHARING_MPS),
    (names.CLASS_TIMESLICE, names.TYPE_SHARE, names.SHARING_TIME_SLICING),
)


def device_classes(driver: str) -> dict[str, dra_device_classes.DeviceClass]:
    """Return the standard classes by name; those of another driver name are unknown."""
    if driver != names.DRIVER:
        return {}
    result = [_of(name, kind, sharing) for name, kind, sharing in _KINDS]
    return {device_class.name: device_class for device_class in (*result, _slice())}


def _of(name: str, kind: str, sharing: str) -> dra_device_classes.DeviceClass:
    terms = [f'device.driver == "{names.DRIVER}"', f'{_attribute("type")} == "{kind}"']
    terms += [f'{_attribute("sharing")} == "{sharing}"'] if sharing else []
    return dra_device_classes.DeviceClass(name, (" && ".join(terms),), is_converted=True)


def _slice() -> dra_device_classes.DeviceClass:
    kind, allocator = _attribute("type"), _attribute("allocator")
    expression = (
        f'device.driver == "{names.DRIVER}" && ({kind} == "mig" || ({kind} == "gpu-share" && '
        f'{allocator} == "controller"))'
    )
    parameters = {
        "apiVersion": names.CONFIG_VERSION,
        "kind": "SliceConfig",
        "isolation": "limits",
    }
    opaque: fields.Raw = {"driver": names.DRIVER, "parameters": parameters}
    return dra_device_classes.DeviceClass(
        names.CLASS_SLICE, (expression,), (opaque,), is_converted=True
    )


def _attribute(name: str) -> str:
    return f'device.attributes["{names.DRIVER}"].{name}'
