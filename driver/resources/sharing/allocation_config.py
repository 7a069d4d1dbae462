"""The configuration that an allocation brings to a driver's devices."""

from collections.abc import Iterator

from driver.api import decode
from driver.resources import fields
from driver.resources.dra import claims


def allocation_configs(allocation: claims.Allocation, driver: str) -> Iterator[decode.Document]:
    """The driver's documents, in their order: the last that applies wins.

    Raises:
        BadInput: one cannot be read.
    """
    for index, entry in enumerate(allocation.configs):
        location = f"status.allocation.devices.config[{index}].opaque"
        if fields.text(entry.opaque, "driver", location) != driver:
            continue
        path = f"{location}.parameters"
        parameters = fields.mapping(entry.opaque, "parameters", location)
        result = decode.decode_config(parameters, path, from_class=entry.from_class)
        yield decode.Document(result, path, entry.requests)
