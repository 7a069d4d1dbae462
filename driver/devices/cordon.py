"""Which GPUs of a node an operator took out of use: the value of one annotation. Pure.

`all`, or GPUs by name, UUID or PCI address: `gpu-0000-18-00-0, GPU-5f0c1c6e-...`.
"""

from collections.abc import Collection, Iterable

from driver import names
from driver.devices import faces, model


def parse_names(annotation: str) -> frozenset[str]:
    """What an annotation names, `all` among it."""
    return frozenset(part.strip() for part in annotation.split(",") if part.strip())


def render_names(wanted: Iterable[str]) -> str:
    """The annotation that names these."""
    return ",".join(sorted({*wanted}))


def is_named(wanted: Collection[str], gpu: model.Gpu) -> bool:
    """Whether a GPU is among those that are named."""
    known = (names.ALL, faces.device_name(gpu.pci), gpu.uuid, gpu.pci)
    return any(name in wanted for name in known)
