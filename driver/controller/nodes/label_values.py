"""Node labels as GPU feature discovery names them, of what a node's slices say. Pure.

Workloads select nodes by these (`nvidia.com/gpu.product`), and guides tell them to. Of a node with
several models they tell the first in PCI order, as there. Names and meanings: NVIDIA's
k8s-device-plugin, docs/gpu-feature-discovery.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from driver import names
from driver.devices import attributes, faces
from driver.resources.dra import slices

PREFIX = "nvidia.com/"
_MIB = 1 << 20
_NOT_A_LABELS = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 63


def gpu_labels(resource_slices: Iterable[slices.Slice]) -> dict[str, str]:
    """The labels of a node with these slices of our driver; none where no GPU is published.

    What GPU feature discovery tells and slices do not (the driver's exact version, the machine's
    name) is left out, and so is what depends on how a device plugin shares.
    """
    devices = [device for entry in resource_slices for device in entry.devices]
    gpus = sorted({faces.gpu_name(device.name) or device.name for device in devices})
    whole = [
        device
        for device in sorted(devices, key=lambda device: device.name)
        if device.attributes.get(names.ATTR_TYPE) != names.TYPE_MIG
        and device.attributes.get(names.ATTR_PRODUCT)
    ]
    if not gpus:
        return {}
    parts = any(device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG for device in devices)
    values = {
        "gpu.present": "true",
        "gpu.count": str(len(gpus)),
        "mig.capable": "true" if parts else "false",
        **(dict(_of_gpu(whole[0])) if whole else {}),
    }
    return {f"{PREFIX}{key}": value for key, value in values.items() if value}


def _of_gpu(device: slices.Device) -> Iterator[tuple[str, str]]:
    """What one GPU says of itself."""
    values = device.attributes
    yield "gpu.product", _word(str(values[names.ATTR_PRODUCT]))
    yield "gpu.family", _word(str(values.get(names.ATTR_ARCHITECTURE, ""))).lower()
    memory = device.capacity.get(names.CAP_MEMORY)
    yield "gpu.memory", str(memory.value.units // _MIB) if memory else ""
    yield from _versions(values, names.ATTR_CUDA_CAPABILITY, "gpu.compute")
    yield from _versions(values, names.ATTR_DRIVER_VERSION, "cuda.driver", "cuda.driver-version")
    yield from _versions(
        values, names.ATTR_CUDA_DRIVER_VERSION, "cuda.runtime", "cuda.runtime-version"
    )


def _versions(
    values: Mapping[str, object], attribute: str, *labels: str
) -> Iterator[tuple[str, str]]:
    """Major and minor, under the old name and under the new one."""
    version = values.get(attribute)
    if isinstance(version, attributes.Version):
        major, minor, *_ = str(version).split(".")
        for label in labels:
            yield f"{label}.major", major
            yield f"{label}.minor", minor


def _word(text: str) -> str:
    """As a label's value may be: `NVIDIA-H100-80GB-HBM3`."""
    return _NOT_A_LABELS.sub("-", text)[:_LONGEST].strip("-_.")
