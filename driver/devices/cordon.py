"""GPUs of a node that an operator cordoned: the value of one annotation. Pure.

`all`, or GPUs by name, UUID or PCI address: `gpu-0000-18-00-0, GPU-5f0c1c6e-...`.
"""

from collections.abc import Collection, Iterable

from driver import names
from driver.devices import faces, model


def parse_names(annotation: str) -> frozenset[str]:
    """Return the names in an annotation, possibly `all`."""
    return frozenset(part.strip() for part in annotation.split(",") if part.strip())


def render_names(cordoned: Iterable[str]) -> str:
    """Return the annotation of these names."""
    return ",".join(sorted({*cordoned}))


def is_named(cordoned: Collection[str], gpu: model.Gpu) -> bool:
    """Return whether a GPU is among the names."""
    aliases = (names.ALL, faces.device_name(gpu.pci), gpu.uuid, gpu.pci)
    return any(name in cordoned for name in aliases)
